/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * Size, allocation, the partial tail and durability of a host file.
 *
 * Happy path of a growing file: prepare raises the host's size once to the
 * floor the cache gives, and allocates ahead of it in large steps, so that no
 * device write extends the file or allocates; the last, partial block goes
 * through a second, buffered descriptor, by exactly its bytes; close gives
 * back what was allocated ahead and not used.
 *
 * Changes of the size are serialised by the file's turn: a flag with a wait
 * queue and not a mutex, because the turn is kept across system calls that do
 * I/O. In the common case (nothing to do) prepare only loads two words.
 *
 * Failure modes: -ENOSPC and -EDQUOT from allocating what the write itself
 * needs; failing to allocate further ahead is no error. A file system without
 * fallocate is remembered and not asked again.
 *
 * Invariants: the host's size is never raised above what the caller gave;
 * inode->size is the host's size whenever nobody has the turn and only this
 * process changes it (store.h: one process a directory).
 */
#include "store/host.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/falloc.h>
#include <linux/fiemap.h>
#include <linux/fs.h>
#include <stdio.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/stat.h>
#include <sys/statvfs.h>
#include <unistd.h>

/* Steps grow with the file, an eighth of it, up to this: more would only make
 * the space look used; each step costs a journal entry, so fewer buy nothing. */
#define AHEAD_MAX (256ll << 20)

static void turn_take(struct host_inode *inode)
{
	wait_event(&inode->turn_wq, !atomic_exchange(&inode->turn, true));
}

static void turn_give(struct host_inode *inode)
{
	atomic_store(&inode->turn, false);
	waitq_wake_one(&inode->turn_wq);
}

/*
 * Cuts blocks beyond end of file; the size stays. ftruncate to the same size
 * does it on XFS and ext4, punching a hole there does not on ext4.
 */
static void cut_beyond_end(struct host_file *file) REQUIRES(file->inode->turn)
{
	struct timespec times[2] = { { .tv_nsec = UTIME_OMIT } };
	struct stat st;

	if (fstat(file->fd, &st))
		return;
	times[1] = st.st_mtim;
	if (ftruncate(file->fd, st.st_size) == 0)
		(void)futimens(file->fd, times);
	/* The host zeroes the rest of the last block, in its cache. */
	file->inode->tail_cached |= (st.st_size & (file->block - 1)) != 0;
	atomic_store(&file->inode->allocated, 0);
}

/* What a killed process had allocated ahead. */
static void cut_leftover(struct host_file *file) REQUIRES(file->inode->turn)
{
	struct fiemap map = { 0 };
	struct stat st;

	if (fstat(file->fd, &st) || !st.st_blocks)
		return;
	map.fm_start = align_up(st.st_size, file->block);
	map.fm_length = INT64_MAX - map.fm_start;
	if (ioctl(file->fd, FS_IOC_FIEMAP, &map) == 0 && map.fm_mapped_extents)
		cut_beyond_end(file);
}

static int fallocate_host(struct host_file *file, int mode, int64_t off,
			  int64_t len)
{
	while (fallocate(file->fd, mode, off, len)) {
		if (errno != EINTR)
			return -errno;
	}
	return 0;
}

/* Whether the file system has room to spare for steps of many files: an eighth
 * of it, and a dozen such steps. */
static bool has_room(const struct host_file *file, int64_t step)
{
	struct statvfs v;
	uint64_t left;

	if (fstatvfs(file->fd, &v))
		return false;
	left = (uint64_t)v.f_bavail * v.f_frsize;
	return left >= (uint64_t)v.f_blocks * v.f_frsize / 8 &&
	       left / 12 >= (uint64_t)step;
}

/* Allocates what [.., end) lacks and, where there is room, a step ahead of
 * it. */
static int allocate_ahead(struct host_file *file, int64_t end)
	REQUIRES(file->inode->turn)
{
	struct host_store *store = host_store_of(file->base.store);
	int64_t from = atomic_load(&file->inode->allocated), step;
	int err;

	/* Nothing below the size needs it: growing without holes. */
	if (from == 0)
		from = align_down(atomic_load(&file->inode->size), file->block);
	if (from >= end)
		return 0;
	step = min_of(end / 8, AHEAD_MAX);
	step = max_of(step, (int64_t)store->ahead_min);
	step = min_of(step, INT64_MAX - end);
	step = align_down(step, file->block);
	if (!has_room(file, step))
		step = 0;
	err = fallocate_host(file, FALLOC_FL_KEEP_SIZE, from,
			     end + step - from);
	if (err == -ENOSPC || err == -EDQUOT || err == -EFBIG) {
		step = 0;
		err = fallocate_host(file, FALLOC_FL_KEEP_SIZE, from,
				     end - from);
	}
	if (err == -EOPNOTSUPP || err == -ENOSYS) {
		atomic_store(&store->no_fallocate, true);
		return 0;
	}
	if (!err)
		atomic_store(&file->inode->allocated, end + step);
	return err;
}

/*
 * Never lowers it, whatever somebody else may have done to the file in the
 * meantime.
 */
static int raise_size(struct host_file *file, int64_t floor)
	REQUIRES(file->inode->turn)
{
	struct stat st;

	if (fstat(file->fd, &st))
		return -errno;
	if (st.st_size < floor && ftruncate(file->fd, floor))
		return -errno;
	atomic_store(&file->inode->size, max_of(st.st_size, floor));
	return 0;
}

int host_prepare(struct tr_store_file *base, int64_t off, size_t len,
		 int64_t floor, bool dense)
{
	struct host_file *file = host_file_of(base);
	struct host_store *store = host_store_of(base->store);
	int64_t end = off + (int64_t)len;
	int err = 0;

	dense = dense && !atomic_load(&store->no_fallocate);
	if (atomic_load(&file->inode->size) >= floor &&
	    (!dense || atomic_load(&file->inode->allocated) >= end))
		return 0;
	turn_take(file->inode);
	if (dense && atomic_load(&file->inode->allocated) < end)
		err = allocate_ahead(file, end);
	if (!err && atomic_load(&file->inode->size) < floor)
		err = raise_size(file, floor);
	turn_give(file->inode);
	return err;
}

/* A buffered descriptor of the same file. */
static int tail_open(struct host_file *file) REQUIRES(file->inode->turn)
{
	struct host_store *store = host_store_of(file->base.store);
	char path[32];
	int fd;

	if (file->tail_fd >= 0)
		return 0;
	if (store->by_handle) {
		fd = host_xfs_reopen(store->dir_fd, file->fd, O_RDWR);
		if (fd >= 0) {
			file->tail_fd = fd;
			return 0;
		}
	}
	snprintf(path, sizeof(path), "/proc/self/fd/%d", file->fd);
	fd = open(path, O_RDWR | O_CLOEXEC);
	if (fd < 0)
		return -errno;
	file->tail_fd = fd;
	return 0;
}

static int write_all(int fd, const char *buf, size_t len, int64_t off)
{
	ssize_t n;

	while (len) {
		n = pwrite(fd, buf, len, off);
		if (n < 0 && errno == EINTR)
			continue;
		if (n < 0)
			return -errno;
		buf += n;
		off += n;
		len -= n;
	}
	return 0;
}

int host_write_tail(struct tr_store_file *base, const void *buf, size_t len,
		    int64_t off)
{
	struct host_file *file = host_file_of(base);
	int err, fd;

	/* By handle even what may not be written could be opened to write. */
	if (!file->writable)
		return -EBADF;
	turn_take(file->inode);
	err = file->buffered ? 0 : tail_open(file);
	if (!err) {
		fd = file->buffered ? file->fd : file->tail_fd;
		err = write_all(fd, buf, len, off);
		file->inode->tail_cached = true;
	}
	/* Also after an error: some of it may have been written. */
	if (!err && off + (int64_t)len > atomic_load(&file->inode->size))
		atomic_store(&file->inode->size, off + (int64_t)len);
	turn_give(file->inode);
	return err;
}

int host_sync(struct tr_store_file *base, bool datasync)
{
	struct host_file *file = host_file_of(base);

	if (datasync ? fdatasync(file->fd) : fsync(file->fd))
		return -errno;
	if (file->buffered)
		(void)posix_fadvise(file->fd, 0, 0, POSIX_FADV_DONTNEED);
	return 0;
}

int host_truncate(struct tr_store_file *base, int64_t size)
{
	struct host_file *file = host_file_of(base);
	int err = 0;

	if (size < 0)
		return -EINVAL;
	turn_take(file->inode);
	if (ftruncate(file->fd, size)) {
		err = -errno;
	} else {
		atomic_store(&file->inode->size, size);
		/* Both file systems free what lies beyond. */
		atomic_store(&file->inode->allocated, 0);
		/* The host has zeroed the rest of the block in its cache. */
		file->inode->tail_cached |= (size & (file->block - 1)) != 0;
	}
	turn_give(file->inode);
	return err;
}

int host_punch(struct tr_store_file *base, int64_t off, int64_t len)
{
	struct host_file *file = host_file_of(base);
	int err;

	turn_take(file->inode);
	err = fallocate_host(file, FALLOC_FL_PUNCH_HOLE | FALLOC_FL_KEEP_SIZE,
			     off, len);
	turn_give(file->inode);
	return err;
}

int host_allocate(struct tr_store_file *base, int64_t off, int64_t len,
		  bool keep_size)
{
	struct host_file *file = host_file_of(base);
	int err;

	turn_take(file->inode);
	err = fallocate_host(file, keep_size ? FALLOC_FL_KEEP_SIZE : 0, off,
			     len);
	if (!err && !keep_size && off + len > atomic_load(&file->inode->size))
		atomic_store(&file->inode->size, off + len);
	turn_give(file->inode);
	return err;
}

int host_seek(struct tr_store_file *base, int64_t off, int whence, int64_t *out)
{
	int64_t at;

	if (whence != SEEK_DATA && whence != SEEK_HOLE)
		return -EINVAL;
	at = lseek(host_file_of(base)->fd, off, whence);
	if (at < 0)
		return -errno;
	*out = at;
	return 0;
}

int host_set_mtime(struct tr_store_file *base, struct timespec mtime)
{
	struct timespec times[2] = { { .tv_nsec = UTIME_OMIT }, mtime };

	return futimens(host_file_of(base)->fd, times) ? -errno : 0;
}

/*
 * The host keeps no page of a file that is closed. What the cut above has
 * zeroed behind the end of file is dirty and must be written before it goes.
 */
static void drop_pages(struct host_file *file) REQUIRES(file->inode->turn)
{
	struct host_inode *inode = file->inode;

	if (inode->tail_cached && file->writable)
		(void)sync_file_range(
			file->fd,
			align_down(atomic_load(&inode->size), file->block), 0,
			SYNC_FILE_RANGE_WAIT_BEFORE | SYNC_FILE_RANGE_WRITE |
				SYNC_FILE_RANGE_WAIT_AFTER);
	if (inode->tail_cached || file->buffered)
		(void)posix_fadvise(file->fd, 0, 0, POSIX_FADV_DONTNEED);
}

int host_size_attach(struct host_file *file)
{
	struct host_inode *inode = file->inode;
	struct stat st;
	int err = 0;

	turn_take(inode);
	if (fstat(file->fd, &st))
		err = -errno;
	else
		atomic_store(&inode->size, st.st_size);
	if (!err && file->writable && inode->nr_writable++ == 0)
		cut_leftover(file);
	turn_give(inode);
	return err;
}

void host_size_detach(struct host_file *file)
{
	struct host_inode *inode = file->inode;

	turn_take(inode);
	if (file->writable && --inode->nr_writable == 0 &&
	    atomic_load(&inode->allocated) > atomic_load(&inode->size))
		cut_beyond_end(file);
	drop_pages(file);
	turn_give(inode);
}

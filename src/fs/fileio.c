/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * Openings in the cache.
 *
 * Happy path: the opening exists, a user is counted. Else one caller switches:
 * it opens the file by its descriptor in /proc, under the server's own ids
 * (rights were checked by the caller), and hands it to the store.
 *
 *	none --switch--> read-only --switch--> writable
 *
 * A descriptor for writing exists only once somebody wants to write: while it
 * does, the host lets nobody execute the file. A mapping keeps the descriptor it
 * began with, so the switch lets the cache forget the file first; where it
 * cannot, because pages are on their way to a client, the caller is told to come
 * again (-EAGAIN).
 *
 * Invariants: io changes only while io_switching is set, and only one caller
 * sets it; nobody is inside (io_users is 0) when an opening is closed.
 */
#include "fs/fileio.h"

#include "base/clock.h"
#include "base/log.h"
#include "cache/file.h"
#include "fs/attr.h"
#include "store/host.h"

#include <errno.h>
#include <fcntl.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

/* Of a path in a line for the administrator: what is longer is cut, and the
 * inode's number tells the file. */
#define LOSS_PATH_MAX 512

/* ---- opening ---- */

static int open_data(struct fs_file *f, int flags)
{
	char path[32];
	int fd;

	snprintf(path, sizeof(path), "/proc/self/fd/%d", f->fd);
	fd = open(path, flags | O_CLOEXEC | O_NONBLOCK | O_NOATIME);
	/* O_NOATIME is for owners only. */
	if (fd < 0 && errno == EPERM)
		fd = open(path, flags | O_CLOEXEC | O_NONBLOCK);
	return fd < 0 ? -errno : fd;
}

static int open_as(struct fs_file *f, int flags, struct tr_file **out)
{
	struct tr_store_file *sf;
	struct tr_file *io;
	int fd, ret;

	fd = open_data(f, flags);
	if (fd < 0)
		return fd;
	ret = host_store_open_fd(f->volume->store, fd, &sf);
	if (ret) {
		close(fd);
		return ret;
	}
	ret = cache_file_open(file_table_cache(f->table), f->volume->store, sf,
			      flags, &io);
	if (ret)
		return ret;
	if (flags == O_RDWR &&
	    !host_file_of(cache_file_mapping(io)->sf)->writable) {
		/* A mapping from a reader's time is still there. */
		cache_file_forget(io);
		(void)tr_file_close(io);
		return -EAGAIN;
	}
	*out = io;
	return 0;
}

/* ---- users ---- */

enum turn { TURN_WAIT, TURN_USE, TURN_SWITCH };

static bool is_good(const struct fs_file *f) REQUIRES(f->lock)
{
	return f->io && !f->io_stale && (f->io_writable || !f->io_want_write);
}

/* Enters, or takes the right to switch, or has to wait. */
static enum turn try_turn(struct fs_file *f, bool write, struct tr_file **out)
{
	bool good;
	enum turn turn;

	mutex_lock(&f->lock);
	/* Readers that come later wait behind a writer. */
	if (write && !f->io_writable)
		f->io_want_write = true;
	good = is_good(f);
	if (f->io_switching) {
		turn = TURN_WAIT;
	} else if (good) {
		f->io_users++;
		*out = f->io;
		turn = TURN_USE;
	} else if (f->io_users) {
		turn = TURN_WAIT;
	} else {
		f->io_switching = true;
		turn = TURN_SWITCH;
	}
	mutex_unlock(&f->lock);
	return turn;
}

/* Once a file: the next loss is of the same disk. */
static void tell_loss(struct fs_file *f, int error)
{
	char link[32], path[LOSS_PATH_MAX + 1];
	ssize_t n;

	if (atomic_exchange(&f->loss_told, true))
		return;
	snprintf(link, sizeof(link), "/proc/self/fd/%d", f->fd);
	n = readlink(link, path, LOSS_PATH_MAX);
	path[max_of(n, (ssize_t)0)] = 0;
	/* Clients choose names: they shall not write lines of ours. */
	for (char *c = path; *c; c++)
		if ((unsigned char)*c < ' ' || *c == 0x7f)
			*c = '?';
	log_line(LOG_ERROR, "data was lost of %s (inode %ju): %s", path,
		 (uintmax_t)f->ino, strerror(-error));
}

void fileio_note_loss(struct fs_file *f, struct tr_file *io,
		      struct fs_export *asked, int error, bool ends)
{
	uint64_t loss = tr_file_loss_generation(io);
	struct fs_export *written;
	bool lost;

	mutex_lock(&f->lock);
	lost = loss != f->loss || (ends && error);
	f->loss = loss;
	if (lost || error)
		cursor_error(&f->cursors, error ? error : -EIO);
	written = f->export;
	mutex_unlock(&f->lock);
	if (!lost)
		return;
	if (asked)
		fs_export_loss(asked);
	if (written && written != asked)
		fs_export_loss(written);
	tell_loss(f, error ?: err_last(cache_file_mapping(io)) ?: -EIO);
}

/* For writing if anybody wants that, which whoever only reads does without. */
static int open_wanted(struct fs_file *f, bool write, struct tr_file **io,
		       bool *writable)
{
	int ret = -EAGAIN;

	*writable = write || f->io_want_write;
	if (*writable)
		ret = open_as(f, O_RDWR, io);
	if (*writable && ret == -EAGAIN)
		ret = open_as(f, O_RDWR, io);
	if (ret && !write) {
		*writable = false;
		ret = open_as(f, O_RDONLY, io);
	}
	return ret;
}

/* Replaces the opening; who has io_switching set. */
static int switch_io(struct fs_file *f, bool write)
{
	struct tr_file *old = f->io, *io = NULL;
	bool writable = false;
	int ret;

	if (old) {
		fileio_note_loss(f, old, NULL, tr_fsync(old), true);
		/* Without pages and openings the cache forgets the file, and
		 * with it a size that is not the host's any more. */
		cache_file_forget(old);
		(void)tr_file_close(old);
	} else {
		file_count_fds(f, FILEIO_FDS);
	}
	ret = open_wanted(f, write, &io, &writable);
	if (!ret)
		attr_record_host(f);

	mutex_lock(&f->lock);
	f->io = io;
	f->io_writable = io && writable;
	f->io_want_write = false;
	f->io_stale = false;
	f->io_switching = false;
	if (io)
		f->loss = tr_file_loss_generation(io);
	mutex_unlock(&f->lock);
	waitq_wake_all(&f->changed);
	if (ret)
		file_count_fds(f, -FILEIO_FDS);
	return ret;
}

int fileio_start(struct fs_file *f, bool write, struct tr_file **out)
{
	enum turn turn;
	int ret;

	if (f->type == S_IFDIR)
		return -EISDIR;
	if (f->type != S_IFREG)
		return -EINVAL;
	for (;;) {
		wait_event(&f->changed,
			   (turn = try_turn(f, write, out)) != TURN_WAIT);
		if (turn == TURN_USE)
			return 0;
		ret = switch_io(f, write);
		if (ret)
			return ret;
	}
}

bool fileio_try_start(struct fs_file *f, bool write, struct tr_file **out)
{
	bool good;

	mutex_lock(&f->lock);
	good = is_good(f) && !f->io_switching && (f->io_writable || !write);
	if (good) {
		f->io_users++;
		*out = f->io;
	}
	mutex_unlock(&f->lock);
	return good;
}

void fileio_end(struct fs_file *f)
{
	bool last;

	mutex_lock(&f->lock);
	last = !--f->io_users;
	mutex_unlock(&f->lock);
	if (last)
		waitq_wake_all(&f->changed);
}

void fileio_facts(struct tr_file *io, struct fileio_facts *out)
{
	const struct mapping *m = cache_file_mapping(io);
	int64_t ns = atomic_load(&m->mtime_ns);

	*out = (struct fileio_facts){
		.size = mapping_size(m),
		.mtime = { ns / (int64_t)NS_PER_S, ns % (int64_t)NS_PER_S },
		.unit = m->unit,
		.offset_align = m->attr.offset_align,
		.mem_align = m->attr.mem_align,
		.read_align = m->attr.read_align,
	};
}

bool fileio_is_settled(struct tr_file *io)
{
	struct mapping *m = cache_file_mapping(io);
	bool busy;

	mutex_lock(&m->index_lock);
	busy = index_any(&m->index, TAG_DIRTY) ||
	       index_any(&m->index, TAG_EDGE) ||
	       index_any(&m->index, TAG_WRITEBACK);
	mutex_unlock(&m->index_lock);
	return !busy;
}

void fileio_refresh(struct fs_file *f)
{
	mutex_lock(&f->lock);
	f->io_stale = true;
	mutex_unlock(&f->lock);
}

/* ---- closing ---- */

void fileio_close(struct fs_file *f)
{
	struct timespec ts[2] = { { 0, UTIME_OMIT }, { 0 } };
	int ret;

	if (!f->io)
		return;
	attr_check_host(f, f->io);
	if (f->gone)
		cache_file_cancel(f->io);
	else
		fileio_note_loss(f, f->io, NULL, tr_fsync(f->io), true);
	ret = tr_file_close(f->io);
	if (ret && !f->gone && f->export) {
		fs_export_loss(f->export);
		tell_loss(f, ret);
	}
	f->io = NULL;
	/* The flush set it to now; clients were told the write's time. */
	ts[1] = f->view.mtime;
	if (f->own && !f->gone)
		(void)utimensat(f->fd, "", ts, AT_EMPTY_PATH);
}

void fileio_cancel(struct fs_file *f)
{
	struct tr_file *io;

	atomic_store(&f->gone, true);
	if (!fileio_try_start(f, false, &io))
		return;
	/* No client can ask for the bytes any more; on the host the file may
	 * still be open, even be executed, so it stays as it is. */
	cache_file_cancel(io);
	fileio_end(f);
}

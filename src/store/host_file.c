/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * Open files of the host store.
 *
 * Happy path: the name is opened as asked, on XFS as root opened once more by
 * handle (times stay), and made O_DIRECT; what direct I/O demands is asked and
 * the size noted. close gives back what was allocated ahead.
 *
 * Failure modes: what the host says of the name; -EINVAL or -EISDIR for what
 * is not a regular file. A descriptor is never closed here while writes on it
 * are unsynced: the cache syncs before it closes.
 */
#include "store/host.h"

#include "base/mem.h"

#include <assert.h>
#include <errno.h>
#include <fcntl.h>
#include <linux/fs.h>
#include <sys/ioctl.h>
#include <sys/stat.h>
#include <unistd.h>

#define FLAGS_TAKEN (O_ACCMODE | O_CREAT | O_EXCL | O_TRUNC)

int host_store_file_fd(struct tr_store_file *file)
{
	return host_file_of(file)->fd;
}

/* Checks what fd is and says which. */
static int identify(struct host_store *store, int fd, struct tr_file_id *id)
{
	unsigned int generation = 0;
	struct stat st;

	if (fstat(fd, &st))
		return -errno;
	if (S_ISDIR(st.st_mode))
		return -EISDIR;
	if (!S_ISREG(st.st_mode))
		return -EINVAL;
	if (st.st_dev != store->dev)
		return -EXDEV;
	/* The kernel writes an int whatever the number says. */
	(void)ioctl(fd, FS_IOC_GETVERSION, &generation);
	*id = (struct tr_file_id){ st.st_dev, st.st_ino, generation };
	return 0;
}

/* ---- the table of inodes ---- */

static struct cds_list_head *bucket_of(struct host_store *store, uint64_t ino)
{
	return &store->inodes[(ino * 0x9e3779b97f4a7c15ull) >> 54];
}
static_assert(HOST_BUCKETS == 1 << (64 - 54), "the hash fits the table");

static struct host_inode *inode_find(struct host_store *store,
				     const struct tr_file_id *id)
	REQUIRES(store->lock)
{
	struct host_inode *inode;

	cds_list_for_each_entry (inode, bucket_of(store, id->ino), node) {
		if (inode->id.ino == id->ino &&
		    inode->id.generation == id->generation)
			return inode;
	}
	return NULL;
}

/* The inode of id, with a reference more; NULL: no memory. */
static struct host_inode *inode_get(struct host_store *store,
				    const struct tr_file_id *id)
{
	struct host_inode *new = mem_zalloc(sizeof(*new)), *inode;

	if (!new)
		return NULL;
	new->id = *id;
	waitq_init(&new->turn_wq);
	mutex_lock(&store->lock);
	inode = inode_find(store, id);
	if (!inode) {
		inode = new;
		new = NULL;
		cds_list_add(&inode->node, bucket_of(store, id->ino));
	}
	inode->nr_files++;
	mutex_unlock(&store->lock);
	mem_free(new);
	return inode;
}

static void inode_put(struct host_store *store, struct host_inode *inode)
{
	bool last;

	mutex_lock(&store->lock);
	last = --inode->nr_files == 0;
	if (last)
		cds_list_del(&inode->node);
	mutex_unlock(&store->lock);
	if (last)
		mem_free(inode);
}

/* ---- opening and closing ---- */

/* Puts a descriptor that keeps times in the place of *fd if there can be one:
 * whether there is. */
static bool keep_times(struct host_store *store, int *fd, int access)
{
	int new;

	if (!store->by_handle)
		return false;
	new = host_xfs_reopen(store->dir_fd, *fd, access);
	if (new < 0)
		return false;
	close(*fd);
	*fd = new;
	return true;
}

int host_store_open_fd(struct tr_store *base, int fd,
		       struct tr_store_file **out)
{
	struct host_store *store = host_store_of(base);
	struct tr_file_id id;
	struct host_file *file;
	int access, err;

	err = identify(store, fd, &id);
	if (err)
		return err;
	file = mem_zalloc(sizeof(*file));
	if (!file)
		return -ENOMEM;
	file->base.store = base;
	file->fd = fd;
	file->tail_fd = -1;
	access = fcntl(fd, F_GETFL) & O_ACCMODE;
	file->writable = access != O_RDONLY;
	file->inode = inode_get(store, &id);
	err = file->inode ? host_file_probe(file) : -ENOMEM;
	if (!err)
		err = host_size_attach(file);
	if (err)
		goto fail;
	file->times_kept = keep_times(store, &file->fd,
				      access | (file->buffered ? 0 : O_DIRECT));
	atomic_fetch_add(&store->nr_open, 1);
	*out = &file->base;
	return 0;
fail:
	if (file->inode)
		inode_put(store, file->inode);
	mem_free(file);
	return err;
}

int host_open(struct tr_store *base, const char *name, int flags, mode_t mode,
	      struct tr_store_file **out)
{
	struct host_store *store = host_store_of(base);
	int fd, err;

	if (flags & ~FLAGS_TAKEN)
		return -EINVAL;
	/* The cache reads what it does not write whole. */
	if ((flags & O_ACCMODE) == O_WRONLY)
		flags = (flags & ~O_ACCMODE) | O_RDWR;
	/* Not to wait for what is at the other end of a FIFO. */
	fd = host_name_open(store, name,
			    flags | O_CLOEXEC | O_NOCTTY | O_NONBLOCK, mode);
	if (fd < 0)
		return fd;
	err = host_store_open_fd(base, fd, out);
	if (err)
		close(fd);
	return err;
}

void host_close(struct tr_store_file *base)
{
	struct host_store *store = host_store_of(base->store);
	struct host_file *file = host_file_of(base);

	host_size_detach(file);
	inode_put(store, file->inode);
	if (file->tail_fd >= 0)
		close(file->tail_fd);
	close(file->fd);
	atomic_fetch_sub(&store->nr_open, 1);
	mem_free(file);
}

int host_getattr(struct tr_store_file *base, struct tr_store_attr *out)
{
	struct host_file *file = host_file_of(base);
	struct stat st;

	if (fstat(file->fd, &st))
		return -errno;
	*out = (struct tr_store_attr){
		.id = file->inode->id,
		.size = st.st_size,
		.block = file->block,
		.offset_align = file->offset_align,
		.mem_align = file->mem_align,
		.read_align = file->read_align,
		.mtime = st.st_mtim,
		.ctime = st.st_ctim,
		.nlink = st.st_nlink,
	};
	return 0;
}

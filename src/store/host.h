/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * Files of a host directory as a store: what front ends that open files by
 * handle need beside tr_store_host_open(), and what the parts of the host
 * store share.
 */
#ifndef TR_STORE_HOST_H
#define TR_STORE_HOST_H

#include "base/lock.h"
#include "base/wait.h"
#include "ring/ring.h"

#include <tailrace/store.h>
#include <urcu/list.h>

/*
 * Makes a file of the store of an open descriptor of a regular file on the
 * directory's file system, opened for reading, or reading and writing. The
 * descriptor becomes the store's on success and may be closed or changed.
 * -EINVAL: not a regular file; -EXDEV: of another file system; -ENOMEM or what
 * the host says. May block.
 */
int host_store_open_fd(struct tr_store *store, int fd,
		       struct tr_store_file **out) MUST_CHECK;

/* The descriptor of the store's directory; it stays the store's. */
int host_store_dir_fd(struct tr_store *store);

/* The descriptor that carries the file's data; it stays the file's. */
int host_store_file_fd(struct tr_store_file *file);

/* ---- shared by src/store/host*.c ---- */

/* Lists of the table of open inodes: short up to some ten thousand files. */
#define HOST_BUCKETS 1024

struct host_store {
	struct tr_store base;
	int dir_fd; /* (C) holds the lock */
	struct ring *ring; /* (C) */
	uint64_t ahead_min; /* (C) bytes */
	uint64_t dev; /* (C) the directory's file system */
	struct mutex lock; /* LOCK_STORE: the table of inodes */
	struct cds_list_head inodes[HOST_BUCKETS] GUARDED(lock);
	bool by_handle; /* (C) XFS descriptors that leave the times alone */
	atomic_bool no_openat2; /* found out once */
	atomic_bool no_fallocate; /* found out once */
	atomic_uint nr_open; /* files and queues */
};

/*
 * What all openings of one file in the store share. size and allocated are
 * changed by whoever holds the turn; they are read without it by prepare,
 * where an old value only means taking the turn.
 */
struct host_inode {
	struct cds_list_head node GUARDED(store->lock);
	struct tr_file_id id; /* (C) */
	unsigned nr_files GUARDED(store->lock);
	unsigned nr_writable; /* by turn: of them, open for writing */
	/* The turn: one change of size or allocation at a time. */
	atomic_bool turn;
	struct waitq turn_wq;
	bool tail_cached; /* by turn: the host may have a page of the tail */
	atomic_llong size; /* what the host has */
	/* Allocated without a gap up to here, as far as we did it; 0: not at
	 * all. */
	atomic_llong allocated;
};

struct host_file {
	struct tr_store_file base;
	struct host_inode *inode; /* (C) */
	int fd; /* (C) data, O_DIRECT unless buffered */
	bool writable; /* (C) */
	bool buffered; /* (C) the host cannot do direct I/O on it */
	bool times_kept; /* (C) writes through fd leave mtime alone */
	int tail_fd; /* by the inode's turn; -1: not needed yet */
	uint32_t block; /* (C) */
	uint32_t offset_align, mem_align, read_align; /* (C) */
};

struct host_queue {
	struct tr_queue base;
	struct ring_queue *ring;
};

static inline struct host_store *host_store_of(struct tr_store *store)
{
	return (struct host_store *)store;
}

static inline struct host_file *host_file_of(struct tr_store_file *file)
{
	return (struct host_file *)file;
}

/* host_file.c */
int host_open(struct tr_store *store, const char *name, int flags, mode_t mode,
	      struct tr_store_file **out);
void host_close(struct tr_store_file *file);
int host_getattr(struct tr_store_file *file, struct tr_store_attr *out);

/* host_align.c: fills in block and alignments and whether O_DIRECT is on. */
int host_file_probe(struct host_file *file);

/* host_name.c: opens a name below the directory and nowhere else. */
int host_name_open(struct host_store *store, const char *name, int flags,
		   mode_t mode);

/* host_xfs.c */
bool host_xfs_usable(int dir_fd);
/* The file of fd again, with flags, as a descriptor that leaves the times
 * alone: the descriptor or -errno. */
int host_xfs_reopen(int dir_fd, int fd, int flags);

/* host_size.c */
int host_prepare(struct tr_store_file *file, int64_t off, size_t len,
		 int64_t floor, bool dense);
int host_write_tail(struct tr_store_file *file, const void *buf, size_t len,
		    int64_t off);
int host_sync(struct tr_store_file *file, bool datasync);
int host_truncate(struct tr_store_file *file, int64_t size);
int host_punch(struct tr_store_file *file, int64_t off, int64_t len);
int host_allocate(struct tr_store_file *file, int64_t off, int64_t len,
		  bool keep_size);
int host_seek(struct tr_store_file *file, int64_t off, int whence,
	      int64_t *out);
int host_set_mtime(struct tr_store_file *file, struct timespec mtime);
/*
 * An opening begins or ends. The first that may write gives back what a killed
 * process had allocated ahead, the last what we have, and drops pages.
 */
int host_size_attach(struct host_file *file) MUST_CHECK;
void host_size_detach(struct host_file *file);

#endif

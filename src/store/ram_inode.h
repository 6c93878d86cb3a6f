/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * The content of the emulated device: files as sparse sets of blocks, each
 * with what is on the medium beside what is in the device's volatile cache.
 *
 * Nothing here locks, waits or knows of requests: the owner (store/ram.c)
 * holds its lock around every call.
 */
#ifndef TR_STORE_RAM_INODE_H
#define TR_STORE_RAM_INODE_H

#include "base/compiler.h"

#include <stdbool.h>
#include <sys/types.h>
#include <sys/uio.h>
#include <time.h>
#include <urcu/list.h>

/* What all files of one device share. */
struct ram_disk {
	uint32_t block; /* bytes, power of two */
	uint32_t sector; /* bytes: what is written whole or not at all */
	uint64_t capacity; /* bytes; 0: no limit */
	uint64_t used; /* bytes in blocks that exist */
	bool volatile_cache;
	uint64_t seed;
	uint64_t crashes; /* so far: each decides anew */
};

struct ram_unit;

struct ram_inode {
	struct cds_list_head node; /* the owner's */
	struct ram_disk *disk;
	char *name;
	uint64_t ino;
	int64_t size;
	int64_t stable_size; /* meaningful if size_unsynced */
	bool size_unsynced;
	struct timespec mtime, ctime;
	/* Hash table of blocks by number, chained. */
	struct ram_unit **buckets;
	uint64_t nr_buckets; /* power of two */
	uint64_t nr_units;
};

/* NULL: no memory. Owned by the caller, ended by ram_inode_destroy(). */
struct ram_inode *ram_inode_create(struct ram_disk *disk, const char *name,
				   uint64_t ino) MUST_CHECK;
void ram_inode_destroy(struct ram_inode *inode);

/*
 * Moves len bytes between the vector and [off, off + len). A write goes past
 * end of file and moves it; unsynced says that power loss may undo it. Bytes
 * moved, fewer at end of file (read) or when blocks run out (write), or
 * -ENOSPC, -ENOMEM when none were.
 */
ssize_t ram_inode_read(struct ram_inode *inode, const struct iovec *iov,
		       int64_t off, size_t len);
ssize_t ram_inode_write(struct ram_inode *inode, const struct iovec *iov,
			int64_t off, size_t len, bool unsynced);

/* Each returns 0, or -ENOMEM or -ENOSPC with part of the work done. */
int ram_inode_truncate(struct ram_inode *inode, int64_t size);
int ram_inode_punch(struct ram_inode *inode, int64_t off, int64_t len);
int ram_inode_allocate(struct ram_inode *inode, int64_t off, int64_t len);

/* As the store's seek. */
int ram_inode_seek(struct ram_inode *inode, int64_t off, int whence,
		   int64_t *out);

/* What is in the cache is on the medium. */
void ram_inode_sync(struct ram_inode *inode);

/* Of each unsynced block and of the size the medium has the old, the new, or
 * (block) some sectors of each, by the disk's seed; then all is synced. */
void ram_inode_crash(struct ram_inode *inode);

#endif

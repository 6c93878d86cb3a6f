/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * Attributes as clients see them.
 *
 * A flush sets the host's mtime and ctime to now. Clients must not see that, so
 * from a file's first write until it leaves the table its size, mtime and ctime
 * are answered from memory (fs_file.view). What somebody else does to the file
 * on the host is noticed by comparing with what was recorded after our last
 * device write, and never while data is dirty.
 */
#ifndef TR_FS_ATTR_H
#define TR_FS_ATTR_H

#include "fs/file.h"

#include <sys/stat.h>

struct fs_attr {
	mode_t mode; /* type and permission */
	uint32_t nlink, uid, gid;
	int64_t size;
	uint64_t used; /* bytes on disk */
	uint32_t rdev_major, rdev_minor;
	uint64_t fsid; /* of the export */
	uint64_t fileid;
	struct timespec atime, mtime, ctime;
};

/* Before a change: RFC 1813's wcc_attr. */
struct fs_before {
	bool valid;
	int64_t size;
	struct timespec mtime, ctime;
};

/* The attributes now, as seen through export x. -errno of the host. */
int attr_get(struct fs_file *f, const struct fs_export *x,
	     struct fs_attr *out) MUST_CHECK;

/* As attr_get() from what the host just said. */
void attr_from_stat(const struct stat *st, const struct fs_export *x,
		    struct fs_attr *out);

/* What wcc data wants of attributes. */
void attr_before(const struct fs_attr *a, struct fs_before *out);

/* Around a write: memory answers from the first one on, and what the device is
 * given is known to be ours. */
int attr_write_start(struct fs_file *f) MUST_CHECK;
void attr_write_end(struct fs_file *f);

/*
 * A write ended: raises size and times in one step and tells what they were
 * before and are now; a->size, mtime, ctime are overwritten.
 */
void attr_wrote(struct fs_file *f, struct tr_file *io, struct fs_before *before,
		struct fs_attr *a);

/* A write failed; what it did before that is shown all the same. */
void attr_write_failed(struct fs_file *f, struct tr_file *io);

/* Around a change of the host's attributes other than by writing data: between
 * the two no difference is taken for somebody else's. */
void attr_change_start(struct fs_file *f);
void attr_change_end(struct fs_file *f);

/*
 * What was changed since attr_change_start() was changed by us: the view follows,
 * mtime only if that was set, size if io, its opening, is given.
 */
void attr_follow_host(struct fs_file *f, struct tr_file *io, bool mtime_set);

/* Gives up the view if somebody else changed the host's file, as far as that can
 * be told; before the view's times are set there. */
void attr_check_host(struct fs_file *f, struct tr_file *io);

/* Remembers the host's attributes as ours. */
void attr_record_host(struct fs_file *f);

#endif

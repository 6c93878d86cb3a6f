/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * Changing attributes, and what every change reports.
 */
#ifndef TR_FS_SETATTR_H
#define TR_FS_SETATTR_H

#include "fs/attr.h"

enum time_how { TIME_KEEP, TIME_NOW, TIME_GIVEN };

struct fs_sattr {
	bool set_mode, set_uid, set_gid, set_size;
	mode_t mode;
	uint32_t uid, gid;
	int64_t size; /* negative: larger than any file */
	enum time_how atime_how, mtime_how;
	struct timespec atime, mtime;
};

/* Attributes around a change, both taken while nobody else here made one. */
struct fs_change {
	struct fs_before before;
	bool after_valid;
	struct fs_attr after;
};

/*
 * Changes what s says, durable on sync exports. guard, if not NULL, is the
 * ctime that the caller believes the file to have: -ECANCELED if it has not.
 * -EROFS, -EACCES, -EPERM, -EISDIR and what the host says. wcc is filled in as
 * far as it is known, also on failure.
 */
int setattr_change(const struct fs_request *r, struct fs_file *f,
		   const struct fs_sattr *s, const struct timespec *guard,
		   struct fs_change *wcc) MUST_CHECK;

/* The same on a file that was just made by the caller: no wcc, no sync. */
int setattr_new(const struct fs_request *r, struct fs_file *f,
		const struct fs_sattr *s) MUST_CHECK;

/* A write or truncation by other than root takes setuid and setgid away. */
void setattr_drop_suid(const struct fs_request *r, struct fs_file *f);

#endif

/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * Names: looking up, making, linking, renaming and removing, each under the
 * caller's ids, durable on sync exports before it returns.
 *
 * Names are NUL-terminated and were not checked; none leads out of the export.
 * Everything here may block.
 */
#ifndef TR_FS_NAME_H
#define TR_FS_NAME_H

#include "fs/setattr.h"

#define FS_NAME_MAX 255
#define FS_PATH_MAX 4095

enum create_how {
	CREATE_UNCHECKED, /* what is there will do */
	CREATE_GUARDED, /* -EEXIST if something is there */
	CREATE_EXCLUSIVE, /* unless it was made with this verifier */
};

struct fs_new {
	mode_t type; /* S_IFREG, S_IFDIR, S_IFLNK, ... */
	enum create_how how; /* of regular files; others are guarded */
	uint8_t verifier[8]; /* CREATE_EXCLUSIVE */
	struct fs_sattr attr;
	const char *target; /* S_IFLNK */
	uint32_t rdev_major, rdev_minor;
};

/* The export's root, with a reference. */
int name_root(const struct fs_request *r, struct fs_file **out) MUST_CHECK;

/* The file of a name, with a reference. "." and ".." are understood. -EACCES:
 * also where another file system is mounted there. */
int name_lookup(const struct fs_request *r, struct fs_file *dir,
		const char *name, struct fs_file **out) MUST_CHECK;

/* A directory below the export's root, by a path without links and "..". */
int name_walk(const struct fs_request *r, const char *path,
	      struct fs_file **out) MUST_CHECK;

int name_create(const struct fs_request *r, struct fs_file *dir,
		const char *name, const struct fs_new *what,
		struct fs_file **out, struct fs_change *wcc) MUST_CHECK;

/* REMOVE, or RMDIR if directory is set. */
int name_remove(const struct fs_request *r, struct fs_file *dir,
		const char *name, bool directory,
		struct fs_change *wcc) MUST_CHECK;

int name_rename(const struct fs_request *r, struct fs_file *from,
		const char *from_name, struct fs_file *to, const char *to_name,
		struct fs_change *from_wcc,
		struct fs_change *to_wcc) MUST_CHECK;

int name_link(const struct fs_request *r, struct fs_file *f,
	      struct fs_file *dir, const char *name,
	      struct fs_change *wcc) MUST_CHECK;

/* The target of a symbolic link into buf (FS_PATH_MAX + 1); its length, or
 * -EINVAL: no link. */
int name_read_link(const struct fs_request *r, struct fs_file *f,
		   char *buf) MUST_CHECK;

#endif

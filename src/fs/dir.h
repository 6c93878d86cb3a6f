/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * Listing directories. No listing is kept: a cookie is the host's own offset
 * (d_off), and each call opens the directory, seeks there and reads on.
 */
#ifndef TR_FS_DIR_H
#define TR_FS_DIR_H

#include "fs/file.h"

/* Bytes of one getdents64(2): a READDIR reply of 64 KiB in one or two. */
#define DIR_BUFFER 32768

struct dir_entry {
	uint64_t fileid;
	uint64_t cookie; /* of what follows it */
	const char *name; /* until the next dir_next() */
};

/* On the caller's stack; belongs to it. */
struct dir_list {
	int fd;
	int pos, len; /* in buf */
	uint64_t _Alignas(8) buf[DIR_BUFFER / 8];
};

/*
 * Opens the directory under the caller's ids and goes to the cookie, 0 for the
 * start. -EACCES, -ENOTDIR; -EILSEQ: the host refuses the cookie. Closed by
 * dir_end().
 */
int dir_start(const struct fs_request *r, struct fs_file *dir, uint64_t cookie,
	      struct dir_list *list) MUST_CHECK;

/* 1 and *out; 0 at the end; or -errno. "." and ".." are listed. */
int dir_next(struct dir_list *list, struct dir_entry *out) MUST_CHECK;
void dir_end(struct dir_list *list);

/* Whether the host's offsets may be used as cookies in the file system of the
 * directory (O_PATH fd): 0, -EOPNOTSUPP, or -errno. */
int dir_check_cookies(int fd) MUST_CHECK;

#endif

/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * What a caller may do with a file: asked of the host kernel under the
 * caller's ids, so that its ACLs count, and remembered for a second.
 */
#ifndef TR_FS_ACCESS_H
#define TR_FS_ACCESS_H

#include "fs/identity.h"

enum access_right {
	ACCESS_READ = 1 << 0,
	ACCESS_WRITE = 1 << 1,
	ACCESS_EXEC = 1 << 2,
	ACCESS_OWNER = 1 << 3,
};

/* Callers remembered per file: more share it only on build servers' headers,
 * which then pay a look-up. */
#define ACCESS_SLOTS 4

/* How long an answer of the host is believed. */
#define ACCESS_AGE_NS 1000000000ull

struct access_slot {
	struct fs_cred cred;
	uint64_t until_ns; /* 0: free */
	unsigned rights;
};

/* Guarded by the file's lock. */
struct access_cache {
	struct access_slot slots[ACCESS_SLOTS];
	unsigned hand;
	/* Counts attribute changes, so that an answer from before one is not
	 * kept after it. */
	unsigned changes;
};

struct fs_file;

/* The set of enum access_right. Blocks on the host if it is not known. */
int access_rights(struct fs_file *f, const struct fs_cred *cred,
		  unsigned *rights) MUST_CHECK;

/* 0 or -EACCES: reading and writing as NFS has it, where owners always may and
 * execute permission suffices to read. */
int access_check(struct fs_file *f, const struct fs_cred *cred,
		 enum access_right right) MUST_CHECK;

/* The file's attributes changed. */
void access_forget(struct fs_file *f);

#endif

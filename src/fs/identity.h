/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * Acting as the caller: the ids under which the host kernel is asked.
 *
 * Ids belong to the thread; identity_enter() and identity_leave() nest not and
 * stand around single host calls. In a server that was not started as root
 * they do nothing: all callers are the one server user.
 */
#ifndef TR_FS_IDENTITY_H
#define TR_FS_IDENTITY_H

#include "fs/exports.h"

/* RFC 5531, appendix A: an AUTH_SYS credential has at most 16 groups. */
#define FS_GROUPS_MAX 16

struct fs_cred {
	uint32_t uid, gid;
	uint32_t nr_groups;
	uint32_t groups[FS_GROUPS_MAX];
};

/* Replaces ids as the export's options say. */
void identity_squash(struct fs_cred *cred, const struct export_options *o);

bool identity_same(const struct fs_cred *a, const struct fs_cred *b);

/* Whether this process can act for others at all. */
bool identity_possible(void);

/* -EPERM, and nothing changed, if the kernel refuses. */
int identity_enter(const struct fs_cred *cred) MUST_CHECK;
void identity_leave(const struct fs_cred *cred);

#endif

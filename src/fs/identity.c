/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * Per-thread identities by raw system calls: the C library's wrappers change
 * every thread of the process.
 *
 * Happy path: groups, gid, then uid; back in reverse. A uid other than 0 takes
 * the file capabilities from the thread's effective set, so the kernel judges
 * it as that user; 0 gives them back. setfsuid(2) tells only the old id: asking
 * again tells whether it was accepted.
 *
 * Invariant: outside enter/leave a worker has the process's own ids; failure
 * to go back would let later requests act as somebody else and is fatal.
 */
#include "fs/identity.h"

#include <assert.h>
#include <errno.h>
#include <string.h>
#include <sys/syscall.h>
#include <unistd.h>

void identity_squash(struct fs_cred *cred, const struct export_options *o)
{
	uint32_t i;

	if (o->all_squash || (o->root_squash && !cred->uid)) {
		cred->uid = o->anon_uid;
		cred->gid = o->anon_gid;
		cred->nr_groups = 0;
		return;
	}
	if (!o->root_squash)
		return;
	if (!cred->gid)
		cred->gid = o->anon_gid;
	for (i = 0; i < cred->nr_groups; i++)
		if (!cred->groups[i])
			cred->groups[i] = o->anon_gid;
}

bool identity_same(const struct fs_cred *a, const struct fs_cred *b)
{
	return a->uid == b->uid && a->gid == b->gid &&
	       a->nr_groups == b->nr_groups &&
	       !memcmp(a->groups, b->groups,
		       a->nr_groups * sizeof(a->groups[0]));
}

bool identity_possible(void)
{
	return !geteuid();
}

static uint32_t raw_id(long nr, uint32_t id)
{
	return (uint32_t)syscall(nr, id);
}

/* A server started as root has no supplementary groups: see cmd/serve.c. */
static bool is_own(const struct fs_cred *cred)
{
	return !cred->uid && !cred->gid && !cred->nr_groups;
}

int identity_enter(const struct fs_cred *cred)
{
	if (!identity_possible() || is_own(cred))
		return 0;
	if (syscall(SYS_setgroups, (size_t)cred->nr_groups, cred->groups))
		return -EPERM;
	raw_id(SYS_setfsgid, cred->gid);
	raw_id(SYS_setfsuid, cred->uid);
	if (raw_id(SYS_setfsuid, UINT32_MAX) == cred->uid &&
	    raw_id(SYS_setfsgid, UINT32_MAX) == cred->gid)
		return 0;
	identity_leave(cred);
	return -EPERM;
}

void identity_leave(const struct fs_cred *cred)
{
	uint32_t own = 0;
	long left;

	if (!identity_possible() || is_own(cred))
		return;
	raw_id(SYS_setfsuid, 0);
	raw_id(SYS_setfsgid, 0);
	left = cred->nr_groups ? syscall(SYS_setgroups, (size_t)0, &own) : 0;
	own = raw_id(SYS_setfsuid, UINT32_MAX);
	assert(!own);
	assert(!left);
}

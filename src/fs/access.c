/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * Rights of callers.
 *
 * Happy path: a slot of the file has the caller's ids and is young. Else the
 * host is asked three times under the caller's ids and the answer takes the
 * next slot. Failure modes: a caller whose ids cannot be taken on gets -EPERM.
 */
#include "fs/access.h"

#include "base/clock.h"
#include "fs/file.h"

#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

/* The C library's wrapper lets no empty path through in older versions. */
static bool may(int fd, int mode)
{
	return !syscall(SYS_faccessat2, fd, "", mode,
			AT_EACCESS | AT_EMPTY_PATH);
}

static int ask_host(struct fs_file *f, const struct fs_cred *cred,
		    unsigned *rights)
{
	struct stat st;
	unsigned r = 0;
	int ret;

	if (fstat(f->fd, &st))
		return -errno;
	atomic_store(&f->mode, st.st_mode & 07777);
	ret = identity_enter(cred);
	if (ret)
		return ret;
	r |= may(f->fd, R_OK) ? ACCESS_READ : 0;
	r |= may(f->fd, W_OK) ? ACCESS_WRITE : 0;
	r |= may(f->fd, X_OK) ? ACCESS_EXEC : 0;
	identity_leave(cred);
	if (identity_possible() ? cred->uid == st.st_uid
				: geteuid() == st.st_uid)
		r |= ACCESS_OWNER;
	*rights = r;
	return 0;
}

static bool look_up(struct fs_file *f, const struct fs_cred *cred,
		    unsigned *rights, unsigned *changes)
{
	struct access_cache *c = &f->access;
	uint64_t now = clock_ns();
	bool hit = false;
	int i;

	mutex_lock(&f->lock);
	*changes = c->changes;
	for (i = 0; i < ACCESS_SLOTS && !hit; i++) {
		hit = c->slots[i].until_ns > now &&
		      identity_same(&c->slots[i].cred, cred);
		if (hit)
			*rights = c->slots[i].rights;
	}
	mutex_unlock(&f->lock);
	return hit;
}

int access_rights(struct fs_file *f, const struct fs_cred *cred,
		  unsigned *rights)
{
	struct access_cache *c = &f->access;
	struct access_slot *slot;
	unsigned changes;
	int ret;

	if (look_up(f, cred, rights, &changes))
		return 0;
	ret = ask_host(f, cred, rights);
	if (ret)
		return ret;
	mutex_lock(&f->lock);
	if (changes == c->changes) {
		slot = &c->slots[c->hand++ % ACCESS_SLOTS];
		slot->cred = *cred;
		slot->rights = *rights;
		slot->until_ns = clock_ns() + ACCESS_AGE_NS;
	}
	mutex_unlock(&f->lock);
	return 0;
}

int access_check(struct fs_file *f, const struct fs_cred *cred,
		 enum access_right right)
{
	unsigned rights, enough = right | ACCESS_OWNER;
	int ret;

	ret = access_rights(f, cred, &rights);
	if (ret)
		return ret;
	if (right == ACCESS_READ)
		enough |= ACCESS_EXEC;
	return rights & enough ? 0 : -EACCES;
}

void access_forget(struct fs_file *f)
{
	int i;

	mutex_lock(&f->lock);
	for (i = 0; i < ACCESS_SLOTS; i++)
		f->access.slots[i].until_ns = 0;
	f->access.changes++;
	mutex_unlock(&f->lock);
}

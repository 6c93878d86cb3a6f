/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * Sharing of host syncs among concurrent callers on one file or directory.
 * A caller needs a sync that started after its change; all who wait at one
 * moment are served by the next.
 */
#ifndef TR_FS_SYNCGROUP_H
#define TR_FS_SYNCGROUP_H

#include "base/lock.h"
#include "base/wait.h"

struct syncgroup {
	struct mutex lock; /* LOCK_LEAF */
	uint64_t started GUARDED(lock); /* syncs begun so far */
	uint64_t done GUARDED(lock); /* the newest that ended */
	uint64_t failed GUARDED(lock); /* the newest that failed */
	int error GUARDED(lock); /* why */
	bool running GUARDED(lock);
	struct waitq ended;
};

void syncgroup_init(struct syncgroup *g);
void syncgroup_fini(struct syncgroup *g);

/*
 * Returns when a sync(arg) that began after this call has ended, and its
 * result: the caller's own, or another's. Blocks; no lock may be held.
 */
int syncgroup_sync(struct syncgroup *g, int (*sync)(void *arg), void *arg);

#endif

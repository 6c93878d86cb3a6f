/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * Group commit of host syncs.
 *
 * Happy path: nobody is at work, the caller syncs. Otherwise it waits; when the
 * running sync ends one of those who wait leads the next, which serves all of
 * them. A failure is the answer to everyone whom that sync served.
 *
 * A waiter that wakes late must not take a later success for its own: which sync
 * failed last is remembered, and a failure after one's own is reported too.
 *
 * Invariant: done <= started, and started - done is 1 while running, else 0.
 */
#include "fs/syncgroup.h"

void syncgroup_init(struct syncgroup *g)
{
	mutex_init(&g->lock, LOCK_LEAF);
	g->started = g->done = g->failed = 0;
	g->error = 0;
	g->running = false;
	waitq_init(&g->ended);
}

void syncgroup_fini(struct syncgroup *g)
{
	mutex_fini(&g->lock);
}

/* Leads if nobody does; tells whether the caller's turn has passed. */
static bool try_end(struct syncgroup *g, uint64_t need, bool *lead, int *error)
{
	bool over;

	mutex_lock(&g->lock);
	over = g->done >= need;
	*lead = !over && !g->running;
	if (over)
		*error = g->failed >= need ? g->error : 0;
	if (*lead) {
		g->running = true;
		g->started++;
	}
	mutex_unlock(&g->lock);
	return over || *lead;
}

int syncgroup_sync(struct syncgroup *g, int (*sync)(void *arg), void *arg)
{
	bool lead = false;
	uint64_t need;
	int error = 0;

	mutex_lock(&g->lock);
	need = g->started + 1;
	mutex_unlock(&g->lock);
	wait_event(&g->ended, try_end(g, need, &lead, &error));
	if (!lead)
		return error;

	error = sync(arg);
	mutex_lock(&g->lock);
	g->done = g->started;
	if (error) {
		g->failed = g->started;
		g->error = error;
	}
	g->running = false;
	mutex_unlock(&g->lock);
	waitq_wake_all(&g->ended);
	return error;
}

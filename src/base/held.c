/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * The lock checker: a list per task of the mutexes it holds.
 *
 * A task that is about to wait for a mutex must hold none of the same or an
 * inner rank; then no cycle of waiting tasks can form. The message names both
 * ranks and everything held, because the core alone does not show them.
 *
 * Invariant: m[0..nr) are held by the task, in the order they were taken.
 */
#include "base/held.h"

#include <stdio.h>
#include <stdlib.h>

#include "base/lock.h"

const char *lock_rank_name(unsigned rank)
{
	static const char *const names[LOCK_RANKS] = {
		[LOCK_CONTROL] = "control", [LOCK_EXPORTS] = "exports",
		[LOCK_CONN] = "conn",	    [LOCK_FILES] = "files",
		[LOCK_FILE] = "file",	    [LOCK_CACHE] = "cache",
		[LOCK_SYNC] = "sync",	    [LOCK_FOLIO] = "folio",
		[LOCK_INDEX] = "index",	    [LOCK_EDGE] = "edge",
		[LOCK_WB] = "wb",	    [LOCK_LRU] = "lru",
		[LOCK_STORE] = "store",	    [LOCK_RING] = "ring",
		[LOCK_SLAB] = "slab",	    [LOCK_ARENA] = "arena",
		[LOCK_LEAF] = "leaf",
	};

	return rank < LOCK_RANKS ? names[rank] : "unknown";
}

static void held_die(const struct held *h, const char *what,
		     const struct mutex *m)
{
	unsigned i;

	fprintf(stderr, "lock check: %s", what);
	if (m)
		fprintf(stderr, " (%s %p)", lock_rank_name(m->rank),
			(const void *)m);
	fprintf(stderr, "; held, outermost first:");
	for (i = 0; i < h->nr; i++)
		fprintf(stderr, " %s %p", lock_rank_name(h->m[i]->rank),
			(const void *)h->m[i]);
	fprintf(stderr, "%s\n", h->nr ? "" : " none");
	abort();
}

void held_check(const struct held *h, const struct mutex *m)
{
	unsigned i;

	for (i = 0; i < h->nr; i++) {
		if (h->m[i] == m)
			held_die(h, "mutex taken twice", m);
		if (h->m[i]->rank >= m->rank)
			held_die(h, "mutex taken out of order", m);
	}
}

void held_push(struct held *h, const struct mutex *m)
{
	if (h->nr == HELD_MAX)
		held_die(h, "too many mutexes held", m);
	h->m[h->nr++] = m;
}

void held_pop(struct held *h, const struct mutex *m)
{
	unsigned i;

	for (i = h->nr; i > 0; i--)
		if (h->m[i - 1] == m)
			break;
	if (!i)
		held_die(h, "mutex unlocked by a task that has it not", m);
	for (; i < h->nr; i++)
		h->m[i - 1] = h->m[i];
	h->nr--;
}

void held_assert(const struct held *h, const struct mutex *m)
{
	unsigned i;

	for (i = 0; i < h->nr; i++)
		if (h->m[i] == m)
			return;
	held_die(h, "mutex should be held", m);
}

void held_assert_none(const struct held *h)
{
	if (h->nr)
		held_die(h, "no mutex may be held here", NULL);
}

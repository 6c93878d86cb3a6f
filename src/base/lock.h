/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * Ranked mutexes.
 *
 * Every mutex has a rank from the one enum below, outermost first. Taking an
 * equal or outer rank while holding an inner one aborts in test builds
 * (TR_LOCK_CHECK); so does a wait (base/wait.h) that would sleep while any
 * mutex is held. mutex_try_lock() never waits, so it may be used against the
 * order; what it took counts as held.
 *
 * In the race explorer's build (TR_EXPLORE) a mutex is a scheduling point of
 * the explorer and never blocks the thread.
 */
#ifndef TR_BASE_LOCK_H
#define TR_BASE_LOCK_H

#include "base/compiler.h"

#include <stdbool.h>

#ifndef TR_EXPLORE
#include <pthread.h>
#endif

/*
 * The folio lock is a bit of the folio's state, not a mutex; its rank stands
 * here so that the order is written in one place: a task that holds a mutex
 * of an inner rank never waits for a folio.
 */
enum lock_rank {
	LOCK_CONTROL, /* control socket, parameters */
	LOCK_EXPORTS, /* export table */
	LOCK_CONN, /* one connection */
	LOCK_FILES, /* file table of a front end */
	LOCK_FILE, /* one of its files */
	LOCK_CACHE, /* a cache's table of mappings */
	LOCK_SYNC, /* a mapping's group commit */
	LOCK_FOLIO, /* the folio lock: a state bit, listed for its place */
	LOCK_INDEX, /* a mapping's index, tags and counters' wb */
	LOCK_EDGE, /* a cache's list of incomplete edges */
	LOCK_WB, /* a writeback domain's lists */
	LOCK_LRU, /* one LRU shard */
	LOCK_STORE, /* a store's own state */
	LOCK_RING, /* submission contexts */
	LOCK_SLAB, /* one slab */
	LOCK_ARENA, /* the page allocator */
	LOCK_LEAF, /* counters, logs: nothing is taken inside */
	LOCK_RANKS
};

struct mutex {
#ifdef TR_EXPLORE
	void *owner;
#else
	pthread_mutex_t m;
#endif
	enum lock_rank rank;
};

void mutex_init(struct mutex *m, enum lock_rank rank);
void mutex_fini(struct mutex *m);
void mutex_lock(struct mutex *m);
bool mutex_try_lock(struct mutex *m);
void mutex_unlock(struct mutex *m);

/* Aborts unless the calling task holds m (test builds; else does nothing). */
void mutex_assert_held(const struct mutex *m);

/* Aborts if the calling task holds any mutex (test builds). */
void lock_assert_none(void);

#endif

/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * What all parts of one cache share: memory, parameters, counters, the table
 * of mappings, the list of incomplete edges, and the wait queues.
 */
#ifndef TR_FOLIO_CORE_H
#define TR_FOLIO_CORE_H

#include "base/counter.h"
#include "base/lock.h"
#include "base/task.h"
#include "base/wait.h"
#include "folio/arena.h"
#include "folio/folio.h"
#include "folio/index.h"
#include "folio/slab.h"

#include <tailrace/cache.h>

#include <urcu/list.h>

/* LRU lists, by the folio's address: enough that their locks do not meet. */
#define LRU_SHARDS 8

#define MAPPING_BUCKETS 4096

/* Chunks of the arena that are remembered for devices to come: 256 GiB. */
#define CHUNKS_MAX 4096

/* Sizes that per-block state comes in: blocks.c. */
#define BLOCKS_SLABS 6

struct lru {
	struct mutex lock; /* LOCK_LRU */
	struct cds_list_head inactive GUARDED(lock); /* newest first */
	struct cds_list_head active GUARDED(lock);
	uint64_t nr_inactive GUARDED(lock); /* pages */
	uint64_t nr_active GUARDED(lock);
} ALIGNED(CACHE_LINE);

struct parameters {
#define TR_FIELD_(name, unit, dflt, least, most, sentence) _Atomic int64_t name;
	TR_PARAMETERS(TR_FIELD_)
#undef TR_FIELD_
};

/* Totals that do not belong to a wb or bdi. */
enum cache_count {
	COUNT_EDGES_COMPLETED,
	COUNT_EDGES_AGED,
	COUNT_EDGES_EVICTED,
	COUNT_EDGES_DETACHED,
	COUNT_LAZY_FILLS,
	COUNT_FILLS,
	COUNT_DROPPED_BEHIND,
	COUNT_RECLAIMED,
	COUNT_THROTTLED,
	COUNT_THROTTLED_NS,
	COUNT_DIRECT_FALLBACKS,
	COUNT_ADOPTED,
	COUNT_READ_HITS,
	COUNT_READ_MISSES,
	COUNT_SYNC_CALLS,
	COUNT_WRITEBACK_ERRORS,
	COUNT_LOST_PAGES,
	CACHE_COUNTS
};

struct throttle;
struct fills;

/* (C) constant after creation, (A) atomic, else the lock's name. */
struct tr_cache {
	uint64_t size; /* (C) bytes */
	bool no_flushers; /* (C) */
	struct arena *arena; /* (C) */
	struct slab nodes; /* index nodes */
	struct slab edges; /* struct edge */
	struct slab blocks[BLOCKS_SLABS];
	struct lru lru[LRU_SHARDS];
	atomic_uint lru_hand; /* (A) shard that reclaim looks at next */
	struct parameters params; /* (A) */
	struct counter count[CACHE_COUNTS];
	/* Pages, the sums over all wbs: what limits are compared with. */
	struct counter reclaimable, edge_dirty, writeback, dontcache_dirty;
	atomic_long peak_dirty; /* (A) pages */
	atomic_long gift_pages; /* (A) of no file yet: cache/gift.c */
	struct waitq memory; /* pages were freed or writeback ended */
	struct waitq pressure; /* the reclaimer sleeps here */
	struct waitq closed; /* a closed range or a gate was opened */

	struct mutex lock; /* LOCK_CACHE */
	struct cds_list_head buckets[MAPPING_BUCKETS] GUARDED(lock);
	uint64_t nr_mappings GUARDED(lock);
	uint64_t nr_gone GUARDED(lock); /* mappings that have ended */
	struct cds_list_head idle GUARDED(lock); /* mappings not open, oldest
						  * first */
	uint64_t nr_idle GUARDED(lock);
	uint64_t idle_max; /* (C) */
	uint64_t nr_open GUARDED(lock); /* tr_file of all mappings */
	struct cds_list_head bdis GUARDED(lock);
	struct cds_list_head wbs GUARDED(lock);

	struct cds_list_head files GUARDED(lock); /* closed struct tr_file */
	unsigned nr_files GUARDED(lock);
	struct iovec chunks[CHUNKS_MAX] GUARDED(lock); /* arena, ready */
	unsigned nr_chunks GUARDED(lock);

	struct mutex edge_lock; /* LOCK_EDGE */
	struct cds_list_head edge_ages GUARDED(edge_lock); /* oldest first */
	atomic_long nr_edges; /* (A) incomplete edges on the list */

	struct throttle *throttle; /* (C) writeback/throttle.c */
	struct fills *fills; /* (C) bounce memory, writeback/fill.c */
	struct task *reclaimer; /* (C) */
	atomic_bool stopping; /* (A) */
};

static inline int64_t param(const _Atomic int64_t *p)
{
	return atomic_load_explicit(p, memory_order_relaxed);
}

static inline void cache_count(struct tr_cache *c, enum cache_count what,
			       long n)
{
	counter_add(&c->count[what], n);
}

#endif

/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * Folios: 2^order contiguous pages of the arena, naturally aligned in file and
 * memory, cached as one unit.
 *
 * A descriptor stands for each page of the arena; a folio's is that of its
 * first page. Descriptors are type-stable: they stay descriptors as long as
 * the cache lives, so a lookup under RCU may look at one that was freed.
 */
#ifndef TR_FOLIO_FOLIO_H
#define TR_FOLIO_FOLIO_H

#include "base/compiler.h"

#include <stdatomic.h>
#include <stdbool.h>
#include <urcu/list.h>

#define PAGE_SHIFT 12
#define PAGE_SIZE 4096u
#define FOLIO_ORDER_MAX 9

struct mapping;
struct edge;
struct blocks;

/* Bits of folio.state. Who may change which stands in folio/state.h. */
enum folio_state {
	FOLIO_LOCKED = 1 << 0,
	FOLIO_WAITERS = 1 << 1, /* somebody sleeps for this folio */
	FOLIO_UPTODATE = 1 << 2, /* every byte is valid */
	FOLIO_DIRTY = 1 << 3,
	FOLIO_WRITEBACK = 1 << 4,
	FOLIO_DROPBEHIND = 1 << 5, /* drop when clean on disk */
	FOLIO_REFERENCED = 1 << 6,
	FOLIO_ACTIVE = 1 << 7,
	FOLIO_RECLAIM = 1 << 8, /* rotate when writeback ends */
	FOLIO_EDGE = 1 << 9, /* an incomplete edge: folio.edge says of what */
	FOLIO_FILLING = 1 << 10, /* a fill reads its uncovered bytes */
	FOLIO_LRU = 1 << 11, /* on an LRU list */
	FOLIO_ALLDIRTY = 1 << 12, /* every block, whatever blocks says */
	FOLIO_ERROR = 1 << 13, /* its last writeback failed */
	FOLIO_SLAB = 1 << 14, /* a page of a slab, no folio */
	FOLIO_DROP_QUEUED = 1 << 15, /* waits for the flusher to drop it */
	FOLIO_COMPLETE = 1 << 16, /* folio.edge is complete, its mark to come */
};

/*
 * (A) atomic, (L) folio lock, (I) mapping index lock and folio lock,
 * (R) LRU shard, (a) arena until allocated, then constant but for splits.
 */
struct folio {
	atomic_uint state; /* (A) */
	atomic_int refs; /* (A) one is the index's */
	struct mapping *mapping; /* (I) NULL: not in an index */
	uint64_t idx; /* (I) page number in file */
	struct cds_list_head lru; /* (R); the arena's while free */
	struct edge *edge; /* (L) */
	struct blocks *blocks; /* (L) per-block state; NULL: all alike */
	uint8_t order; /* (a) */
	uint8_t retries; /* (L) failed writebacks in a row */
	atomic_ushort maps; /* (A) tr_map()s of it */
	atomic_ushort ios; /* (A) device writes in flight of it */
};

_Static_assert(sizeof(struct folio) == 64, "one cache line a descriptor");

static inline uint64_t folio_nr_pages(const struct folio *f)
{
	return 1ull << f->order;
}

static inline size_t folio_len(const struct folio *f)
{
	return (size_t)PAGE_SIZE << f->order;
}

#endif

/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * A mapping: the cached folios of one file and what is known of the file.
 *
 * Mappings live in the cache's table by store and file id. References: one for
 * each opening, one while the mapping has cached folios or is listed for
 * writeback, and the passing ones of whoever works on it. The last reference
 * closes the store's file.
 *
 * Three gates order what must not overlap:
 *
 * - The gate: writers are inside it shared, truncate, punch and append
 *   exclusively. It is a state that is waited for, not a lock.
 * - Closed ranges: while a direct write or a truncation is at work, no folio is
 *   created in the range; such callers wait. Overlapping ranges exclude each
 *   other. As the range was emptied first, nothing is filled or dirtied in it.
 * - Folio locks, for everything within one folio.
 */
#ifndef TR_FOLIO_MAPPING_H
#define TR_FOLIO_MAPPING_H

#include "folio/core.h"
#include "folio/wb.h"

/* A range of pages in which no folio may be created now. On its owner's
 * stack. first and last are page numbers, inclusive. */
struct closed_range {
	uint64_t first, last;
	struct cds_list_head node;
};

/* Callers of a group commit that sleep apart; more share. */
#define SYNC_QUEUES 32

/* A group of callers that one device sync serves: cache/sync.c. */
struct sync_state {
	struct mutex lock; /* LOCK_SYNC */
	struct cds_list_head waiting GUARDED(lock); /* struct sync_waiter */
	atomic_uint nr_waiting; /* (A) */
	atomic_uint want; /* (A) callers the leader gathers; 0: it does not */
	bool running GUARDED(lock); /* a leader is at work */
	/* callers there were with the last group: served, or come meanwhile */
	unsigned last_group GUARDED(lock);
	uint64_t sync_ns GUARDED(lock); /* smoothed time of a group */
	struct waitq joined; /* the leader gathers here */
	/* Each caller sleeps on one of its own, while there are no more. */
	struct waitq called[SYNC_QUEUES];
	unsigned nr_called GUARDED(lock); /* callers ever; picks the queue */
};

#define GATE_EXCLUSIVE (1u << 31)

/* The largest block of a store: a unit has to fit into the bounce pages of
 * fills. File systems have at most 64 KiB. */
#define BLOCK_MAX (64 * PAGE_SIZE)

/*
 * (C) constant, (A) atomic, (I) index_lock, (T) cache.lock, (G) changed only
 * with the gate held exclusively or raised by compare-and-swap inside it.
 */
struct mapping {
	struct tr_cache *cache; /* (C) */
	struct bdi *bdi; /* (C) */
	struct tr_store_file *sf; /* (C) */
	struct tr_file_id id; /* (C) */
	struct tr_store_attr attr; /* (C) alignments, block; not size */
	uint32_t unit; /* (C) bytes: the smallest folio */
	uint8_t min_order, max_order; /* (C) */
	atomic_int refs; /* (A) */
	int nr_open; /* (T) */
	struct cds_list_head bucket; /* (T) */
	struct cds_list_head idle; /* (T) cache.idle, while nr_open is 0 */

	struct mutex index_lock; /* LOCK_INDEX */
	struct index index; /* (I) lookups: RCU */
	struct wb *wb; /* (I) with a reference */
	bool listed; /* (I) on a list of wb, or taken from it */
	struct cds_list_head wb_node; /* wb.lock */
	uint64_t dirtied_ns; /* (I) when it was listed */
	struct cds_list_head ranges; /* (I) closed ranges */
	uint64_t flush_next; /* the flusher's: where its next pass starts */

	_Atomic int64_t size; /* (G) bytes, as users see it */
	_Atomic int64_t store_size; /* (A) bytes, the store's at most */
	atomic_uint gate; /* (A) GATE_EXCLUSIVE | writers inside */
	atomic_ulong nr_edges; /* (A) incomplete edges */
	struct cds_list_head edges; /* cache.edge_lock */
	atomic_bool
		sparse; /* (A) grew with holes: nothing is allocated ahead */

	atomic_ulong again; /* (A) folio_mark_again() calls */
	atomic_uint preparing; /* (A) inside prepare_enter() */
	/* (A) what changed on the device, and what a sync has covered. */
	atomic_ulong changes;
	atomic_ulong durable; /* by a datasync at least */
	atomic_ulong meta_durable; /* by a full sync */
	atomic_uint err; /* (A) writeback errors: err_set() */
	atomic_ulong nr_errors; /* (A) err_set() calls */
	atomic_ulong loss; /* loss generation */
	_Atomic int64_t mtime_ns; /* (A) of the last accepted write; 0: none */
	_Atomic int64_t mtime_set; /* (A) what the store was told of it */
	/* (A) The cache tells it; a front end with times of its own does. */
	atomic_bool sets_mtime;
	struct sync_state sync;
};

/*
 * Finds or makes the mapping of a store's file, with a reference and an
 * opening. Takes over sf, also on failure: it is closed if the mapping has one
 * already. Errors: -ENOMEM, the store's.
 */
int mapping_open(struct tr_cache *c, struct bdi *bdi, struct tr_store_file *sf,
		 struct mapping **out) MUST_CHECK;
/* Ends an opening, not the reference. Returns how many are left. */
int mapping_close(struct mapping *m);
void mapping_get(struct mapping *m);
void mapping_put(struct mapping *m);

/* Blocks while somebody is inside exclusively. */
void gate_enter(struct mapping *m);
bool gate_try_enter(struct mapping *m);
void gate_leave(struct mapping *m);
/* Blocks until nobody else is inside; later ones wait. */
void gate_close(struct mapping *m);
void gate_open(struct mapping *m);

/* Inserts a folio that nobody else knows, locked and with a reference of the
 * index's. -EEXIST, -ENOMEM as index_insert(); -EAGAIN: the range is closed. */
int mapping_insert(struct mapping *m, struct folio *f, uint64_t idx) MUST_CHECK;

/* Waits for overlapping closed ranges and closes this one. Folios that exist in
 * it stay. May be called inside the gate. */
void range_close(struct mapping *m, struct closed_range *r, uint64_t first,
		 uint64_t last);
void range_open(struct mapping *m, struct closed_range *r);
/* Whether a folio of 2^order pages at idx may not be created now. */
bool range_is_closed(const struct mapping *m, uint64_t idx, unsigned order)
	REQUIRES(m->index_lock);
/* Sleeps until some range of the mapping was opened. */
void range_wait(struct mapping *m, uint64_t idx, unsigned order);

/* Raises the size to at least end. Inside the gate. */
void mapping_raise_size(struct mapping *m, int64_t end);

/*
 * Around a call of the store that may raise the file's size: returns the size
 * up to which it may. Who lowers the size lets all leave that may have seen it
 * as it was before the store's file is cut.
 */
int64_t prepare_enter(struct mapping *m);
void prepare_leave(struct mapping *m);
void prepare_wait(struct mapping *m);

/* A write was accepted: its time is the file's mtime from now on. */
void mapping_touch(struct mapping *m);

/* Tells the store the time of the last accepted write, if that is the cache's to
 * do: device writes and sizes set ahead of them move or leave it. */
void mapping_settle_mtime(struct mapping *m);

/* Dirty pages: a walk of the tags. */
uint64_t mapping_dirty_pages(struct mapping *m);

/* The store's file is at least so long now. */
void mapping_raise_store_size(struct mapping *m, int64_t end);

static inline int64_t mapping_size(const struct mapping *m)
{
	return atomic_load_explicit(&m->size, memory_order_acquire);
}

/* ---- errors, in the manner of Linux's errseq_t ---- */

/* Records a writeback error (-errno). */
void err_set(struct mapping *m, int error);
/* The last one recorded, told or not; 0: none. */
int err_last(const struct mapping *m);
/* What an opening has to remember so that it is told of later errors, and of
 * an earlier one that nobody was told of. */
uint32_t err_sample(struct mapping *m);
/* The error, if one was recorded since *seen; each is reported once. */
int err_check(struct mapping *m, uint32_t *seen);

#endif

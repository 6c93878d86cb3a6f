/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * Writeback domains: who writes back which files, and what is dirty there.
 *
 * A backing device (bdi: one per store) has a root domain (wb), and may have
 * one per memory group that dirties it. A domain counts what is dirty in its
 * files and lists the files with something eligible to be written by age; its
 * flusher (writeback/flush.h) sleeps on it.
 *
 * Lists: b_dirty by the time a file became dirty, oldest first; b_io taken for
 * the pass that runs; b_more_io what a pass left over. A file is on one of
 * them while its index has a DIRTY tag; a file with incomplete edges only is
 * on none.
 */
#ifndef TR_FOLIO_WB_H
#define TR_FOLIO_WB_H

#include "base/atomic.h"
#include "base/counter.h"
#include "base/lock.h"
#include "base/wait.h"

#include <tailrace/store.h>

#include <urcu/list.h>

struct tr_cache;
struct mapping;
struct flusher;

enum wb_state {
	WB_START_DONTCACHE = 1 << 0, /* the kick */
	WB_START_BACKGROUND = 1 << 1, /* over dirty_background */
	WB_START_ALL = 1 << 2, /* everything there is, once */
	WB_START_RECLAIM = 1 << 3, /* memory is short */
	WB_START_EDGES = 1 << 4, /* too many or too old edges */
	WB_START_DROPS = 1 << 5, /* folios wait to be dropped */
	WB_STOP = 1 << 6, /* the flusher shall end */
};

/* Why a flusher writes: in traces and counters. */
enum wb_reason {
	WB_REASON_BACKGROUND,
	WB_REASON_PERIODIC,
	WB_REASON_SYNC,
	WB_REASON_RECLAIM,
	WB_REASON_DONTCACHE,
	WB_REASON_EDGE_AGE,
	WB_REASONS
};

/* In pages. The first four are exact at any moment: they change in the index
 * lock's section in which the tag changes. */
struct wb_counters {
	struct counter reclaimable;
	struct counter edge_dirty;
	struct counter dontcache_dirty;
	struct counter writeback;
	struct counter dirtied;
	struct counter written;
};

/* (C) constant, (A) atomic, (B) lock. */
struct wb {
	struct tr_cache *cache; /* (C) */
	struct bdi *bdi; /* (C) */
	uint32_t group; /* (C) 0: the root */
	atomic_int refs; /* (A) */
	atomic_uint state; /* (A) enum wb_state */
	struct waitq wake; /* the flusher sleeps here */
	struct wb_counters nr;
	struct mutex lock; /* LOCK_WB */
	struct cds_list_head b_dirty GUARDED(lock);
	struct cds_list_head b_io GUARDED(lock);
	struct cds_list_head b_more_io GUARDED(lock);
	struct cds_list_head drops GUARDED(lock); /* struct drop */
	struct cds_list_head on_cache; /* cache.wbs, LOCK_CACHE */
	struct flusher *flusher; /* (C) NULL: none */
	atomic_ulong kicks; /* (A) wake-ups by the kick */
	atomic_ulong passes[WB_REASONS]; /* (A) */
	atomic_ulong bandwidth; /* (A) bytes/s written, smoothed; 0: unknown */
	atomic_ulong pace_next[2]; /* (A) clock_ns(); writeback/throttle.c */
};

/* Totals of requests to a store. */
enum bdi_total {
	BDI_READS,
	BDI_READ_BYTES,
	BDI_WRITES,
	BDI_WRITE_BYTES,
	BDI_SYNCS,
	BDI_TOTALS
};

/* Idle queues kept for the next borrower: as many as workers that sync at once
 * in a busy server; each costs the kernel a ring. */
#define BDI_QUEUES_MAX 64

/* What one store is to a cache: its queues and its root domain. */
struct bdi {
	struct tr_cache *cache; /* (C) */
	struct tr_store *store; /* (C) */
	struct wb *root; /* (C) */
	int refs; /* mappings; LOCK_CACHE */
	struct mutex lock; /* LOCK_STORE */
	struct tr_queue *idle[BDI_QUEUES_MAX] GUARDED(lock);
	unsigned nr_idle GUARDED(lock);
	struct cds_list_head on_cache; /* LOCK_CACHE */
	struct counter totals[BDI_TOTALS]; /* (A) */
};

int wb_create(struct bdi *bdi, uint32_t group, struct wb **out) MUST_CHECK;
void wb_get(struct wb *wb);
void wb_put(struct wb *wb);

/* Sets a state bit and wakes the flusher if it was clear. Returns whether. */
bool wb_start(struct wb *wb, enum wb_state bit);

/* The kick of an uncached write that does not sync. */
void wb_kick(struct wb *wb);

/* Puts a file that just got its first DIRTY tag on b_dirty, with a reference.
 * The caller holds the mapping's index lock and saw m->listed false. */
void wb_list(struct wb *wb, struct mapping *m);

/* Takes the oldest file of b_io for writing, with the list's reference; NULL:
 * none. It stays m->listed. */
struct mapping *wb_take(struct wb *wb);

/* Refills b_io, if empty, from b_more_io and what of b_dirty became dirty
 * before older_than (clock_ns(); UINT64_MAX: all). */
void wb_queue_io(struct wb *wb, uint64_t older_than);

/*
 * Ends what wb_take() began: unlists the file, and puts the reference, if
 * nothing eligible is left in it; else puts it on b_more_io (more) or back on
 * b_dirty.
 */
void wb_give_back(struct mapping *m, bool more);

/* Unlists a file that has nothing eligible left, unless a flusher has it. */
void wb_unlist(struct mapping *m);

bool wb_has_io(struct wb *wb);

int bdi_create(struct tr_cache *cache, struct tr_store *store,
	       struct bdi **out) MUST_CHECK;
/* The queues must be idle and the flusher gone. */
void bdi_destroy(struct bdi *bdi);

/*
 * A submitter's context: a store's queue with what writing needs set aside.
 * Borrowed from the bdi and given back; belongs to one thread at a time.
 */
int bdi_queue_get(struct bdi *bdi, struct tr_queue **out) MUST_CHECK;
void bdi_queue_put(struct bdi *bdi, struct tr_queue *queue);

#endif

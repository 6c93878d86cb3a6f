/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * A cache as a whole, for the files of this folder and front ends.
 */
#ifndef TR_CACHE_CACHE_H
#define TR_CACHE_CACHE_H

#include "cache/io.h"

/* One opening of a file. Closed ones are kept for reuse on cache.files, so that
 * a late use of one is told -EBADF. */
struct tr_file {
	struct tr_cache *cache; /* (C) */
	atomic_uint open; /* (A) FILE_OPEN */
	int flags; /* (C) O_ACCMODE */
	struct mapping *m; /* (C) */
	atomic_uint err_seen; /* (A) see err_check() */
	struct readahead ra;
	struct cds_list_head node; /* cache.lock */
};

#define FILE_OPEN 0x7472u

static inline bool file_is_open(struct tr_file *f)
{
	return atomic_load(&f->open) == FILE_OPEN;
}

/* Ends all threads of a cache, for checks that nothing else may run beside, and
 * starts them again: 0, or what keeps one from starting. */
void cache_pause(struct tr_cache *c);
int cache_resume(struct tr_cache *c) MUST_CHECK;

/* Lets go of a file that is not open if there are too many, and of all that
 * were removed. Both write back and wait for it. */
void idle_shed_surplus(struct tr_cache *c);
void idle_shed_removed(struct tr_cache *c);

/* The writeback error that this opening has not been told of: it is now. */
int file_told_error(struct tr_file *f);

/* The bdi of a store: made, with its flusher, at first use. */
int cache_bdi(struct tr_cache *c, struct tr_store *store,
	      struct bdi **out) MUST_CHECK;

/* What a writeback domain holds and did, and the requests sent to its device;
 * pages where nothing else is said. */
struct wb_statistics {
	const struct tr_store
		*store; /* to tell domains apart; not to be used */
	uint32_t group; /* 0: the device's root domain */
	unsigned state; /* enum wb_state */
	int64_t writeback, reclaimable, edge_dirty, dontcache_dirty;
	int64_t dirtied, written; /* totals */
	uint64_t bandwidth; /* bytes/s */
	uint64_t b_dirty, b_io, b_more_io; /* files */
	uint64_t kicks, passes[WB_REASONS]; /* totals */
	int64_t device[BDI_TOTALS]; /* of the device: totals */
};

/* The domains, those of one device in a row; at most max of them. Returns how
 * many. All numbers are sums. */
unsigned cache_wb_statistics(struct tr_cache *c, struct wb_statistics *out,
			     unsigned max);

#endif

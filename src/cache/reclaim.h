/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * Memory for folios, and getting it back from those that are clean.
 *
 * The arena's size is the hard limit. A reclaimer thread keeps some of it free;
 * whoever finds none free reclaims for itself, starts the flushers, and waits
 * for writeback to end.
 */
#ifndef TR_CACHE_RECLAIM_H
#define TR_CACHE_RECLAIM_H

#include "folio/core.h"

/*
 * Pages for a folio of the order, or of a smaller one down to min_order if
 * there is no such piece free: with a reference and state 0. Sleeps until there
 * is memory unless nowait. NULL: none, and with sleeping none to be had: nothing
 * in the cache can be dropped or written back.
 */
struct folio *cache_alloc_folio(struct tr_cache *c, unsigned order,
				unsigned min_order, bool nowait);

/* Drops some clean folios, or starts writeback and waits for it to get on.
 * false: there is no hope. */
bool cache_reclaim(struct tr_cache *c);

/*
 * After memory was refused: sees to it that there is some. false: it is no use to
 * try again. *refused is 0 at first: how often pages were refused though there
 * are some; for ever only in tests that fail allocations.
 */
bool cache_alloc_again(struct tr_cache *c, unsigned min_order,
		       unsigned *refused);

/* The thread that keeps pages free. */
int reclaimer_start(struct tr_cache *c) MUST_CHECK;
void reclaimer_stop(struct tr_cache *c);

#endif

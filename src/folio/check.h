/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * Checking every invariant of a mapping, for tests and tr_cache_check(): no
 * other call may be changing it.
 */
#ifndef TR_FOLIO_CHECK_H
#define TR_FOLIO_CHECK_H

#include "folio/mapping.h"

/* In pages, as tags and states say; edges in units. */
struct dirty_sums {
	long reclaimable, edge_dirty, dontcache_dirty, writeback, edges;
	long on_lru;
};

/* Adds to sums. 0, or -EUCLEAN after a line on stderr for each violation. */
int mapping_check(struct mapping *m, struct dirty_sums *sums);

/* One line a folio, for people. */
void mapping_print(struct mapping *m);

#endif

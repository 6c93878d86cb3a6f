/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * The order in which reclaim looks at folios: sharded lists of inactive and
 * active ones. New folios are inactive; a hit sets FOLIO_REFERENCED without a
 * lock; reclaim gives a referenced one another round as active. A folio is on
 * a list while FOLIO_LRU is set.
 */
#ifndef TR_FOLIO_LRU_H
#define TR_FOLIO_LRU_H

#include "folio/core.h"

void lru_init(struct tr_cache *c);
void lru_fini(struct tr_cache *c);

/* Adds a folio that is on no list, as inactive and newest. */
void lru_add(struct tr_cache *c, struct folio *f);
/* Takes a folio off its list, if it is on one. */
void lru_del(struct tr_cache *c, struct folio *f);
/* Moves a folio on a list to the newest active ones. */
void lru_activate(struct tr_cache *c, struct folio *f);
/* Moves a folio on a list to the oldest inactive ones: the next to go. */
void lru_rotate(struct tr_cache *c, struct folio *f);

/*
 * Takes up to max of the oldest inactive folios of one shard, each with a
 * reference, moving them to the newest end so that the next call sees others.
 * Keeps inactive folios at half at least by ageing active ones.
 */
unsigned lru_scan(struct tr_cache *c, unsigned shard, struct folio **out,
		  unsigned max);

/* Adds to *pages what is on the lists. 0, or -EUCLEAN after a line on stderr
 * for each list whose links, states or count are wrong. */
int lru_check(struct tr_cache *c, long *pages);

#endif

/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * Taking folios out of the cache.
 */
#ifndef TR_CACHE_INVALIDATE_H
#define TR_CACHE_INVALIDATE_H

#include "folio/state.h"

/*
 * Removes the folios of [first, last] (pages) that are clean, after splitting
 * those that reach beyond. With flush, dirty ones are written out first.
 * -EBUSY: some are dirty, mapped or in use; all others are removed all the
 * same. Errors of the write-out.
 */
int cache_invalidate(struct mapping *m, uint64_t first, uint64_t last,
		     bool flush);

/* Removes all folios of [first, last], whole units, and what is dirty in them
 * with them. Device writes in flight there have ended when it returns. */
void cache_remove_all(struct mapping *m, uint64_t first, uint64_t last);

#endif

/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * Fills: reading the bytes of an edge that nobody has written.
 *
 * A fill always reads the whole unit from the store into bounce pages that were
 * set aside when the cache was made, and copies only what is not covered; a
 * short read means zeros. While it runs the folio is FOLIO_FILLING and not
 * locked: neighbours go on writing, truncation and other fills wait. It never
 * starts while a device write of the unit is in flight.
 *
 * Bytes at or beyond the store's end of file are zeros without a read.
 */
#ifndef TR_WRITEBACK_FILL_H
#define TR_WRITEBACK_FILL_H

#include "folio/mapping.h"

/* Bounce pages of a cache: so many units are filled at once at most. */
#define FILL_PAGES 64

int fill_init(struct tr_cache *c) MUST_CHECK;
void fill_fini(struct tr_cache *c);

/*
 * Fills those of the referenced, unlocked folios of one mapping that are
 * incomplete edges with bytes not covered, as one batch on a queue of the
 * mapping's device; waits until all of them are FOLIO_UPTODATE or failed.
 * Returns the first error.
 */
int fill_edges(struct mapping *m, struct folio **f, unsigned nr);

/* The same for one folio that the caller has locked, and has again when it
 * returns: it must look again at everything but the fill's outcome. */
int fill_locked(struct mapping *m, struct folio *f) REQUIRES(f);

/*
 * Reads the blocks that bytes [from, to) of a locked folio touch and that hold
 * nothing valid straight into its memory, with zeros at or beyond end of file:
 * for a folio that is no edge. One without per-block state is read whole.
 * nowait: -EAGAIN instead of reading.
 */
int fill_missing(struct mapping *m, struct folio *f, size_t from, size_t to,
		 bool nowait) MUST_CHECK REQUIRES(f);

#endif

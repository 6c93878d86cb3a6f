/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * Per-block state of a folio whose blocks are not all alike: which blocks are
 * valid and which are dirty. folio.blocks is NULL while FOLIO_UPTODATE and
 * FOLIO_DIRTY say it for all of them. With it, FOLIO_UPTODATE still means that
 * every block is valid, and FOLIO_DIRTY that some block is dirty.
 *
 * All but blocks_free() need the folio lock, which guards folio.blocks. Blocks
 * are numbered within the folio; ranges are bytes within the folio.
 */
#ifndef TR_FOLIO_BLOCKS_H
#define TR_FOLIO_BLOCKS_H

#include "folio/mapping.h"

int blocks_init(struct tr_cache *c) MUST_CHECK;
void blocks_fini(struct tr_cache *c);

/* Blocks in the folio. */
static inline unsigned blocks_nr(const struct mapping *m, const struct folio *f)
{
	return folio_len(f) / m->attr.block ?: 1;
}

/*
 * Makes per-block state for a folio that has none, as its flags say. false: no
 * memory; the caller does without (reads or dirties the whole folio).
 */
bool blocks_make(struct mapping *m, struct folio *f) MUST_CHECK;
void blocks_free(struct tr_cache *c, struct folio *f);

/* The blocks that [from, to) touches became valid. Sets FOLIO_UPTODATE once
 * all are. Without per-block state the range must be the folio. */
void blocks_set_uptodate(struct mapping *m, struct folio *f, size_t from,
			 size_t to);
/* The blocks that [from, to) touches became dirty. Call folio_mark_dirty()
 * afterwards. */
void blocks_set_dirty(struct mapping *m, struct folio *f, size_t from,
		      size_t to);
/* All valid blocks became dirty. */
void blocks_all_dirty(struct folio *f);

/*
 * The next run of dirty blocks at or after byte *from: sets *from and *to.
 * Without per-block state the run is the folio. false: none.
 */
bool blocks_next_dirty(const struct mapping *m, const struct folio *f,
		       size_t *from, size_t *to);
/* No block is dirty any more. Frees the state if nothing is left to say. */
void blocks_clean(struct mapping *m, struct folio *f);

/* The first run of blocks within [from, to) that are not valid. */
bool blocks_next_missing(const struct mapping *m, const struct folio *f,
			 size_t *from, size_t *to);

/*
 * Gives part i of nr equal parts its share of what the whole had, and returns
 * what of FOLIO_UPTODATE and FOLIO_DIRTY the part has. Without memory a part
 * that is dirty becomes so wholly: the whole must be valid then, unless a part
 * is one block.
 */
unsigned blocks_split(struct mapping *m, const struct blocks *whole,
		      struct folio *part, unsigned i, unsigned nr);

/* Frees state that was taken off its folio. */
void blocks_drop(struct tr_cache *c, struct blocks *b);

#endif

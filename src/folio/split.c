/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * Splitting. The folio is frozen (no references) from the moment it is known
 * that nobody else uses it until its parts are in the index, in one section of
 * the index lock: lookups either find the whole, before, or a part, after.
 *
 * Tags and counters come out the same in total, but for parts of which the
 * per-block state says that they are clean.
 */
#include "folio/state.h"

#include "folio/account.h"
#include "folio/blocks.h"
#include "folio/lru.h"

/* What the parts have of the whole's state. */
#define INHERIT                                                                \
	(FOLIO_UPTODATE | FOLIO_DIRTY | FOLIO_ALLDIRTY | FOLIO_DROPBEHIND |    \
	 FOLIO_REFERENCED | FOLIO_RECLAIM)

struct split {
	struct mapping *m;
	struct blocks *blocks; /* the whole's */
	unsigned state; /* the whole's */
	unsigned order; /* of the parts */
	unsigned nr;
	uint64_t idx;
	bool towrite;
};

static bool can_split(const struct mapping *m, const struct folio *f)
{
	if (f->order == m->min_order || f->edge || atomic_load(&f->maps) ||
	    folio_test(f, FOLIO_WRITEBACK | FOLIO_FILLING))
		return false;
	/* Parts of several blocks need memory for what is not valid. */
	return !f->blocks || folio_test(f, FOLIO_UPTODATE) ||
	       m->attr.block >= m->unit;
}

static void place_part(struct split *s, struct folio *part, unsigned i)
	REQUIRES(m->index_lock)
{
	struct mapping *m = s->m;
	unsigned state = s->state & INHERIT;

	if (s->blocks) {
		unsigned own = blocks_split(m, s->blocks, part, i, s->nr);

		state = (state & ~(FOLIO_UPTODATE | FOLIO_DIRTY)) | own;
	}
	if (state & FOLIO_ALLDIRTY)
		state |= FOLIO_DIRTY;
	part->mapping = m;
	part->idx = s->idx + ((uint64_t)i << s->order);
	atomic_store(&part->state, state | (i ? 0 : FOLIO_LOCKED));
	/* On its list before anybody can find it: whoever drops it next takes
	 * it off. */
	lru_add(m->cache, part);
	if (s->state & FOLIO_ACTIVE)
		lru_activate(m->cache, part);
	for (uint64_t k = 0; k < 1ull << s->order; k++)
		index_replace(&m->index, part->idx + k, part);
	if (state & FOLIO_DIRTY) {
		account_dirty(m, part);
		if (s->towrite)
			index_tag(&m->index, part->idx, TAG_TOWRITE);
	}
}

/* The section: whole out, parts in. */
static bool replace(struct folio *f, struct split *s) REQUIRES(m->index_lock)
{
	struct mapping *m = s->m;
	int expected = 2;

	if (!count_cas(&f->refs, &expected, 0))
		return false;
	s->nr = 1u << (f->order - m->min_order);
	s->order = m->min_order;
	s->idx = f->idx;
	s->towrite = index_has_tag(&m->index, f->idx, TAG_TOWRITE);
	s->state = state_load(&f->state);
	lru_del(m->cache, f);
	account_clean(m, f);
	index_untag(&m->index, f->idx, TAG_TOWRITE);
	s->blocks = f->blocks;
	f->blocks = NULL;
	arena_split(f, s->order);
	for (unsigned i = 0; i < s->nr; i++)
		place_part(s, f + ((size_t)i << s->order), i);
	/* Only now: as long as a slot has the whole, it must not be had. */
	for (unsigned i = 0; i < s->nr; i++)
		atomic_store(&f[(size_t)i << s->order].refs, i ? 1 : 2);
	return true;
}

bool folio_split(struct folio *f)
{
	struct split s = { .m = f->mapping };
	struct mapping *m = f->mapping;
	unsigned waiters;
	bool done;

	if (!can_split(m, f))
		return false;
	mutex_lock(&m->index_lock);
	done = replace(f, &s);
	mutex_unlock(&m->index_lock);
	if (!done)
		return false;
	blocks_drop(m->cache, s.blocks);
	/* Those who slept for the whole's lock set this on what is now the
	 * first part. */
	waiters = s.state & FOLIO_WAITERS;
	if (waiters)
		state_or(&f->state, FOLIO_WAITERS);
	return true;
}

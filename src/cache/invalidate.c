/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * Taking folios out of the cache: for direct I/O, by request, and, whatever
 * their state, for truncation.
 */
#include "cache/invalidate.h"

#include "cache/io.h"
#include "folio/edge.h"
#include "writeback/throttle.h"
#include "writeback/writeout.h"

#include <errno.h>
#include <string.h>

/* Folios referenced in one section of the index lock. */
#define REMOVE_BATCH 32

/* References on the next folios of [*first, last]; *first moves on. */
static unsigned collect(struct mapping *m, uint64_t *first, uint64_t last,
			struct folio **out)
{
	unsigned nr = 0;

	mutex_lock(&m->index_lock);
	while (nr < REMOVE_BATCH && *first <= last) {
		struct folio *f = index_next(&m->index, first, last);

		if (!f)
			break;
		folio_get(f);
		out[nr++] = f;
		*first = f->idx + folio_nr_pages(f);
	}
	mutex_unlock(&m->index_lock);
	return nr;
}

/* Whether the folio reaches out of the range. */
static bool reaches_out(const struct folio *f, uint64_t first, uint64_t last)
{
	return f->idx < first || f->idx + folio_nr_pages(f) - 1 > last;
}

static int invalidate_folio(struct mapping *m, struct folio *f, uint64_t first,
			    uint64_t last)
{
	if (f->mapping != m)
		return 0;
	if (f->order > m->min_order && reaches_out(f, first, last)) {
		if (!folio_split(f))
			return -EBUSY;
		/* The parts are looked at with the next round. */
		return 1;
	}
	return folio_try_remove(f, false) ? 0 : -EBUSY;
}

int cache_invalidate(struct mapping *m, uint64_t first, uint64_t last,
		     bool flush)
{
	struct page_range range = { first, last };
	struct folio *f[REMOVE_BATCH];
	uint64_t at = first;
	unsigned nr;
	int err = flush ? writeout_wait(m, &range, 1) : 0, one;

	if (err)
		return err;
	while ((nr = collect(m, &at, last, f))) {
		for (unsigned i = 0; i < nr; i++) {
			uint64_t idx = f[i]->idx;

			folio_lock_idle(f[i]);
			one = invalidate_folio(m, f[i], first, last);
			folio_unlock(f[i]);
			folio_put(f[i], m->cache);
			if (one == 1)
				at = min_of(at, max_of(idx, first));
			else
				err = one ?: err;
		}
	}
	return err;
}

/* Zeroes what a folio holds of the range. What is in it is valid without being
 * dirty: the store is to have zeros there too. */
static void zero_inside(struct folio *f, uint64_t first, uint64_t last)
{
	uint64_t from = max_of(f->idx, first) - f->idx;
	uint64_t to = min_of(f->idx + folio_nr_pages(f), last + 1) - f->idx;

	memset((char *)folio_data(f) + (from << PAGE_SHIFT), 0,
	       (to - from) << PAGE_SHIFT);
}

/* Empties the range of one folio. true: it was split, its parts are to be
 * looked at. */
static bool remove_folio(struct mapping *m, struct folio *f, uint64_t first,
			 uint64_t last)
{
	if (f->mapping != m)
		return false;
	if (!reaches_out(f, first, last))
		folio_remove(f);
	else if (folio_split(f))
		return true;
	else
		zero_inside(f, first, last);
	return false;
}

void cache_remove_all(struct mapping *m, uint64_t first, uint64_t last)
{
	struct folio *f[REMOVE_BATCH];
	uint64_t at = first;
	unsigned nr;

	while ((nr = collect(m, &at, last, f))) {
		for (unsigned i = 0; i < nr; i++) {
			uint64_t idx = max_of(f[i]->idx, first);

			folio_lock_idle(f[i]);
			if (remove_folio(m, f[i], first, last))
				at = min_of(at, idx);
			folio_unlock(f[i]);
			folio_put(f[i], m->cache);
		}
	}
	throttle_release(m->cache);
}

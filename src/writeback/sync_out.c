/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * Writing out what a sync needs, and waiting for it: tag, fill, write, wait.
 *
 * What is dirty when the sync begins is tagged TOWRITE; later dirtying of other
 * folios does not prolong it. Incomplete edges are filled first, all together,
 * so that the writes that follow are not cut up by them.
 */
#include "writeback/writeout.h"

#include "base/mem.h"
#include "folio/edge.h"
#include "folio/state.h"
#include "writeback/fill.h"

#include <errno.h>
#include <limits.h>

/* Folios handled in one section of the index lock. */
#define SYNC_BATCH 64

/* Device writes of one sync in flight: its leader is one of many. */
#define SYNC_DEPTH 16

/* Rounds of a sync that meets writes that were cut short: a device that does
 * that every time does not work. */
#define TRIES_MAX 16

/* Tags what is dirty in the range. Returns whether anything is. */
static bool tag_dirty(struct mapping *m, const struct page_range *r,
		      enum index_tag tag)
{
	struct folio *f[SYNC_BATCH];
	uint64_t at = r->first;
	bool any = false;
	unsigned nr;

	do {
		mutex_lock(&m->index_lock);
		nr = index_next_tags(&m->index, &at, r->last, tag, f,
				     SYNC_BATCH);
		for (unsigned i = 0; i < nr; i++)
			index_tag(&m->index, f[i]->idx, TAG_TOWRITE);
		mutex_unlock(&m->index_lock);
		any |= nr > 0;
	} while (nr && at <= r->last);
	return any;
}

/* Edges of several ranges on their way to one batch of fills. */
struct to_fill {
	struct mapping *m;
	struct folio *f[SYNC_BATCH];
	unsigned nr;
	int err;
};

static void fill_collected(struct to_fill *t)
{
	if (t->nr)
		t->err = fill_edges(t->m, t->f, t->nr) ?: t->err;
	while (t->nr)
		folio_put(t->f[--t->nr], t->m->cache);
}

/* Collects the incomplete edges of the range that are dirty, and fills them
 * when there are many. */
static void collect_edges(struct to_fill *t, const struct page_range *r)
{
	struct mapping *m = t->m;
	uint64_t at = r->first;
	struct folio *f;

	while (at <= r->last) {
		mutex_lock(&m->index_lock);
		while (t->nr < SYNC_BATCH &&
		       (f = index_next_tag(&m->index, &at, r->last,
					   TAG_EDGE))) {
			at = f->idx + folio_nr_pages(f);
			if (folio_test(f, FOLIO_UPTODATE))
				continue;
			folio_get(f);
			t->f[t->nr++] = f;
		}
		mutex_unlock(&m->index_lock);
		if (t->nr < SYNC_BATCH)
			return;
		fill_collected(t);
	}
}

void writeout_wait_in_flight(struct mapping *m, uint64_t first, uint64_t last)
{
	struct folio *f[SYNC_BATCH];
	unsigned nr;

	do {
		mutex_lock(&m->index_lock);
		nr = index_next_tags(&m->index, &first, last, TAG_WRITEBACK, f,
				     SYNC_BATCH);
		for (unsigned i = 0; i < nr; i++)
			folio_get(f[i]);
		mutex_unlock(&m->index_lock);
		for (unsigned i = 0; i < nr; i++) {
			folio_wait(f[i], FOLIO_WRITEBACK);
			folio_put(f[i], m->cache);
		}
	} while (nr && first <= last);
}

/* Writes what is tagged between the first and the last page of the ranges. */
static int write_tagged(struct mapping *m, const struct page_range *r,
			unsigned nr)
{
	struct writeout wo = { .tag = TAG_TOWRITE,
			       .first = UINT64_MAX,
			       .nr_pages = LONG_MAX,
			       .wait = true,
			       .tail = true };
	struct writer *w;
	int err = writer_create(m->bdi, SYNC_DEPTH, &w);

	if (err)
		return err;
	for (unsigned i = 0; i < nr; i++) {
		wo.first = min_of(wo.first, r[i].first);
		wo.last = max_of(wo.last, r[i].last);
	}
	writeout(w, m, &wo);
	writer_destroy(w);
	return 0;
}

int writeout_wait(struct mapping *m, const struct page_range *r, unsigned nr)
{
	unsigned long again = atomic_load(&m->again), seen;
	struct to_fill fill = { .m = m };
	bool any = false, edges;
	unsigned tries = 0;
	int failed;

	for (unsigned i = 0; i < nr; i++) {
		any |= tag_dirty(m, &r[i], TAG_DIRTY);
		edges = tag_dirty(m, &r[i], TAG_EDGE);
		if (edges)
			collect_edges(&fill, &r[i]);
		any |= edges;
	}
	fill_collected(&fill);
	do {
		failed = any ? write_tagged(m, r, nr) : 0;
		if (failed)
			return failed;
		for (unsigned i = 0; i < nr; i++)
			writeout_wait_in_flight(m, r[i].first, r[i].last);
		seen = again;
		again = atomic_load(&m->again);
		/* Ours or others': they are tagged like what we began with. */
		any = again != seen;
	} while (any && ++tries < TRIES_MAX);
	return any ? -EIO : fill.err;
}

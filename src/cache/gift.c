/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * Gifts.
 *
 * Happy path: pages are taken from the arena in pieces as large as alignment in
 * the file allows, so that they can be the file's folios; the write finds them
 * by their memory, in order, and each that it adopts is struck off.
 *
 * Failure modes: too little memory, or memory in too many pieces: nothing is
 * given, and the caller receives into memory of his own.
 *
 * Invariants: what all gifts hold is at most a GIFT_SHARE of the cache, so that
 * whoever waits for memory waits for folios that can be had; a gift holds one
 * reference on each folio that is not NULL.
 */
#include "cache/gift.h"

#include "cache/reclaim.h"
#include "folio/state.h"

#include <errno.h>

/* What of the cache may be memory that is being received into. */
#define GIFT_SHARE 8

static unsigned pick_order(uint64_t idx, uint64_t pages)
{
	unsigned order = FOLIO_ORDER_MAX;

	while (1ull << order > pages || idx & ((1ull << order) - 1))
		order--;
	return order;
}

static bool may_take(struct tr_cache *c, long pages)
{
	long most = (long)(arena_total_pages(c->arena) / GIFT_SHARE);

	if (atomic_fetch_add(&c->gift_pages, pages) + pages <= most)
		return true;
	atomic_fetch_sub(&c->gift_pages, pages);
	return false;
}

int gift_start(struct tr_cache *c, int64_t off, size_t len, struct gift *g,
	       struct iovec *iov, int *nr_iov)
{
	uint64_t idx = (uint64_t)off >> PAGE_SHIFT, left = len >> PAGE_SHIFT;
	struct folio *f;

	g->cache = c;
	g->nr = g->next = 0;
	g->used = false;
	if (!may_take(c, (long)left))
		return -ENOMEM;
	while (left) {
		f = NULL;
		if (g->nr < GIFT_MAX)
			f = cache_alloc_folio(c, pick_order(idx, left), 0,
					      true);
		if (!f) {
			atomic_fetch_sub(&c->gift_pages, (long)left);
			gift_end(g);
			return -ENOMEM;
		}
		iov[g->nr] = (struct iovec){ folio_data(f), folio_len(f) };
		g->folios[g->nr++] = f;
		idx += folio_nr_pages(f);
		left -= folio_nr_pages(f);
	}
	*nr_iov = (int)g->nr;
	return 0;
}

void gift_end(struct gift *g)
{
	long pages = 0;

	for (unsigned i = 0; i < g->nr; i++) {
		struct folio *f = g->folios[i];

		if (!f)
			continue;
		pages += (long)folio_nr_pages(f);
		folio_put(f, g->cache);
	}
	g->nr = 0;
	if (pages)
		atomic_fetch_sub(&g->cache->gift_pages, pages);
}

struct folio *gift_at(struct gift *g, const void *p)
{
	for (unsigned i = g->next; i < g->nr; i++) {
		if (!g->folios[i] || folio_data(g->folios[i]) != p)
			continue;
		g->next = i;
		return g->folios[i];
	}
	return NULL;
}

void gift_adopted(struct gift *g)
{
	struct folio *f = g->folios[g->next];

	atomic_fetch_sub(&g->cache->gift_pages, (long)folio_nr_pages(f));
	cache_count(g->cache, COUNT_ADOPTED, (long)folio_nr_pages(f));
	g->folios[g->next++] = NULL;
	g->used = true;
}

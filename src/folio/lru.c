/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * The LRU lists. Locks: one per shard, inner to everything but the allocator;
 * nothing is called with it held but folio_try_get().
 */
#include "folio/lru.h"

#include "folio/state.h"

#include <errno.h>
#include <stdio.h>

static struct lru *shard_of(struct tr_cache *c, const struct folio *f)
{
	/* Neighbours of 64 folios share a shard: writers fill such runs. */
	return &c->lru[((uintptr_t)f / sizeof(*f) >> 6) % LRU_SHARDS];
}

void lru_init(struct tr_cache *c)
{
	for (unsigned i = 0; i < LRU_SHARDS; i++) {
		mutex_init(&c->lru[i].lock, LOCK_LRU);
		CDS_INIT_LIST_HEAD(&c->lru[i].inactive);
		CDS_INIT_LIST_HEAD(&c->lru[i].active);
	}
}

void lru_fini(struct tr_cache *c)
{
	for (unsigned i = 0; i < LRU_SHARDS; i++)
		mutex_fini(&c->lru[i].lock);
}

static void link_inactive(struct lru *l, struct folio *f, bool oldest)
{
	if (oldest)
		cds_list_add_tail(&f->lru, &l->inactive);
	else
		cds_list_add(&f->lru, &l->inactive);
	l->nr_inactive += folio_nr_pages(f);
}

static void unlink_folio(struct lru *l, struct folio *f)
{
	cds_list_del(&f->lru);
	if (folio_test(f, FOLIO_ACTIVE))
		l->nr_active -= folio_nr_pages(f);
	else
		l->nr_inactive -= folio_nr_pages(f);
}

void lru_add(struct tr_cache *c, struct folio *f)
{
	struct lru *l = shard_of(c, f);

	mutex_lock(&l->lock);
	state_or(&f->state, FOLIO_LRU);
	state_and(&f->state, ~FOLIO_ACTIVE);
	link_inactive(l, f, false);
	mutex_unlock(&l->lock);
}

void lru_del(struct tr_cache *c, struct folio *f)
{
	struct lru *l = shard_of(c, f);

	mutex_lock(&l->lock);
	if (folio_test(f, FOLIO_LRU)) {
		unlink_folio(l, f);
		state_and(&f->state, ~(FOLIO_LRU | FOLIO_ACTIVE));
	}
	mutex_unlock(&l->lock);
}

void lru_activate(struct tr_cache *c, struct folio *f)
{
	struct lru *l = shard_of(c, f);

	mutex_lock(&l->lock);
	if (folio_test(f, FOLIO_LRU)) {
		unlink_folio(l, f);
		state_or(&f->state, FOLIO_ACTIVE);
		cds_list_add(&f->lru, &l->active);
		l->nr_active += folio_nr_pages(f);
	}
	mutex_unlock(&l->lock);
}

void lru_rotate(struct tr_cache *c, struct folio *f)
{
	struct lru *l = shard_of(c, f);

	mutex_lock(&l->lock);
	if (folio_test(f, FOLIO_LRU)) {
		unlink_folio(l, f);
		state_and(&f->state, ~FOLIO_ACTIVE);
		link_inactive(l, f, true);
	}
	mutex_unlock(&l->lock);
}

/* Folios that one call ages at most: as many as it may hand out. */
static void age_active(struct lru *l, unsigned max)
{
	while (max-- && l->nr_inactive < l->nr_active &&
	       !cds_list_empty(&l->active)) {
		struct folio *f =
			cds_list_entry(l->active.prev, struct folio, lru);

		unlink_folio(l, f);
		state_and(&f->state, ~(FOLIO_ACTIVE | FOLIO_REFERENCED));
		link_inactive(l, f, false);
	}
}

unsigned lru_scan(struct tr_cache *c, unsigned shard, struct folio **out,
		  unsigned max)
{
	struct lru *l = &c->lru[shard % LRU_SHARDS];
	unsigned nr = 0, looked = 0;

	mutex_lock(&l->lock);
	age_active(l, max);
	while (looked++ < max && !cds_list_empty(&l->inactive)) {
		struct folio *f =
			cds_list_entry(l->inactive.prev, struct folio, lru);

		cds_list_del(&f->lru);
		cds_list_add(&f->lru, &l->inactive);
		if (folio_try_get(f))
			out[nr++] = f;
	}
	mutex_unlock(&l->lock);
	return nr;
}

/* Whether a list holds nr pages, linked both ways and in the right state. */
static bool list_is_whole(const struct cds_list_head *head, unsigned state,
			  uint64_t nr)
{
	const struct cds_list_head *at = head, *next;
	uint64_t pages = 0;

	do {
		next = at->next;
		if (next->prev != at)
			return false;
		at = next;
		if (at != head) {
			const struct folio *f =
				cds_list_entry(at, struct folio, lru);

			if (folio_test(f, FOLIO_LRU | FOLIO_ACTIVE) != state)
				return false;
			pages += folio_nr_pages(f);
		}
	} while (at != head && pages <= nr);
	return pages == nr;
}

int lru_check(struct tr_cache *c, long *pages)
{
	int err = 0;

	for (unsigned i = 0; i < LRU_SHARDS; i++) {
		struct lru *l = &c->lru[i];

		mutex_lock(&l->lock);
		if (!list_is_whole(&l->inactive, FOLIO_LRU, l->nr_inactive) ||
		    !list_is_whole(&l->active, FOLIO_LRU | FOLIO_ACTIVE,
				   l->nr_active)) {
			fprintf(stderr, "lru_check: shard %u is broken\n", i);
			err = -EUCLEAN;
		}
		*pages += l->nr_inactive + l->nr_active;
		mutex_unlock(&l->lock);
	}
	return err;
}

/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * Reclaim scans the inactive folios of one LRU shard after the other, oldest
 * first: a clean one nobody refers to is dropped; one that was referenced since
 * the last look becomes active; one that is dirty or under writeback is marked
 * FOLIO_RECLAIM, so that it is the next to go when its writeback ends, and the
 * flushers are started.
 */
#include "cache/reclaim.h"

#include "base/clock.h"
#include "cache/cache.h"
#include "folio/lru.h"
#include "folio/state.h"

/* Folios looked at in one shard at a time. */
#define SCAN_BATCH 32

/* Pages the reclaimer keeps free: a 64th of the cache, at most 16 MiB: what
 * writers take while it wakes up. */
#define KEEP_FREE_SHARE 64
#define KEEP_FREE_MAX 4096

/* How often memory may be refused in a row though there are pages. They may
 * have come free after the refusal, or have gone to others before the next. */
#define REFUSED_MAX 16

/* How long writeback may show no progress before an allocation fails: longer
 * than devices take to time out. */
#define HOPELESS_NS (120 * NS_PER_S)
#define PROGRESS_WAIT_NS (20 * NS_PER_MS)

static bool pressing(struct tr_cache *c)
{
	uint64_t keep = min_of(arena_total_pages(c->arena) / KEEP_FREE_SHARE,
			       (uint64_t)KEEP_FREE_MAX);

	return !arena_growing(c->arena) &&
	       arena_free_pages(c->arena) <
		       keep + arena_reserve_pages(c->arena);
}

/* Looks at one folio. Returns pages freed. */
static unsigned long reclaim_folio(struct tr_cache *c, struct folio *f,
				   bool *dirty)
{
	unsigned long n = folio_nr_pages(f);
	struct mapping *m;

	if (folio_test(f, FOLIO_REFERENCED) &&
	    !folio_test(f, FOLIO_DROPBEHIND | FOLIO_EDGE)) {
		state_and(&f->state, ~FOLIO_REFERENCED);
		lru_activate(c, f);
		return 0;
	}
	if (folio_test(f, FOLIO_DIRTY | FOLIO_WRITEBACK)) {
		state_or(&f->state, FOLIO_RECLAIM);
		*dirty = true;
		return 0;
	}
	if (!folio_try_lock(f))
		return 0;
	m = f->mapping;
	if (m)
		mapping_get(m);
	if (!m || !folio_try_remove(f, false))
		n = 0;
	folio_unlock(f);
	if (m)
		mapping_put(m);
	return n;
}

/* Looks at a batch in every shard. Returns pages freed. */
static unsigned long scan(struct tr_cache *c, bool *dirty)
{
	struct folio *f[SCAN_BATCH];
	unsigned long freed = 0;
	unsigned nr;

	for (unsigned i = 0; i < LRU_SHARDS && !freed; i++) {
		nr = lru_scan(c, atomic_fetch_add(&c->lru_hand, 1), f,
			      SCAN_BATCH);
		for (unsigned k = 0; k < nr; k++) {
			freed += reclaim_folio(c, f[k], dirty);
			folio_put(f[k], c);
		}
	}
	cache_count(c, COUNT_RECLAIMED, freed);
	return freed;
}

static void start_flushers(struct tr_cache *c)
{
	struct wb *wb;

	mutex_lock(&c->lock);
	cds_list_for_each_entry (wb, &c->wbs, on_cache)
		wb_start(wb, WB_START_RECLAIM);
	mutex_unlock(&c->lock);
}

bool cache_reclaim(struct tr_cache *c)
{
	uint64_t give_up = clock_ns() + HOPELESS_NS;
	uint64_t free = arena_free_pages(c->arena);
	long written = counter_sum(&c->writeback);
	bool dirty = false;
	unsigned rounds = 0;

	/* Each shard twice: the first look at a referenced folio only makes it
	 * active. */
	while (rounds++ < 8)
		if (scan(c, &dirty))
			return true;
	do {
		start_flushers(c);
		wait_event_until(&c->memory,
				 arena_free_pages(c->arena) != free ||
					 counter_sum(&c->writeback) != written,
				 clock_ns() + PROGRESS_WAIT_NS);
		if (scan(c, &dirty) || arena_free_pages(c->arena) > free)
			return true;
		written = counter_sum(&c->writeback);
	} while (clock_ns() < give_up && !c->no_flushers);
	return false;
}

bool cache_alloc_again(struct tr_cache *c, unsigned min_order,
		       unsigned *refused)
{
	bool any = arena_free_pages(c->arena) >
		   arena_reserve_pages(c->arena) + SCAN_BATCH;

	if (min_order || !any)
		return cache_reclaim(c);
	task_yield();
	return ++*refused < REFUSED_MAX;
}

struct folio *cache_alloc_folio(struct tr_cache *c, unsigned order,
				unsigned min_order, bool nowait)
{
	unsigned refused = 0;
	struct folio *f;

	if (pressing(c))
		waitq_wake_one(&c->pressure);
	for (;;) {
		uint64_t free = arena_free_pages(c->arena);

		for (unsigned o = order;; o--) {
			f = arena_alloc(c->arena, o, 0);
			if (f || o == min_order)
				break;
		}
		if (f || nowait)
			return f;
		if (arena_growing(c->arena))
			wait_event_until(&c->memory,
					 arena_free_pages(c->arena) > free,
					 clock_ns() + PROGRESS_WAIT_NS);
		else if (!cache_alloc_again(c, min_order, &refused))
			return NULL;
	}
}

static void reclaimer_main(void *arg)
{
	struct tr_cache *c = arg;
	uint64_t interval, looked = clock_ns();
	bool dirty = false;

	while (!atomic_load(&c->stopping)) {
		interval = param(&c->params.flush_interval) * NS_PER_MS;
		wait_event_until(&c->pressure,
				 atomic_load(&c->stopping) || pressing(c),
				 looked + interval);
		if (clock_ns() - looked >= interval) {
			idle_shed_removed(c);
			looked = clock_ns();
		}
		for (unsigned idle = 0; pressing(c) && idle < LRU_SHARDS &&
					!atomic_load(&c->stopping);)
			idle = scan(c, &dirty) ? 0 : idle + 1;
		if (!pressing(c) || atomic_load(&c->stopping))
			continue;
		/* Nothing clean is left: wait for writeback. */
		if (dirty)
			start_flushers(c);
		wait_event_until(&c->memory, !pressing(c),
				 clock_ns() + PROGRESS_WAIT_NS);
		dirty = false;
	}
}

int reclaimer_start(struct tr_cache *c)
{
	return task_create(&c->reclaimer, "tr-reclaim", reclaimer_main, c);
}

void reclaimer_stop(struct tr_cache *c)
{
	if (!c->reclaimer)
		return;
	atomic_store(&c->stopping, true);
	waitq_wake_all(&c->pressure);
	task_join(c->reclaimer);
	c->reclaimer = NULL;
}

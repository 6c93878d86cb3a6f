/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * The two lines of waiters. A waiter is on its caller's stack; whoever lets it
 * go unlinks it first, and touches it last under the lock.
 */
#include "writeback/throttle.h"

#include "base/clock.h"
#include "base/mem.h"

#include <errno.h>

/* A sleeper looks for itself again after this: nothing depends on it, but a
 * limit that was raised meanwhile then takes effect. */
#define RECHECK_NS (200 * NS_PER_MS)

enum line { LINE_CACHED, LINE_UNCACHED, LINES };

struct waiter {
	struct cds_list_head node;
	long pages;
	atomic_bool go;
	struct waitq wq;
};

struct throttle {
	struct mutex lock; /* LOCK_LEAF */
	struct cds_list_head line[LINES] GUARDED(lock);
	atomic_long waiting[LINES]; /* (A) */
	struct waitq edges; /* writers at edge_max_pages */
	atomic_long waiting_edges;
};

int throttle_init(struct tr_cache *c)
{
	struct throttle *t = mem_zalloc(sizeof(*t));

	if (!t)
		return -ENOMEM;
	mutex_init(&t->lock, LOCK_LEAF);
	for (int i = 0; i < LINES; i++)
		CDS_INIT_LIST_HEAD(&t->line[i]);
	waitq_init(&t->edges);
	c->throttle = t;
	return 0;
}

void throttle_fini(struct tr_cache *c)
{
	mutex_fini(&c->throttle->lock);
	mem_free(c->throttle);
}

static long dirty_pages(struct tr_cache *c)
{
	return counter_sum(&c->reclaimable) - counter_sum(&c->edge_dirty) +
	       counter_sum(&c->writeback);
}

static long uncached_pages(struct tr_cache *c)
{
	return counter_sum(&c->dontcache_dirty) + counter_sum(&c->writeback);
}

/* Pages that may still be dirtied in this line. */
static long room(struct tr_cache *c, enum line line)
{
	long all =
		(param(&c->params.dirty_limit) >> PAGE_SHIFT) - dirty_pages(c);
	long uncached;

	if (line == LINE_CACHED)
		return all;
	uncached = (param(&c->params.dontcache_limit) >> PAGE_SHIFT) -
		   uncached_pages(c);
	return min_of(all, uncached);
}

static void note_peak(struct tr_cache *c, long dirty)
{
	long peak = atomic_load_explicit(&c->peak_dirty, memory_order_relaxed);

	while (dirty > peak &&
	       !atomic_compare_exchange_weak(&c->peak_dirty, &peak, dirty))
		;
}

bool throttle_over_background(struct tr_cache *c)
{
	return dirty_pages(c) > param(&c->params.dirty_background) >>
	       PAGE_SHIFT;
}

bool throttle_has_waiters(const struct tr_cache *c)
{
	return atomic_load(&c->throttle->waiting[LINE_CACHED]) ||
	       atomic_load(&c->throttle->waiting[LINE_UNCACHED]);
}

bool throttle_over_edges(struct tr_cache *c)
{
	long most = param(&c->params.edge_max_pages);
	long half = param(&c->params.dirty_background) >> (PAGE_SHIFT + 1);

	return atomic_load(&c->nr_edges) >= min_of(most, half);
}

/* Lets go from the head of a line what fits. */
static void release_line(struct tr_cache *c, enum line line)
	REQUIRES(c->throttle->lock)
{
	struct throttle *t = c->throttle;
	long left = room(c, line);

	while (left > 0 && !cds_list_empty(&t->line[line])) {
		struct waiter *w = cds_list_first_entry(&t->line[line],
							struct waiter, node);

		cds_list_del_init(&w->node);
		left -= w->pages;
		atomic_fetch_sub(&t->waiting[line], 1);
		atomic_store(&w->go, true);
		waitq_wake_one(&w->wq);
	}
}

void throttle_release(struct tr_cache *c)
{
	struct throttle *t = c->throttle;

	if (atomic_load(&t->waiting_edges))
		waitq_wake_all(&t->edges);
	if (!throttle_has_waiters(c))
		return;
	mutex_lock(&t->lock);
	release_line(c, LINE_CACHED);
	release_line(c, LINE_UNCACHED);
	mutex_unlock(&t->lock);
}

static void leave_line(struct throttle *t, enum line line, struct waiter *w)
{
	mutex_lock(&t->lock);
	if (!cds_list_empty(&w->node)) {
		cds_list_del_init(&w->node);
		atomic_fetch_sub(&t->waiting[line], 1);
	}
	mutex_unlock(&t->lock);
}

static void stand_in_line(struct mapping *m, enum line line, long pages)
{
	struct tr_cache *c = m->cache;
	struct throttle *t = c->throttle;
	struct waiter w = { .pages = pages };
	uint64_t start = clock_ns();
	bool go = false;

	waitq_init(&w.wq);
	mutex_lock(&t->lock);
	cds_list_add_tail(&w.node, &t->line[line]);
	atomic_fetch_add(&t->waiting[line], 1);
	mutex_unlock(&t->lock);
	/* What ended between the look and the line is seen here. */
	throttle_release(c);
	while (!go) {
		wb_start(m->bdi->root, WB_START_BACKGROUND);
		if (line == LINE_UNCACHED)
			wb_start(m->bdi->root, WB_START_DONTCACHE);
		go = wait_event_until(&w.wq, atomic_load(&w.go),
				      clock_ns() + RECHECK_NS) ||
		     room(c, line) > 0;
	}
	leave_line(t, line, &w);
	cache_count(c, COUNT_THROTTLED, 1);
	cache_count(c, COUNT_THROTTLED_NS, clock_ns() - start);
}

/* Edges are counted over all devices, so the oldest may be any's. */
static void start_edges(struct tr_cache *c)
{
	struct wb *wb;

	mutex_lock(&c->lock);
	cds_list_for_each_entry (wb, &c->wbs, on_cache)
		wb_start(wb, WB_START_EDGES);
	mutex_unlock(&c->lock);
}

/* An edge more than there may be: the oldest go first. */
static int wait_for_edges(struct mapping *m, bool nowait)
{
	struct throttle *t = m->cache->throttle;

	if (nowait)
		return -EAGAIN;
	atomic_fetch_add(&t->waiting_edges, 1);
	while (throttle_over_edges(m->cache)) {
		start_edges(m->cache);
		wait_event_until(&t->edges, !throttle_over_edges(m->cache),
				 clock_ns() + RECHECK_NS);
	}
	atomic_fetch_sub(&t->waiting_edges, 1);
	return 0;
}

int throttle_write(struct mapping *m, unsigned long pages, bool uncached,
		   bool nowait)
{
	struct tr_cache *c = m->cache;
	enum line line = uncached ? LINE_UNCACHED : LINE_CACHED;
	long dirty = dirty_pages(c);
	int err = 0;

	note_peak(c, dirty + pages);
	/* Nobody would make room. */
	if (c->no_flushers)
		return 0;
	if (dirty > param(&c->params.dirty_background) >> PAGE_SHIFT)
		wb_start(m->bdi->root, WB_START_BACKGROUND);
	if (uncached && throttle_over_edges(c))
		err = wait_for_edges(m, nowait);
	if (err)
		return err;
	if (room(c, line) > 0 && !atomic_load(&c->throttle->waiting[line]))
		return 0;
	if (nowait)
		return -EAGAIN;
	stand_in_line(m, line, pages);
	return 0;
}

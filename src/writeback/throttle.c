/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * The two lines of waiters, and those that ran ahead of their neighbours. A
 * waiter is on its caller's stack and sleeps on a queue of its own; whoever lets
 * it go unlinks it first, and touches it last under the lock.
 *
 * Tried and left: one queue for all that ran ahead, woken as a whole. With 32
 * writers nine of ten went back to sleep, some 20,000 sleeps a GiB of 47008-byte
 * records instead of 1,400, and the CPU of a GiB was half as much again.
 */
#include "writeback/throttle.h"

#include "base/clock.h"
#include "base/mem.h"

#include <errno.h>

/* A sleeper looks for itself again after this: nothing depends on it, but a
 * limit that was raised meanwhile then takes effect. */
#define RECHECK_NS (200 * NS_PER_MS)

/* Pages within which writers of one file are neighbours however few edges there
 * may be: 4 MiB, some 90 records of 47008 bytes. */
#define NEIGHBOUR_PAGES 1024l

/* How long no edge is completed before a writer stops waiting for that: some
 * time slices of all the others. */
#define NEIGHBOUR_WAIT_NS (200 * NS_PER_MS)

/* What part of a limit has to be free before a line moves, as long as device
 * writes that will free more are in flight: some 130 records of 47008
 * bytes where the limit is 96 MiB. One at a time, each write would sleep and cost
 * its server a hand-over; together, most find room when they come. */
#define RELEASE_SHARE 16

/* How long the first in line lets others of its file go before it. */
#define PATIENCE_NS (300 * NS_PER_MS)

/* After how many waits in vain the next is put off no further: 2^10 eighths of
 * the edges there may be. */
#define VAIN_MAX 10u

/* Edges completed between two looks for those who wait for neighbours. */
#define EDGES_GONE_LOOK 64l

/* Writes that are paced: smaller ones take less time than a sleep is exact
 * to. And how long one sleeps at most, should the device have become faster. */
#define PACE_MIN (256u << 10)
#define PACE_SLEEP_MAX (50 * NS_PER_MS)

enum line { LINE_CACHED, LINE_UNCACHED, LINES };

struct waiter {
	struct cds_list_head node;
	const struct mapping *m;
	int64_t off; /* of what it writes */
	uint64_t since_ns;
	long pages;
	atomic_bool go;
	struct waitq wq;
};

struct throttle {
	struct mutex lock; /* LOCK_LEAF */
	struct cds_list_head line[LINES] GUARDED(lock);
	atomic_long waiting[LINES]; /* (A) */
	/* Pages that writers on their way may dirty. What they have dirtied of
	 * it counts twice until they are through. */
	struct counter promised[LINES];
	struct cds_list_head ahead GUARDED(lock); /* of their neighbours */
	struct waitq edges; /* writers at edge_max_pages */
	atomic_long waiting_edges; /* (A) in ahead, or about to be, or at the
				    * limit */
	atomic_long evicting; /* (A) of them, at the limit */
	atomic_ulong gone; /* (A) edges completed while somebody waits */
	/* (A) so many edges must be completed in all before waiting for more
	 * makes sense again. */
	atomic_long edges_hope;
	atomic_uint in_vain; /* (A) how often waiting for them was */
};

int throttle_init(struct tr_cache *c)
{
	struct throttle *t = mem_zalloc(sizeof(*t));
	int err;

	if (!t)
		return -ENOMEM;
	err = counters_init(t->promised, LINES);
	if (err) {
		mem_free(t);
		return err;
	}
	mutex_init(&t->lock, LOCK_LEAF);
	for (int i = 0; i < LINES; i++)
		CDS_INIT_LIST_HEAD(&t->line[i]);
	CDS_INIT_LIST_HEAD(&t->ahead);
	waitq_init(&t->edges);
	c->throttle = t;
	return 0;
}

void throttle_fini(struct tr_cache *c)
{
	mutex_fini(&c->throttle->lock);
	counters_fini(c->throttle->promised, LINES);
	mem_free(c->throttle);
}

long throttle_dirty_pages(const struct tr_cache *c)
{
	return counter_sum(&c->reclaimable) - counter_sum(&c->edge_dirty) +
	       counter_sum(&c->writeback);
}

static long uncached_pages(struct tr_cache *c)
{
	return counter_sum(&c->dontcache_dirty) + counter_sum(&c->writeback);
}

/* Pages that may be dirty in this line, and that are. */
static long limit(struct tr_cache *c, enum line line)
{
	return param(line == LINE_CACHED ? &c->params.dirty_limit
					 : &c->params.dontcache_limit) >>
	       PAGE_SHIFT;
}

static long used(struct tr_cache *c, enum line line)
{
	return line == LINE_CACHED ? throttle_dirty_pages(c)
				   : uncached_pages(c);
}

/* Pages that may still be dirtied in this line, by who was promised none. */
static long room(struct tr_cache *c, enum line line)
{
	long uncached = counter_sum(&c->throttle->promised[LINE_UNCACHED]);
	long all = limit(c, LINE_CACHED) - used(c, LINE_CACHED) - uncached -
		   counter_sum(&c->throttle->promised[LINE_CACHED]);

	if (line == LINE_CACHED)
		return all;
	return min_of(all, limit(c, line) - used(c, line) - uncached);
}

static void promise(struct tr_cache *c, enum line line, long pages)
{
	counter_add(&c->throttle->promised[line], pages);
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
	return throttle_dirty_pages(c) > param(&c->params.dirty_background) >>
	       PAGE_SHIFT;
}

bool throttle_has_waiters(const struct tr_cache *c)
{
	return atomic_load(&c->throttle->waiting[LINE_CACHED]) ||
	       atomic_load(&c->throttle->waiting[LINE_UNCACHED]);
}

static long edges_max(struct tr_cache *c)
{
	long most = param(&c->params.edge_max_pages);
	long half = param(&c->params.dirty_background) >> (PAGE_SHIFT + 1);

	return max_of(min_of(most, half), 1l);
}

/* From a quarter on writers look where they are. */
static long edges_near(struct tr_cache *c)
{
	return max_of(edges_max(c) / 4, 1l);
}

bool throttle_over_edges(struct tr_cache *c)
{
	return atomic_load(&c->nr_edges) >= edges_max(c);
}

/*
 * Who goes next: of those that wait for the file of the first in line, the one
 * at the lowest offset, unless the first has waited long. Many writers of one
 * file then move through it together, which keeps their shared edges few and
 * the device writes long; a time slice alone puts some of them far ahead.
 */
static struct waiter *next_in_line(struct cds_list_head *line, uint64_t now)
{
	struct waiter *first = cds_list_first_entry(line, struct waiter, node);
	struct waiter *best = first, *w;

	if (now - first->since_ns > PATIENCE_NS)
		return first;
	cds_list_for_each_entry (w, line, node)
		if (w->m == first->m && w->off < best->off)
			best = w;
	return best;
}

static void let_go(struct waiter *w)
{
	cds_list_del_init(&w->node);
	atomic_store(&w->go, true);
	waitq_wake_one(&w->wq);
}

/* Lets go from a line what fits. */
static void release_line(struct tr_cache *c, enum line line)
	REQUIRES(c->throttle->lock)
{
	struct throttle *t = c->throttle;
	long left = room(c, line);
	uint64_t now = clock_ns();

	if (left < limit(c, line) / RELEASE_SHARE &&
	    counter_sum(&c->writeback) > 0)
		return;
	while (left > 0 && !cds_list_empty(&t->line[line])) {
		struct waiter *w = next_in_line(&t->line[line], now);

		left -= w->pages;
		promise(c, line, w->pages);
		atomic_fetch_sub(&t->waiting[line], 1);
		let_go(w);
	}
}

/*
 * How many pages a write may be ahead of the lowest edge of its file that is
 * still incomplete: as far as a quarter of all edges there may be would reach.
 * The bytes that edge misses come from a writer that is not as far, and those
 * that are not add that quarter at most to the one that made everybody look.
 */
static int64_t window(struct mapping *m)
{
	return max_of(edges_near(m->cache) * (int64_t)(m->unit / PAGE_SIZE),
		      NEIGHBOUR_PAGES);
}

/* The first page of a file's lowest incomplete edge; without any, beyond all. */
static int64_t lowest_edge(struct mapping *m)
{
	uint64_t lowest = 0;
	bool any;

	mutex_lock(&m->index_lock);
	any = index_next_tag(&m->index, &lowest, INDEX_MAX, TAG_EDGE);
	mutex_unlock(&m->index_lock);
	return any ? (int64_t)lowest : INT64_MAX / 2;
}

/* Half of where writers begin to look: none of them then has to wait. */
static bool few_edges(struct tr_cache *c)
{
	return 2 * atomic_load(&c->nr_edges) < edges_near(c);
}

/*
 * Lets those go that ran ahead of m's edges and that its lowest edge has come
 * near to. That, and few_edges(), are half of what made them stop, so that who
 * goes has some way to go before it sleeps again.
 */
static void release_near(struct mapping *m)
{
	struct throttle *t = m->cache->throttle;
	int64_t to = lowest_edge(m) + window(m) / 2;
	struct waiter *w, *next;

	mutex_lock(&t->lock);
	cds_list_for_each_entry_safe (w, next, &t->ahead, node)
		if (w->m == m && w->off >> PAGE_SHIFT <= to)
			let_go(w);
	mutex_unlock(&t->lock);
}

/* When there are few edges: the next of those that ran ahead. Its write, when
 * it ends, lets the one after it go: all at once would be in each other's way. */
static void release_next(struct throttle *t)
{
	mutex_lock(&t->lock);
	if (!cds_list_empty(&t->ahead))
		let_go(next_in_line(&t->ahead, clock_ns()));
	mutex_unlock(&t->lock);
}

static void wake_evicting(struct tr_cache *c)
{
	if (atomic_load(&c->throttle->evicting) && !throttle_over_edges(c))
		waitq_wake_all(&c->throttle->edges);
}

/* That there are few now is seen at the end of the write. */
void throttle_edges_gone(struct mapping *m)
{
	struct tr_cache *c = m->cache;
	struct throttle *t = c->throttle;

	if (!atomic_load(&t->waiting_edges))
		return;
	wake_evicting(c);
	if (atomic_fetch_add(&t->gone, 1) %
		    min_of(EDGES_GONE_LOOK, edges_near(c)) ==
	    0)
		release_near(m);
}

/* Those that ran ahead, if edges are few. */
static void release_edges(struct tr_cache *c)
{
	if (atomic_load(&c->throttle->waiting_edges) && few_edges(c))
		release_next(c->throttle);
}

void throttle_release(struct tr_cache *c)
{
	struct throttle *t = c->throttle;

	wake_evicting(c);
	release_edges(c);
	if (!throttle_has_waiters(c))
		return;
	mutex_lock(&t->lock);
	release_line(c, LINE_CACHED);
	release_line(c, LINE_UNCACHED);
	mutex_unlock(&t->lock);
}

/* With its promise, whether release_line() gave it or not. */
static void leave_line(struct tr_cache *c, enum line line, struct waiter *w)
{
	struct throttle *t = c->throttle;

	mutex_lock(&t->lock);
	if (!cds_list_empty(&w->node)) {
		cds_list_del_init(&w->node);
		promise(c, line, w->pages);
		atomic_fetch_sub(&t->waiting[line], 1);
	}
	mutex_unlock(&t->lock);
}

static void stand_in_line(struct mapping *m, enum line line, int64_t off,
			  long pages)
{
	struct tr_cache *c = m->cache;
	struct throttle *t = c->throttle;
	struct waiter w = {
		.m = m, .off = off, .since_ns = clock_ns(), .pages = pages
	};
	bool go = false;

	cache_count(c, COUNT_THROTTLED, 1);
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
	leave_line(c, line, &w);
	cache_count(c, COUNT_THROTTLED_NS, clock_ns() - w.since_ns);
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

static bool may_go_on(struct mapping *m, int64_t off)
{
	return atomic_load(&m->cache->nr_edges) < edges_near(m->cache) ||
	       off >> PAGE_SHIFT <= lowest_edge(m) + window(m);
}

/* Sleeps until it is let go; false: nothing did for a while. */
static bool wait_ahead(struct mapping *m, int64_t off)
{
	struct throttle *t = m->cache->throttle;
	struct waiter w = { .m = m, .off = off, .since_ns = clock_ns() };
	bool go;

	cache_count(m->cache, COUNT_THROTTLED, 1);
	waitq_init(&w.wq);
	mutex_lock(&t->lock);
	cds_list_add_tail(&w.node, &t->ahead);
	mutex_unlock(&t->lock);
	/* What was completed between the look and the list is seen here. */
	release_near(m);
	release_edges(m->cache);
	go = wait_event_until(&w.wq, atomic_load(&w.go),
			      w.since_ns + NEIGHBOUR_WAIT_NS);
	mutex_lock(&t->lock);
	cds_list_del_init(&w.node);
	mutex_unlock(&t->lock);
	cache_count(m->cache, COUNT_THROTTLED_NS, clock_ns() - w.since_ns);
	return go;
}

/*
 * From edges_near() on a writer ahead of its neighbours sleeps, so that they
 * get the processor and complete the edges it left: a time slice is enough to
 * run thousands of edges ahead. It goes on when they have come near, or when
 * nothing was completed for a while: then no neighbour is coming, and until
 * they are seen to come again, by many completions, nobody waits for them. Of
 * records in random order neighbours do come, but late: each wait in vain puts
 * the next off for twice as many completions, and one that helped halves that.
 */
static void wait_for_neighbours(struct mapping *m, int64_t off)
{
	struct tr_cache *c = m->cache;
	struct throttle *t = c->throttle;
	unsigned vain;
	long seen;

	do {
		seen = counter_sum(&c->count[COUNT_EDGES_COMPLETED]);
		vain = atomic_load(&t->in_vain);
		if (may_go_on(m, off) || seen < atomic_load(&t->edges_hope))
			return;
		if (wait_ahead(m, off)) {
			atomic_compare_exchange_strong(&t->in_vain, &vain,
						       vain ? vain - 1 : 0);
			return;
		}
	} while (counter_sum(&c->count[COUNT_EDGES_COMPLETED]) != seen);
	/* One of all that waited in vain together counts. */
	if (atomic_compare_exchange_strong(&t->in_vain, &vain,
					   min_of(vain + 1, VAIN_MAX)))
		atomic_store(&t->edges_hope,
			     seen + (max_of(edges_near(c) / 8, 8l) << vain));
}

/* At the limit: the oldest are written and go first. */
static void wait_for_eviction(struct mapping *m)
{
	struct tr_cache *c = m->cache;
	struct throttle *t = c->throttle;
	uint64_t since;

	if (!throttle_over_edges(c))
		return;
	since = clock_ns();
	cache_count(c, COUNT_THROTTLED, 1);
	atomic_fetch_add(&t->evicting, 1);
	while (throttle_over_edges(c)) {
		start_edges(c);
		wait_event_until(&t->edges, !throttle_over_edges(c),
				 clock_ns() + RECHECK_NS);
	}
	atomic_fetch_sub(&t->evicting, 1);
	cache_count(c, COUNT_THROTTLED_NS, clock_ns() - since);
}

/* Whether wait_for_edges() would sleep: who may not is as far ahead. */
static bool has_to_wait(struct mapping *m, int64_t off)
{
	struct tr_cache *c = m->cache;

	if (throttle_over_edges(c))
		return true;
	return !may_go_on(m, off) &&
	       counter_sum(&c->count[COUNT_EDGES_COMPLETED]) >=
		       atomic_load(&c->throttle->edges_hope);
}

static int wait_for_edges(struct mapping *m, int64_t off, bool nowait)
{
	struct tr_cache *c = m->cache;

	if (nowait)
		return has_to_wait(m, off) ? -EAGAIN : 0;
	atomic_fetch_add(&c->throttle->waiting_edges, 1);
	wait_for_neighbours(m, off);
	wait_for_eviction(m);
	atomic_fetch_sub(&c->throttle->waiting_edges, 1);
	return 0;
}

/*
 * Spreads large writes evenly over the time the device needs for them, from a
 * quarter of the limit on: at the middle of what is left as fast as the device
 * writes, slower above and faster below. Each takes the next piece of time and
 * sleeps until it begins. Without it a writer would run to the limit and then
 * sleep for many writes at once.
 */
static void pace(struct mapping *m, enum line line, size_t len)
{
	struct wb *wb = m->bdi->root;
	unsigned long bandwidth = atomic_load(&wb->bandwidth), next, start;
	long most = limit(m->cache, line), least = most / 4;
	long above = min_of(used(m->cache, line), most) - least;
	uint64_t now, cost;

	if (len < PACE_MIN || !bandwidth || above <= 0 || most < 4)
		return;
	cost = (double)len * NS_PER_S / bandwidth * above /
	       ((most - least) / 2);
	now = clock_ns();
	next = atomic_load(&wb->pace_next[line]);
	do {
		start = max_of(next, now);
	} while (!atomic_compare_exchange_weak(&wb->pace_next[line], &next,
					       start + cost));
	if (start > now)
		clock_sleep(min_of(start - now, PACE_SLEEP_MAX));
}

/* Pages that len bytes may touch. */
static long pages_of(size_t len)
{
	return (len + 2 * PAGE_SIZE - 1) / PAGE_SIZE;
}

int throttle_write(struct mapping *m, int64_t off, size_t len, bool uncached,
		   bool nowait)
{
	struct tr_cache *c = m->cache;
	enum line line = uncached ? LINE_UNCACHED : LINE_CACHED;
	long pages = pages_of(len);
	long dirty = throttle_dirty_pages(c);
	int err = 0;

	note_peak(c, dirty + pages);
	/* Nobody would make room. */
	if (c->no_flushers)
		return 0;
	if (dirty > param(&c->params.dirty_background) >> PAGE_SHIFT)
		wb_start(m->bdi->root, WB_START_BACKGROUND);
	if (uncached && ((off | len) & (m->unit - 1)) &&
	    atomic_load(&c->nr_edges) >= edges_near(c))
		err = wait_for_edges(m, off, nowait);
	if (err)
		return err;
	if (!nowait)
		pace(m, line, len);
	if (room(c, line) > 0 && !atomic_load(&c->throttle->waiting[line])) {
		promise(c, line, pages);
		return 0;
	}
	if (nowait)
		return -EAGAIN;
	stand_in_line(m, line, off, pages);
	return 0;
}

void throttle_wrote(struct mapping *m, size_t len, bool uncached)
{
	struct tr_cache *c = m->cache;

	if (c->no_flushers)
		return;
	promise(c, uncached ? LINE_UNCACHED : LINE_CACHED, -pages_of(len));
	release_edges(c);
	/* It may have dirtied nothing; else a device write will end. */
	if (throttle_has_waiters(c) && counter_sum(&c->writeback) <= 0)
		throttle_release(c);
}

bool throttle_presses(struct tr_cache *c)
{
	return throttle_has_waiters(c) ||
	       2 * counter_sum(&c->dontcache_dirty) >
		       param(&c->params.dontcache_limit) >> PAGE_SHIFT;
}

/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * Sync with group commit.
 *
 * Callers of one file line up. Whoever finds no leader leads: it gathers, until
 * as many have joined as there were with the last group, at most for half the
 * time a sync takes (a group that waits for its members to come back is larger,
 * and the device sync the same: measured elsewhere 872-993 MiB/s against
 * 483-564). Then it takes the line, but for callers far ahead of the others
 * (reach()), writes out all their ranges as one, syncs the device once, and
 * tells everybody. Those who came later have their data written perhaps, but not
 * covered: they are the next group, and the first of them its leader.
 *
 * Callers that need long between two syncs, as a server's whose clients have to
 * send the next record, do not come back in time to be gathered. They fall into
 * two or three groups that take turns: while the device works for one, the
 * processors work for the others. So there is no gathering when a good part
 * already waits, the next leader is woken before those that are served, and
 * nobody is woken who is not called: a tenth more with 47008-byte FILE_SYNC
 * writes of 32 connections over NFS, in groups of 13 instead of 17.
 *
 * Tried and left: two groups at work at once, one writing while the other syncs
 * (their halves cost more than the overlap gave), callers that write their own
 * whole pages before they line up (more device writes, 0.5 of the rate), leaders
 * that lead several groups in a row (their own records are missing between their
 * neighbours': 0.85 of the rate without a network), and those served waking each
 * other (no gain).
 *
 * The device sync is left out if nothing changed on the device since the last
 * good one began. A failed one may have lost everything written since then:
 * that is an error to all of the group and to every opening, and a new loss
 * generation.
 */
#include "cache/io.h"

#include "base/clock.h"
#include "writeback/writeout.h"

#include <errno.h>
#include <stdbool.h>

/* Callers of one group: as many as a busy server has workers. */
#define GROUP_MAX 64

/* Groups that may leave a caller waiting who is ahead of others: as many rounds
 * as writers are apart after a start one by one. */
#define PASSED_MAX 4

/* A third of the callers is worth a group of its own. */
#define GOOD_PART 3

/* What a caller in line is told. */
enum call { CALL_NONE, CALL_LEAD, CALL_SERVED };

struct sync_waiter {
	struct cds_list_head node;
	struct page_range range;
	bool meta;
	unsigned passed; /* groups that left it waiting */
	struct waitq *wq; /* of the mapping's: it outlives the waiter */
	int err;
	atomic_uint call; /* CALL_SERVED is set last: the waiter may be gone */
};

/* The group: taken from the line under the lock. */
struct group {
	struct sync_waiter *w[GROUP_MAX];
	struct waitq *wq[GROUP_MAX];
	struct page_range range[GROUP_MAX];
	unsigned nr;
	bool meta;
};

static void gather(struct mapping *m)
{
	struct sync_state *s = &m->sync;
	unsigned want;
	uint64_t until;

	mutex_lock(&s->lock);
	want = s->last_group;
	until = clock_ns() + s->sync_ns / 2;
	mutex_unlock(&s->lock);
	if (want > 1 && GOOD_PART * atomic_load(&s->nr_waiting) < want) {
		atomic_store(&s->want, want);
		wait_event_until(&s->joined,
				 atomic_load(&s->nr_waiting) >= want, until);
		atomic_store(&s->want, 0);
	}
}

/* The callers in line, lowest offset first. */
static unsigned sort_line(struct sync_state *s, struct sync_waiter **w)
	REQUIRES(s->lock)
{
	struct sync_waiter *next;
	unsigned nr = 0, i;

	cds_list_for_each_entry (next, &s->waiting, node) {
		if (nr == GROUP_MAX)
			break;
		for (i = nr++; i && w[i - 1]->range.first > next->range.first;
		     i--)
			w[i] = w[i - 1];
		w[i] = next;
	}
	return nr;
}

/*
 * How far up the file a group reaches. Interleaved writers follow on each
 * other, and whoever once missed a group would stay a round behind the others
 * for ever: their shared edges would never be complete in one group, and its
 * writes never grow together. So where a quarter or more follow on each other,
 * those ahead of one round, counted from the lowest, wait for those behind.
 * Rewriting 47008-byte records by 32 writers: 0.64 fills a record before, 0.1
 * after, at 1.6 times the rate.
 */
static uint64_t reach(struct sync_waiter *const *w, unsigned nr)
{
	uint64_t pages = 0;
	unsigned chained = 0;

	for (unsigned i = 0; i < nr; i++) {
		pages += w[i]->range.last - w[i]->range.first + 1;
		chained += i && w[i]->range.first <= w[i - 1]->range.last + 1;
	}
	return 4 * chained < nr ? UINT64_MAX : w[0]->range.first + pages;
}

static void take_line(struct sync_state *s, struct group *g)
{
	struct sync_waiter *w[GROUP_MAX];
	unsigned nr;
	uint64_t end;

	mutex_lock(&s->lock);
	nr = sort_line(s, w);
	end = nr ? reach(w, nr) : 0;
	for (unsigned i = 0; i < nr; i++) {
		if (w[i]->range.first >= end && w[i]->passed++ < PASSED_MAX)
			continue;
		cds_list_del(&w[i]->node);
		g->range[g->nr] = w[i]->range;
		g->meta |= w[i]->meta;
		g->wq[g->nr] = w[i]->wq;
		g->w[g->nr++] = w[i];
	}
	atomic_fetch_sub(&s->nr_waiting, g->nr);
	mutex_unlock(&s->lock);
}

/* Makes durable what has changed on the device so far. */
static int device_sync(struct mapping *m, bool meta)
{
	unsigned long changes = atomic_load(&m->changes);
	bool needed =
		changes != atomic_load(meta ? &m->meta_durable : &m->durable);
	int err;

	if (!needed)
		return 0;
	counter_add(&m->bdi->totals[BDI_SYNCS], 1);
	err = m->bdi->store->ops->sync(m->sf, !meta);
	if (err) {
		err_set(m, err);
		atomic_fetch_add(&m->loss, 1);
		return err;
	}
	atomic_store(&m->durable, changes);
	if (meta)
		atomic_store(&m->meta_durable, changes);
	return 0;
}

/* Whoever is next in line leads the next group. Returns where it sleeps, NULL:
 * nobody waits. */
static struct waitq *hand_over(struct sync_state *s) REQUIRES(s->lock)
{
	struct sync_waiter *next;

	s->running = !cds_list_empty(&s->waiting);
	if (!s->running)
		return NULL;
	next = cds_list_first_entry(&s->waiting, struct sync_waiter, node);
	atomic_store(&next->call, CALL_LEAD);
	return next->wq;
}

static void lead(struct mapping *m)
{
	struct sync_state *s = &m->sync;
	struct group g = { .nr = 0 };
	struct waitq *next;
	unsigned long errors;
	uint64_t start;
	int err;

	gather(m);
	take_line(s, &g);
	start = clock_ns();
	errors = atomic_load(&m->nr_errors);
	err = writeout_wait(m, g.range, g.nr);
	if (g.meta)
		mapping_settle_mtime(m);
	err = device_sync(m, g.meta) ?: err;
	/* By number: an error like one that nobody was told of changes
	 * nothing else. */
	if (!err && atomic_load(&m->nr_errors) != errors)
		err = err_last(m);
	mutex_lock(&s->lock);
	for (unsigned i = 0; i < g.nr; i++) {
		g.w[i]->err = err;
		atomic_store(&g.w[i]->call, CALL_SERVED);
	}
	/* Who came while it was at work is as many more. */
	s->last_group = g.nr + atomic_load(&s->nr_waiting);
	/* An eighth of the new on seven of the old: follows a device that
	 * changes within some ten groups. */
	s->sync_ns += ((int64_t)(clock_ns() - start) - (int64_t)s->sync_ns) / 8;
	next = hand_over(s);
	mutex_unlock(&s->lock);
	/* The next leader first: the device shall not wait until processors
	 * are done with those that are served. */
	if (next)
		waitq_wake_all(next);
	for (unsigned i = 0; i < g.nr; i++)
		waitq_wake_all(g.wq[i]);
}

static enum call called(struct sync_waiter *w)
{
	explore_point(&w->call);
	return atomic_load(&w->call);
}

/* Puts the caller in line. It is called to lead if nobody does. */
static unsigned line_up(struct sync_state *s, struct sync_waiter *w)
{
	unsigned waiting;

	mutex_lock(&s->lock);
	w->wq = &s->called[s->nr_called++ % SYNC_QUEUES];
	cds_list_add_tail(&w->node, &s->waiting);
	waiting = atomic_fetch_add(&s->nr_waiting, 1) + 1;
	if (!s->running)
		(void)hand_over(s);
	mutex_unlock(&s->lock);
	return waiting;
}

int cache_sync_range(struct mapping *m, int64_t off, int64_t len, bool meta)
{
	struct sync_state *s = &m->sync;
	struct sync_waiter w = { .meta = meta };
	uint64_t last = len && off <= TR_OFFSET_MAX - len ? off + len - 1
							  : TR_OFFSET_MAX;
	unsigned waiting, want;

	w.range.first = off >> PAGE_SHIFT;
	w.range.last = last >> PAGE_SHIFT;
	waiting = line_up(s, &w);
	want = atomic_load(&s->want);
	if (want && waiting >= want)
		waitq_wake_all(&s->joined);
	cache_count(m->cache, COUNT_SYNC_CALLS, 1);
	for (;;) {
		wait_event(w.wq, called(&w) != CALL_NONE);
		if (called(&w) == CALL_SERVED)
			return w.err;
		/* It may be told to lead again: others went before it. */
		atomic_store(&w.call, CALL_NONE);
		lead(m);
	}
}

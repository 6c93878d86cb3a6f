/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * The flusher's loop, its passes, and the retirement of edges.
 *
 * A pass takes files oldest first, a slice of each in turn, and writes up to a
 * number of pages: all above dirty_background, or as many as are uncached and
 * dirty, from whatever file is oldest (only uncached ones would be slower and
 * starve the others). Device writes are pipelined across passes: the flusher
 * waits for one only when io_depth are in flight or there is nothing else to
 * do, so small writes grow into large ones while the device is busy.
 */
#include "writeback/flush.h"

#include "base/clock.h"
#include "base/mem.h"
#include "base/task.h"
#include "base/trace.h"
#include "folio/edge.h"
#include "folio/state.h"
#include "writeback/fill.h"
#include "writeback/throttle.h"
#include "writeback/writeout.h"

#include <errno.h>
#include <limits.h>

/* Pages of one file before the next has its turn: 8 MiB. */
#define SLICE_PAGES 2048

/* Edges filled and retired together. */
#define EDGE_BATCH 64

/* How long uncached data is left in short runs while nothing presses. */
#define LINGER_NS (20 * NS_PER_MS)

/* How soon what could not be dropped is tried again. */
#define DROP_RETRY_NS (1 * NS_PER_MS)

struct flusher {
	struct wb *wb;
	struct writer *writer;
	struct task *task;
	uint64_t last_periodic;
	uint64_t linger_until; /* short runs are left so long; 0: none are */
};

static const char *const reason_names[WB_REASONS] = {
	[WB_REASON_BACKGROUND] = "background",
	[WB_REASON_PERIODIC] = "periodic",
	[WB_REASON_SYNC] = "sync",
	[WB_REASON_RECLAIM] = "reclaim",
	[WB_REASON_DONTCACHE] = "dontcache",
	[WB_REASON_EDGE_AGE] = "edge_age",
};

/* ---- passes ---- */

/* Writes up to nr pages of a file from where the last pass stopped, round the
 * end. Returns how many. */
static long write_file(struct flusher *fl, struct mapping *m,
		       enum wb_reason reason, long nr, size_t min_run)
{
	/* No rule to leave dirty data alone holds while a writer sleeps. */
	bool tail = (reason != WB_REASON_DONTCACHE &&
		     reason != WB_REASON_BACKGROUND) ||
		    throttle_has_waiters(m->cache);
	struct writeout wo = {
		.tag = TAG_DIRTY,
		.first = m->flush_next,
		.last = INDEX_MAX,
		.nr_pages = nr,
		.tail = tail,
		.min_run = min_run,
	};

	writeout(fl->writer, m, &wo);
	if (wo.nr_pages > 0 && wo.first) {
		wo.last = wo.first - 1;
		wo.first = 0;
		writeout(fl->writer, m, &wo);
	}
	m->flush_next = wo.next > INDEX_MAX ? 0 : wo.next;
	return nr - wo.nr_pages;
}

/* Whether a pass for this reason has done enough. */
static bool enough(struct flusher *fl, enum wb_reason reason)
{
	struct tr_cache *c = fl->wb->cache;

	if (atomic_load(&fl->wb->state) & WB_STOP)
		return true;
	return reason == WB_REASON_BACKGROUND && !throttle_over_background(c) &&
	       !throttle_has_waiters(c);
}

/* Writes up to nr pages of files that became dirty before older_than. */
static long pass_runs(struct flusher *fl, enum wb_reason reason, long nr,
		      uint64_t older_than, size_t min_run)
{
	struct wb *wb = fl->wb;
	struct mapping *m;
	long done = 0, n;

	/* All there is means now: what is dirtied meanwhile, or could not be
	 * written, must not keep the pass going. */
	if (nr == LONG_MAX && reason != WB_REASON_BACKGROUND)
		nr = counter_sum(&wb->nr.reclaimable);
	atomic_fetch_add(&wb->passes[reason], 1);
	wb_queue_io(wb, older_than);
	while (done < nr && !enough(fl, reason) && (m = wb_take(wb))) {
		n = write_file(fl, m, reason,
			       min_of(nr - done, (long)SLICE_PAGES), min_run);
		done += n;
		if (n)
			mapping_settle_mtime(m);
		wb_give_back(m, n >= SLICE_PAGES);
		if (n)
			wb_queue_io(wb, older_than);
	}
	TRACE(flush_pass, .reason = reason_names[reason], .wb = wb->group,
	      .pages = done);
	return done;
}

static long pass(struct flusher *fl, enum wb_reason reason, long nr,
		 uint64_t older_than)
{
	return pass_runs(fl, reason, nr, older_than, 0);
}

/* ---- edges ---- */

/*
 * An edge that could not be filled, locked. As often as a failed write, it
 * waits for better times; then it is given up: it must not hold memory, and a
 * place among the edges, for ever.
 */
static void fill_failed(struct mapping *m, struct folio *f, int err)
{
	if (f->retries++ < EIO_RETRIES)
		return;
	err_set(m, err);
	cache_count(m->cache, COUNT_LOST_PAGES, folio_nr_pages(f));
	atomic_fetch_add(&m->loss, 1);
	folio_remove(f);
}

/* Fills the edges and ends them: marked, and tagged DIRTY if dirty, so that
 * the next pass writes and drops them; dropped at once if clean. */
static int retire(struct mapping *m, struct folio **f, unsigned nr,
		  enum cache_count why)
{
	int err = fill_edges(m, f, nr);

	for (unsigned i = 0; i < nr; i++) {
		unsigned s;

		folio_lock(f[i]);
		s = folio_test(f[i], FOLIO_EDGE | FOLIO_UPTODATE);
		if (f[i]->mapping != m) {
			folio_unlock(f[i]);
			continue;
		}
		if (s == FOLIO_EDGE && err == -EIO &&
		    !folio_test(f[i], FOLIO_FILLING | FOLIO_WRITEBACK))
			fill_failed(m, f[i], err);
		if (s == (FOLIO_EDGE | FOLIO_UPTODATE)) {
			edge_retire(m, f[i]);
			cache_count(m->cache, why, 1);
			TRACE(edge_aged, .ino = m->id.ino,
			      .offset = f[i]->idx << PAGE_SHIFT);
		}
		folio_unlock(f[i]);
	}
	folios_drop_behind(m, f, nr);
	return err;
}

/* Retires a batch whose folios may be of several mappings, and puts its
 * references. */
static int retire_refs(struct edge_ref *r, unsigned nr, enum cache_count why)
{
	struct folio *f[EDGE_BATCH];
	int err = 0;

	for (unsigned i = 0; i < nr;) {
		struct mapping *m = r[i].m;
		unsigned n = 0;

		while (i + n < nr && r[i + n].m == m) {
			f[n] = r[i + n].f;
			n++;
		}
		err = retire(m, f, n, why) ?: err;
		for (unsigned k = 0; k < n; k++) {
			folio_put(f[k], m->cache);
			mapping_put(m);
		}
		i += n;
	}
	return err;
}

/* Retires the oldest edges of this device as long as they are too old or too
 * many, and hurry: a batch of them anyhow. */
static void age_edges(struct flusher *fl, bool hurry)
{
	struct tr_cache *c = fl->wb->cache;
	struct edge_ref r[EDGE_BATCH];
	uint64_t age = param(&c->params.edge_max_age) * NS_PER_MS;
	uint64_t now = clock_ns(), since;
	unsigned nr;
	bool any = false;

	do {
		bool many = hurry || throttle_over_edges(c);

		since = many ? UINT64_MAX : now > age ? now - age : 0;
		nr = edge_oldest(c, fl->wb->bdi, since, r, EDGE_BATCH);
		if (nr &&
		    retire_refs(r, nr,
				many ? COUNT_EDGES_EVICTED : COUNT_EDGES_AGED))
			break; /* unreadable now: with the next period */
		any |= nr > 0;
		hurry = false;
	} while (nr == EDGE_BATCH || (nr && throttle_over_edges(c)));
	if (any)
		pass(fl, WB_REASON_EDGE_AGE, LONG_MAX, UINT64_MAX);
	throttle_release(c);
}

int flush_edges_of(struct mapping *m)
{
	struct page_range all = { 0, INDEX_MAX };
	struct edge_ref r[EDGE_BATCH];
	unsigned nr;
	int err = 0;
	bool any = false;

	while (!err && (nr = edge_of_mapping(m, r, EDGE_BATCH))) {
		any = true;
		err = retire_refs(r, nr, COUNT_EDGES_EVICTED);
	}
	if (any)
		err = writeout_wait(m, &all, 1) ?: err;
	return err;
}

/* ---- the loop ---- */

/*
 * As many pages as are uncached and dirty, in long runs: what many writers are
 * just filling comes in short ones that soon grow together. Those are written
 * when they are all there is and data presses, or after a moment.
 */
static void kicked(struct flusher *fl)
{
	struct counter *uncached = &fl->wb->nr.dontcache_dirty;
	long nr = counter_sum(uncached);

	if (nr <= 0)
		return;
	if (pass_runs(fl, WB_REASON_DONTCACHE, nr, UINT64_MAX,
		      WRITEOUT_RUN_MAX))
		fl->linger_until = 0;
	else if (throttle_presses(fl->wb->cache))
		pass(fl, WB_REASON_DONTCACHE, nr, UINT64_MAX);
	if (!fl->linger_until && counter_sum(uncached) > 0)
		fl->linger_until = clock_ns() + LINGER_NS;
}

static void linger_over(struct flusher *fl)
{
	long nr = counter_sum(&fl->wb->nr.dontcache_dirty);

	if (!fl->linger_until || clock_ns() < fl->linger_until)
		return;
	fl->linger_until = 0;
	if (nr > 0)
		pass(fl, WB_REASON_DONTCACHE, nr, UINT64_MAX);
}

static void reclaim(struct flusher *fl)
{
	if (!pass(fl, WB_REASON_RECLAIM, LONG_MAX, UINT64_MAX))
		age_edges(fl, true);
}

static void periodic(struct flusher *fl)
{
	struct tr_cache *c = fl->wb->cache;
	uint64_t now = clock_ns();
	uint64_t expire = param(&c->params.dirty_expire) * NS_PER_MS;
	uint64_t interval = param(&c->params.flush_interval) * NS_PER_MS;
	uint64_t age = param(&c->params.edge_max_age) * NS_PER_MS;

	if (now - fl->last_periodic < interval)
		return;
	fl->last_periodic = now;
	if (wb_has_io(fl->wb) && now > expire)
		pass(fl, WB_REASON_PERIODIC, LONG_MAX, now - expire);
	if (edge_oldest_ns(c) <= now - min_of(age, now))
		age_edges(fl, false);
}

/* Does what is asked for. Returns whether there was anything. */
static bool work(struct flusher *fl)
{
	struct wb *wb = fl->wb;
	unsigned asked = state_and(&wb->state, WB_STOP) & ~WB_STOP;

	if (asked & WB_START_DONTCACHE)
		kicked(fl);
	if (asked & WB_START_BACKGROUND)
		pass(fl, WB_REASON_BACKGROUND, LONG_MAX, UINT64_MAX);
	if (asked & WB_START_ALL)
		pass(fl, WB_REASON_PERIODIC, LONG_MAX, UINT64_MAX);
	if (asked & WB_START_RECLAIM)
		reclaim(fl);
	if (asked & WB_START_EDGES)
		age_edges(fl, false);
	if (asked & WB_START_DROPS)
		(void)wb_run_drops(wb);
	linger_over(fl);
	periodic(fl);
	return asked;
}

/* When there is something to do though nobody asks. */
static uint64_t next_look(struct flusher *fl)
{
	struct tr_cache *c = fl->wb->cache;
	uint64_t until;

	if (wb_run_drops(fl->wb))
		return clock_ns() + DROP_RETRY_NS;
	/* From the last look, not from now: the clock may have jumped. */
	until = fl->last_periodic +
		param(&c->params.flush_interval) * NS_PER_MS;
	return fl->linger_until ? min_of(until, fl->linger_until) : until;
}

static void flusher_main(void *arg)
{
	struct flusher *fl = arg;
	struct wb *wb = fl->wb;

	while (!(state_load(&wb->state) & WB_STOP)) {
		writer_set_depth(fl->writer,
				 param(&wb->cache->params.io_depth));
		if (work(fl))
			continue;
		if (writer_in_flight(fl->writer))
			writer_reap(fl->writer, 1);
		else
			wait_event_until(&wb->wake, state_load(&wb->state),
					 next_look(fl));
	}
	writer_drain(fl->writer);
	wb_run_drops(wb);
}

int flusher_start(struct wb *wb)
{
	struct flusher *fl = mem_zalloc(sizeof(*fl));
	int err;

	if (!fl)
		return -ENOMEM;
	fl->wb = wb;
	fl->last_periodic = clock_ns();
	err = writer_create(wb->bdi, param(&wb->cache->params.io_depth),
			    &fl->writer);
	if (err)
		goto out_free;
	err = task_create(&fl->task, "tr-flush", flusher_main, fl);
	if (err)
		goto out_writer;
	wb->flusher = fl;
	return 0;
out_writer:
	writer_destroy(fl->writer);
out_free:
	mem_free(fl);
	return err;
}

void flusher_stop(struct wb *wb)
{
	struct flusher *fl = wb->flusher;

	if (!fl)
		return;
	wb_start(wb, WB_STOP);
	task_join(fl->task);
	writer_destroy(fl->writer);
	mem_free(fl);
	wb->flusher = NULL;
}

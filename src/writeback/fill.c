/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * Fills. The bounce pages are one piece of the arena with a bit per page;
 * a fill takes all pages of its unit at once or waits, so two never block each
 * other half way.
 */
#include "writeback/fill.h"

#include "base/mem.h"
#include "folio/blocks.h"
#include "folio/edge.h"
#include "folio/state.h"

#include <assert.h>
#include <errno.h>
#include <string.h>

_Static_assert(FILL_PAGES == 64, "one word of bits");

/* One fill in flight: that of its first bounce page. */
struct fill {
	struct tr_io io;
	struct mapping *m;
	struct folio *f;
	uint64_t pages; /* bounce pages, a bit each */
	size_t valid; /* bytes before end of file when it began */
	struct iovec iov[FILL_PAGES];
};

struct fills {
	struct folio *pages; /* FILL_PAGES of the arena */
	atomic_ulong used; /* (A) a bit per page */
	struct waitq freed;
	/* Whoever has a page has its fill too. */
	struct fill fill[FILL_PAGES];
};

int fill_init(struct tr_cache *c)
{
	c->fills = mem_zalloc(sizeof(*c->fills));
	if (!c->fills)
		return -ENOMEM;
	c->fills->pages =
		arena_alloc(c->arena, __builtin_ctz(FILL_PAGES), ARENA_RESERVE);
	if (c->fills->pages)
		return 0;
	mem_free(c->fills);
	c->fills = NULL;
	return -ENOMEM;
}

void fill_fini(struct tr_cache *c)
{
	atomic_store(&c->fills->pages->refs, 0);
	arena_free(c->arena, c->fills->pages);
	mem_free(c->fills);
}

/* n bits that are 0 in used; 0: there are not as many. */
static uint64_t pick_bits(uint64_t used, unsigned n)
{
	uint64_t pick = 0;

	if ((unsigned)__builtin_popcountll(~used) < n)
		return 0;
	while (n--)
		pick |= ~(used | pick) & -~(used | pick);
	return pick;
}

static bool try_take(struct fills *fs, unsigned n, uint64_t *out)
{
	unsigned long used = atomic_load(&fs->used);
	uint64_t pick;

	explore_point(&fs->used);
	do {
		pick = pick_bits(used, n);
		if (!pick)
			return false;
	} while (!atomic_compare_exchange_weak(&fs->used, &used, used | pick));
	*out = pick;
	return true;
}

static void give_back(struct fills *fs, uint64_t pages)
{
	atomic_fetch_and(&fs->used, ~pages);
	waitq_wake_all(&fs->freed);
}

/* Copies into the folio what is not covered, from the bounce pages up to valid
 * bytes, zeros beyond. */
static void copy_gaps(struct mapping *m, struct folio *f,
		      const struct iovec *iov, size_t valid)
{
	char *data = folio_data(f);
	size_t from = 0, to = m->unit;

	while (edge_next_gap(f, &from, &to)) {
		for (size_t at = from; at < to;) {
			size_t n = min_of(to - at, PAGE_SIZE - at % PAGE_SIZE);

			if (at < valid) {
				n = min_of(n, valid - at);
				memcpy(data + at,
				       (char *)iov[at / PAGE_SIZE].iov_base +
					       at % PAGE_SIZE,
				       n);
			} else {
				memset(data + at, 0, n);
			}
			at += n;
		}
		from = to;
		to = m->unit;
	}
}

/* Bytes of the unit that are before end of file in memory. */
static size_t valid_bytes(struct mapping *m, const struct folio *f)
{
	int64_t left = mapping_size(m) - (int64_t)(f->idx << PAGE_SHIFT);

	return left <= 0 ? 0 : min_of((uint64_t)left, (uint64_t)m->unit);
}

/* Fills without a read where nothing on the store is needed. */
static bool fill_from_nothing(struct mapping *m, struct folio *f)
{
	int64_t pos = f->idx << PAGE_SHIFT;
	size_t valid = valid_bytes(m, f);

	if (pos < atomic_load(&m->store_size) && !edge_has(f, 0, valid))
		return false;
	copy_gaps(m, f, NULL, 0);
	state_or(&f->state, FOLIO_UPTODATE);
	return true;
}

static void fill_done(struct tr_io *io)
{
	struct fill *fill = container_of(io, struct fill, io);
	struct folio *f = fill->f;
	struct mapping *m = fill->m;

	folio_lock(f);
	if (io->result >= 0 && f->edge && !folio_test(f, FOLIO_UPTODATE)) {
		copy_gaps(m, f, fill->iov,
			  min_of((size_t)io->result, fill->valid));
		state_or(&f->state, FOLIO_UPTODATE);
	}
	folio_clear_wake(f, FOLIO_FILLING);
	folio_unlock(f);
	give_back(m->cache->fills, fill->pages);
	folio_put(f, m->cache);
}

static void start_fill(struct mapping *m, struct folio *f, uint64_t pages,
		       struct tr_queue *q)
{
	struct fill *fill = &m->cache->fills->fill[__builtin_ctzll(pages)];
	char *bounce = folio_data(m->cache->fills->pages);
	int nr = 0;

	for (uint64_t left = pages; left; left &= left - 1) {
		fill->iov[nr].iov_base =
			bounce + (size_t)__builtin_ctzll(left) * PAGE_SIZE;
		fill->iov[nr++].iov_len = PAGE_SIZE;
	}
	fill->m = m;
	fill->f = f;
	fill->pages = pages;
	fill->valid = valid_bytes(m, f);
	fill->io = (struct tr_io){
		.op = TR_IO_READ,
		.file = m->sf,
		.off = f->idx << PAGE_SHIFT,
		.iov = fill->iov,
		.nr_iov = nr,
		.len = m->unit,
		.done = fill_done,
	};
	folio_get(f);
	state_or(&f->state, FOLIO_FILLING);
	cache_count(m->cache, COUNT_FILLS, 1);
	counter_add(&m->bdi->totals[BDI_READS], 1);
	counter_add(&m->bdi->totals[BDI_READ_BYTES], m->unit);
	m->bdi->store->ops->start(q, &fill->io);
}

/* Fills on one queue. */
struct batch {
	struct mapping *m;
	struct tr_queue *q;
	unsigned in_flight;
};

static void batch_drain(struct batch *b)
{
	while (b->in_flight)
		b->in_flight -= b->m->bdi->store->ops->wait(b->q, b->in_flight);
}

/* Bounce pages for one unit; waits for our own fills first, then others'. */
static uint64_t batch_take(struct batch *b)
{
	struct fills *fs = b->m->cache->fills;
	unsigned n = b->m->unit / PAGE_SIZE;
	uint64_t pages = 0;

	if (try_take(fs, n, &pages))
		return pages;
	batch_drain(b);
	wait_event(&fs->freed, try_take(fs, n, &pages));
	return pages;
}

static bool needs_fill(const struct folio *f)
{
	return folio_test(f, FOLIO_EDGE | FOLIO_UPTODATE) == FOLIO_EDGE;
}

/* Starts the fill of a locked folio, unless there is nothing to read. */
static void batch_add(struct batch *b, struct folio *f)
{
	uint64_t pages;

	if (!needs_fill(f) || folio_test(f, FOLIO_FILLING) ||
	    fill_from_nothing(b->m, f))
		return;
	folio_unlock(f);
	pages = batch_take(b);
	folio_lock(f);
	if (f->mapping != b->m || !needs_fill(f) ||
	    folio_test(f, FOLIO_FILLING | FOLIO_WRITEBACK)) {
		give_back(b->m->cache->fills, pages);
		return;
	}
	start_fill(b->m, f, pages, b->q);
	b->in_flight++;
}

int fill_edges(struct mapping *m, struct folio **f, unsigned nr)
{
	struct batch b = { .m = m };
	int err = bdi_queue_get(m->bdi, &b.q);

	if (err)
		return err;
	for (unsigned i = 0; i < nr; i++) {
		folio_lock(f[i]);
		if (f[i]->mapping == m)
			batch_add(&b, f[i]);
		folio_unlock(f[i]);
	}
	batch_drain(&b);
	for (unsigned i = 0; i < nr; i++) {
		folio_wait(f[i], FOLIO_FILLING);
		folio_lock(f[i]);
		if (f[i]->mapping == m && needs_fill(f[i]))
			err = err ?: -EIO;
		folio_unlock(f[i]);
	}
	bdi_queue_put(m->bdi, b.q);
	return err;
}

int fill_locked(struct mapping *m, struct folio *f)
{
	int err;

	if (!needs_fill(f) || fill_from_nothing(m, f))
		return 0;
	folio_unlock(f);
	err = fill_edges(m, &f, 1);
	folio_lock(f);
	return err;
}

struct one_read {
	struct tr_io io;
	bool done;
};

static void one_read_done(struct tr_io *io)
{
	container_of(io, struct one_read, io)->done = true;
}

/* Reads whole blocks. */
static int read_blocks(struct mapping *m, int64_t off, void *to, size_t len)
{
	struct iovec iov = { to, len };
	struct one_read r = { .io = { .op = TR_IO_READ,
				      .file = m->sf,
				      .off = off,
				      .iov = &iov,
				      .nr_iov = 1,
				      .len = len,
				      .done = one_read_done } };
	int64_t valid = mapping_size(m) - off;
	struct tr_queue *q;
	int err;

	if (off >= atomic_load(&m->store_size)) {
		memset(to, 0, len);
		return 0;
	}
	err = bdi_queue_get(m->bdi, &q);
	if (err)
		return err;
	counter_add(&m->bdi->totals[BDI_READS], 1);
	counter_add(&m->bdi->totals[BDI_READ_BYTES], len);
	m->bdi->store->ops->start(q, &r.io);
	while (!r.done)
		m->bdi->store->ops->wait(q, 1);
	bdi_queue_put(m->bdi, q);
	if (r.io.result < 0)
		return r.io.result;
	valid = max_of(min_of(valid, (int64_t)r.io.result), 0l);
	memset((char *)to + valid, 0, len - valid);
	return 0;
}

int fill_missing(struct mapping *m, struct folio *f, size_t from, size_t to,
		 bool nowait)
{
	size_t end;
	int err = 0;

	if (!f->blocks) {
		from = 0;
		to = folio_len(f);
	}
	end = to;
	while (!err && blocks_next_missing(m, f, &from, &to)) {
		if (nowait)
			return -EAGAIN;
		err = read_blocks(m, (f->idx << PAGE_SHIFT) + from,
				  (char *)folio_data(f) + from, to - from);
		if (!err)
			blocks_set_uptodate(m, f, from, to);
		from = to;
		to = end;
	}
	return err;
}

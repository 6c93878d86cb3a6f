/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * Building, sending and ending device writes.
 *
 *	writeout -> collect (references on tagged folios)
 *	         -> take (locks, crops, leaves alone what is not to be written)
 *	         -> start_ready (clean -> writeback, one section for all)
 *	         -> add_folio (dirty runs into requests) -> send
 *	wio_done -> folios_end_writeback, folios_drop_behind
 *
 * Before it sleeps for a folio, a writer sends what it has built: whoever
 * holds that folio may wait for a folio that is in it.
 *
 * folio.ios counts the device writes of a folio in flight, plus one while it
 * is being taken apart; its writeback ends with the last.
 */
#include "writeback/writeout.h"

#include "base/clock.h"
#include "base/mem.h"
#include "folio/blocks.h"
#include "folio/state.h"
#include "writeback/throttle.h"

#include <assert.h>
#include <errno.h>
#include <string.h>

/* Folios looked at between two sections of the index lock. */
#define WRITEOUT_BATCH 64

/* What of the cache may be dirty for want of space on the device. */
#define FAILED_SHARE 16

/* Over how much time the device's bandwidth is measured; the first time less:
 * until it is known, nobody is paced. What a time must have written to count:
 * less tells of latency. */
#define MEASURE_NS (20 * NS_PER_MS)
#define MEASURE_FIRST_NS (2 * NS_PER_MS)
#define MEASURE_BYTES (1u << 20)

struct wio {
	struct tr_io io;
	struct writer *w;
	struct mapping *m;
	struct wio *next; /* free list, or those to go on with */
	unsigned nr_folios;
	struct folio *folios[TR_IO_IOV_MAX];
	struct iovec iov[TR_IO_IOV_MAX];
};

struct writer {
	struct bdi *bdi;
	struct tr_queue *q;
	unsigned depth;
	unsigned in_flight;
	unsigned nr_wios; /* made so far, at most depth and one */
	struct wio *free;
	struct wio *open; /* being built */
	uint64_t busy_since; /* clock_ns(): what is measured began */
	uint64_t busy_ns; /* of it, at the last write that ended */
	uint64_t busy_bytes; /* written in it */
	struct wio *rest; /* written in part: the rest is to be sent */
};

int writer_create(struct bdi *bdi, unsigned depth, struct writer **out)
{
	struct writer *w = mem_zalloc(sizeof(*w));
	int err;

	if (!w)
		return -ENOMEM;
	w->bdi = bdi;
	w->depth = depth;
	w->free = mem_zalloc(sizeof(*w->free));
	w->nr_wios = 1;
	err = w->free ? bdi_queue_get(bdi, &w->q) : -ENOMEM;
	if (err) {
		mem_free(w->free);
		mem_free(w);
		return err;
	}
	*out = w;
	return 0;
}

void writer_destroy(struct writer *w)
{
	struct wio *wio;

	writer_drain(w);
	while ((wio = w->free)) {
		w->free = wio->next;
		mem_free(wio);
	}
	bdi_queue_put(w->bdi, w->q);
	mem_free(w);
}

/* Sends what is left of writes that the store did in part. */
static void send_rest(struct writer *w)
{
	const struct tr_store_ops *ops = w->bdi->store->ops;
	struct wio *wio;

	if (!w->rest)
		return;
	while ((wio = w->rest)) {
		w->rest = wio->next;
		w->in_flight++;
		ops->start(w->q, &wio->io);
	}
	ops->submit(w->q);
}

void writer_reap(struct writer *w, unsigned min)
{
	unsigned nr = w->bdi->store->ops->wait(w->q, min);

	w->in_flight -= nr;
	send_rest(w);
}

void writer_drain(struct writer *w)
{
	while (w->in_flight)
		writer_reap(w, w->in_flight);
}

unsigned writer_in_flight(const struct writer *w)
{
	return w->in_flight;
}

void writer_set_depth(struct writer *w, unsigned depth)
{
	w->depth = depth;
}

/* ---- the end of a write ---- */

/* Whether what failed so often may wait for better times. */
static bool may_keep(struct tr_cache *c, int err)
{
	long dirty = counter_sum(&c->reclaimable) + counter_sum(&c->writeback);
	long most = c->size / PAGE_SIZE / FAILED_SHARE;

	return (err == -ENOSPC || err == -EDQUOT) && dirty <= most &&
	       !throttle_has_waiters(c);
}

/*
 * What to do with a folio whose write failed: dirty again for the next try. If
 * that failed a few times, the data is given up and the loss announced, as data
 * that can never be written must not hold memory for ever: it is marked, so
 * that it goes with the end of this writeback. Only where there was no space
 * is it kept as long as it is little.
 */
static void redirty_failed(struct mapping *m, struct folio *f, int err)
{
	state_and(&f->state, ~FOLIO_ERROR);
	if (err == -EAGAIN) {
		folio_mark_again(f);
		return;
	}
	if (f->retries++ < EIO_RETRIES || may_keep(m->cache, err)) {
		f->retries = min_of(f->retries, EIO_RETRIES);
		folio_mark_dirty(f, FOLIO_ALLDIRTY);
		return;
	}
	f->retries = 0;
	cache_count(m->cache, COUNT_LOST_PAGES, folio_nr_pages(f));
	atomic_fetch_add(&m->loss, 1);
	/* Under writeback and clean, so not counted: no folio lock is needed
	 * to mark it. */
	folio_mark_dropbehind(f);
}

/* Ends the writeback of folios that no device write is left of. */
static void end_folios(struct mapping *m, struct folio **f, unsigned nr,
		       int err)
{
	bool written = true;

	if (!nr)
		return;
	for (unsigned i = 0; i < nr; i++) {
		if (folio_test(f[i], FOLIO_ERROR)) {
			redirty_failed(m, f[i], err ?: -EIO);
			written = false;
		} else {
			f[i]->retries = 0;
		}
	}
	folios_end_writeback(m, f, nr, written);
	folios_drop_behind(m, f, nr);
	for (unsigned i = 0; i < nr; i++)
		folio_put(f[i], m->cache);
	throttle_release(m->cache);
}

/* Takes what was written off the front of a request. */
static void advance(struct tr_io *io, size_t n)
{
	io->off += n;
	io->len -= n;
	while (n) {
		size_t step = min_of(n, io->iov->iov_len);

		io->iov->iov_base = (char *)io->iov->iov_base + step;
		io->iov->iov_len -= step;
		n -= step;
		if (!io->iov->iov_len) {
			io->iov++;
			io->nr_iov--;
		}
	}
}

/*
 * How fast the device writes, for pacing writers: bytes over time while it has
 * something to do, an eighth of the new on seven of the old. A fast device is
 * never busy for long: its busy times add up.
 */
static void measure(struct writer *w, size_t bytes)
{
	atomic_ulong *bandwidth = &w->bdi->root->bandwidth;
	uint64_t now = clock_ns(), took = now - w->busy_since;
	unsigned long old = atomic_load(bandwidth), new;

	w->busy_bytes += bytes;
	w->busy_ns = took;
	if (took < (old ? MEASURE_NS : MEASURE_FIRST_NS) ||
	    w->busy_bytes < MEASURE_BYTES)
		return;
	new = (double)w->busy_bytes *NS_PER_S / took;
	atomic_store(bandwidth, old ? old - old / 8 + new / 8 : new);
	w->busy_since = now;
	w->busy_ns = w->busy_bytes = 0;
}

static void wio_done(struct tr_io *io)
{
	struct wio *wio = container_of(io, struct wio, io);
	struct mapping *m = wio->m;
	struct writer *w = wio->w;
	unsigned ended = 0;
	int err = 0;

	atomic_fetch_add(&m->changes, 1);
	if (io->result > 0 && (size_t)io->result < io->len) {
		advance(io, io->result);
		wio->next = w->rest;
		w->rest = wio;
		return;
	}
	if (io->result <= 0)
		err = io->result ?: -EIO;
	if (err && err != -EAGAIN) {
		err_set(m, err);
		cache_count(m->cache, COUNT_WRITEBACK_ERRORS, 1);
	}
	if (!err)
		measure(w, io->len);
	for (unsigned i = 0; i < wio->nr_folios; i++) {
		struct folio *f = wio->folios[i];

		if (err)
			state_or(&f->state, FOLIO_ERROR);
		if (atomic_fetch_sub(&f->ios, 1) == 1)
			wio->folios[ended++] = f;
	}
	end_folios(m, wio->folios, ended, err);
	mapping_put(m);
	wio->next = w->free;
	w->free = wio;
}

/* ---- building requests ---- */

/* -EAGAIN: the file was truncated since the write was gathered, which would
 * extend it; what of it is left is for another write. */
static int prepare(struct mapping *m, int64_t off, size_t len)
{
	int64_t size = prepare_enter(m);
	int64_t floor = align_down(size, m->attr.block);
	int err = -EAGAIN;

	if (off + (int64_t)len <= floor || !len)
		err = m->bdi->store->ops->prepare(m->sf, off, len, floor,
						  !atomic_load(&m->sparse));
	if (!err)
		mapping_raise_store_size(m, floor);
	prepare_leave(m);
	return err;
}

static void send(struct writer *w)
{
	struct wio *wio = w->open;
	struct tr_store *store = w->bdi->store;
	int err;

	if (!wio)
		return;
	w->open = NULL;
	err = prepare(wio->m, wio->io.off, wio->io.len);
	if (err) {
		wio->io.result = err;
		wio_done(&wio->io);
		return;
	}
	counter_add(&w->bdi->totals[BDI_WRITES], 1);
	counter_add(&w->bdi->totals[BDI_WRITE_BYTES], wio->io.len);
	if (!w->in_flight++) {
		if (w->busy_bytes < MEASURE_BYTES)
			w->busy_ns = w->busy_bytes = 0;
		w->busy_since = clock_ns() - w->busy_ns;
	}
	store->ops->start(w->q, &wio->io);
	store->ops->submit(w->q);
}

/* A free request: makes one while there are fewer than depth, else waits. */
static struct wio *get_wio(struct writer *w)
{
	struct wio *wio;

	while (w->in_flight >= w->depth)
		writer_reap(w, 1);
	while (!w->free && w->nr_wios < w->depth) {
		w->free = mem_alloc(sizeof(*w->free));
		if (!w->free)
			break;
		w->free->next = NULL;
		w->nr_wios++;
	}
	while (!w->free)
		writer_reap(w, 1);
	wio = w->free;
	w->free = wio->next;
	return wio;
}

static void open_wio(struct writer *w, struct mapping *m, int64_t off)
{
	struct wio *wio = get_wio(w);

	wio->w = w;
	wio->m = m;
	mapping_get(m);
	wio->nr_folios = 0;
	wio->io = (struct tr_io){
		.op = TR_IO_WRITE,
		.file = m->sf,
		.off = off,
		.iov = wio->iov,
		.done = wio_done,
	};
	w->open = wio;
}

/* Appends memory that belongs at off in the file; returns how much. */
static size_t append(struct wio *wio, struct folio *f, char *data, size_t len,
		     size_t io_max)
{
	struct iovec *last = wio->iov + wio->io.nr_iov - 1;

	len = min_of(len, io_max - wio->io.len);
	if (wio->io.nr_iov && (char *)last->iov_base + last->iov_len == data)
		last->iov_len += len;
	else
		wio->iov[wio->io.nr_iov++] = (struct iovec){ data, len };
	if (!wio->nr_folios || wio->folios[wio->nr_folios - 1] != f) {
		wio->folios[wio->nr_folios++] = f;
		atomic_fetch_add(&f->ios, 1);
	}
	wio->io.len += len;
	return len;
}

/* Adds one run of a folio, [from, to) in it, to the requests. */
static void add_run(struct writer *w, struct mapping *m, struct folio *f,
		    size_t from, size_t to)
{
	/* Cut only where the store's offsets allow. */
	size_t io_max =
		max_of(align_down(param(&m->cache->params.io_max), m->unit),
		       (uint64_t)m->unit);
	int64_t pos = f->idx << PAGE_SHIFT;

	while (from < to) {
		struct wio *wio = w->open;

		if (wio &&
		    (wio->m != m ||
		     wio->io.off + (int64_t)wio->io.len !=
			     pos + (int64_t)from ||
		     wio->io.len >= io_max || wio->io.nr_iov == TR_IO_IOV_MAX))
			send(w);
		if (!w->open)
			open_wio(w, m, pos + from);
		from += append(w->open, f, (char *)folio_data(f) + from,
			       to - from, io_max);
	}
}

/* Writes [from, to) of a folio, less than a block at end of file. */
static int write_tail(struct mapping *m, struct folio *f, size_t from,
		      size_t to)
{
	int64_t off = (f->idx << PAGE_SHIFT) + from;
	int err = prepare(m, off, 0);

	if (!err)
		err = m->bdi->store->ops->write_tail(
			m->sf, (char *)folio_data(f) + from, to - from, off);
	if (err) {
		state_or(&f->state, FOLIO_ERROR);
		err_set(m, err);
		cache_count(m->cache, COUNT_WRITEBACK_ERRORS, 1);
		return err;
	}
	atomic_fetch_add(&m->changes, 1);
	mapping_raise_store_size(m, off + (to - from));
	return 0;
}

/*
 * Takes a folio under writeback, still locked, apart: whole blocks into
 * requests, a partial last block through the store's own way.
 */
static void add_folio(struct writer *w, struct mapping *m, struct folio *f)
{
	int64_t left = mapping_size(m) - (int64_t)(f->idx << PAGE_SHIFT);
	size_t end = left < 0 ? 0 : min_of((uint64_t)left, folio_len(f));
	size_t whole = align_down(end, m->attr.block);
	size_t from = 0, to;
	int err = 0;

	atomic_store(&f->ios, 1);
	while (blocks_next_dirty(m, f, &from, &to)) {
		if (from < whole)
			add_run(w, m, f, from, min_of(to, whole));
		if (from <= whole && to > whole && whole < end)
			err = write_tail(m, f, whole, end) ?: err;
		from = to;
	}
	blocks_clean(m, f);
	folio_unlock(f);
	if (atomic_fetch_sub(&f->ios, 1) == 1)
		end_folios(m, &f, 1, err);
}

/* ---- choosing folios ---- */

/* What there is to do with a locked folio. */
enum verdict { TAKE, LEAVE, BUSY, BEYOND };

static enum verdict judge(struct mapping *m, struct folio *f,
			  const struct writeout *wo)
{
	int64_t size = mapping_size(m);
	uint64_t pos = f->idx << PAGE_SHIFT;

	if (f->mapping != m || !folio_test(f, FOLIO_DIRTY))
		return LEAVE;
	if (folio_test(f, FOLIO_WRITEBACK | FOLIO_FILLING))
		return BUSY;
	if (folio_test(f, FOLIO_EDGE) && !folio_test(f, FOLIO_UPTODATE))
		return LEAVE;
	if (pos >= (uint64_t)size)
		return BEYOND;
	if (!wo->tail && size - pos < folio_len(f) && size % m->attr.block)
		return LEAVE;
	return TAKE;
}

/* Folios of one mapping on their way into requests. */
struct gather {
	struct writer *w;
	struct mapping *m;
	struct writeout *wo;
	struct folio *ready[WRITEOUT_BATCH]; /* locked, to be written */
	unsigned nr_ready;
};

/* Starts the writeback of what is ready and builds its requests. */
static void start_ready(struct gather *g)
{
	unsigned i = 0;

	while (i < g->nr_ready) {
		unsigned n = folios_start_writeback(g->m, g->ready + i,
						    g->nr_ready - i);

		for (unsigned end = i + n; i < end; i++) {
			g->wo->nr_pages -= folio_nr_pages(g->ready[i]);
			folio_get(g->ready[i]);
			add_folio(g->w, g->m, g->ready[i]);
		}
		/* One that a truncation or a direct write made clean. */
		if (i < g->nr_ready)
			folio_unlock(g->ready[i++]);
	}
	g->nr_ready = 0;
}

/* Before sleeping for a folio: others may wait for what is in hand. */
static void let_go(struct gather *g)
{
	start_ready(g);
	send(g->w);
}

/* Locks a folio and decides. true: it is locked and ready. */
static bool take(struct gather *g, struct folio *f)
{
	for (;;) {
		if (!folio_try_lock(f)) {
			if (!g->wo->wait)
				return false;
			let_go(g);
			folio_lock(f);
		}
		switch (judge(g->m, f, g->wo)) {
		case TAKE:
			return true;
		case BEYOND:
			folio_cancel_dirty(f);
			folio_unlock(f);
			throttle_release(g->m->cache);
			return false;
		case LEAVE:
			folio_unlock(f);
			return false;
		case BUSY:
			folio_unlock(f);
			if (!g->wo->wait)
				return false;
			let_go(g);
			folio_wait(f, FOLIO_WRITEBACK | FOLIO_FILLING);
		}
	}
}

/* References on the next tagged folios. */
static unsigned collect(struct mapping *m, struct writeout *wo,
			struct folio **out)
{
	unsigned nr;

	mutex_lock(&m->index_lock);
	nr = index_next_tags(&m->index, &wo->next, wo->last, wo->tag, out,
			     WRITEOUT_BATCH);
	for (unsigned i = 0; i < nr; i++)
		folio_get(out[i]);
	mutex_unlock(&m->index_lock);
	return nr;
}

/* Whether f follows on what is being built. */
static bool continues(const struct gather *g, const struct folio *f)
{
	const struct wio *wio = g->w->open;

	return wio && wio->m == g->m &&
	       wio->io.off + wio->io.len == f->idx << PAGE_SHIFT;
}

/*
 * Of nr collected folios, how many make up the run that begins with the first.
 * *write: it is long enough, or may go on behind a full batch.
 */
static unsigned next_run(const struct gather *g, struct folio **f, unsigned nr,
			 bool full, bool *write)
{
	size_t len = folio_len(f[0]);
	unsigned n = 1;

	while (n < nr && f[n]->idx == f[n - 1]->idx + folio_nr_pages(f[n - 1]))
		len += folio_len(f[n++]);
	*write = len >= g->wo->min_run || (full && n == nr) ||
		 continues(g, f[0]);
	return n;
}

/* Takes what is to be written of a batch. */
static void take_batch(struct gather *g, struct folio **f, unsigned nr)
{
	bool write;

	for (unsigned i = 0, n; i < nr; i += n) {
		n = next_run(g, f + i, nr - i, nr == WRITEOUT_BATCH, &write);
		for (unsigned k = i; write && k < i + n; k++)
			if (take(g, f[k]))
				g->ready[g->nr_ready++] = f[k];
		if (write)
			start_ready(g);
	}
}

void writeout(struct writer *w, struct mapping *m, struct writeout *wo)
{
	struct gather g = { .w = w, .m = m, .wo = wo };
	struct folio *f[WRITEOUT_BATCH];
	unsigned nr;

	wo->next = wo->first;
	while (wo->nr_pages > 0 && wo->next <= wo->last &&
	       (nr = collect(m, wo, f))) {
		take_batch(&g, f, nr);
		for (unsigned i = 0; i < nr; i++)
			folio_put(f[i], m->cache);
	}
	send(w);
}

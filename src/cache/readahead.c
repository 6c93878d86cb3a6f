/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * Readahead: reading what a read misses, and more while it is sequential, into
 * large folios.
 *
 * The window starts at what is asked for and doubles with each miss of a
 * sequential reader up to readahead_max. Folios are made locked, read together
 * in index order, and unlocked valid; the run ends at the first page that is
 * cached already.
 */
#include "cache/io.h"

#include "cache/lookup.h"
#include "cache/xfer.h"
#include "folio/blocks.h"

#include <errno.h>
#include <string.h>

/* Folios of one run: a 2 MiB window in pages. */
#define RUN_FOLIOS 512

/* The first window of a sequential reader. */
#define WINDOW_MIN (128u << 10)

struct run {
	struct mapping *m;
	struct folio *f[RUN_FOLIOS];
	struct iovec iov[RUN_FOLIOS];
	unsigned nr;
	int64_t off;
	size_t len;
	/* Bytes before end of file, as it was when the folios were locked: a
	 * truncation that comes later waits for them, and one that came
	 * before may be over, and the file longer again, when they are read. */
	size_t valid;
};

/* Makes folios for [off, end) until one is there already. */
static int make_run(struct run *r, uint64_t off, uint64_t end, bool uncached)
{
	struct mapping *m = r->m;
	unsigned get = GET_LOCK | GET_CREAT | (uncached ? GET_DONTCACHE : 0);

	r->off = off;
	while (off < end && r->nr < RUN_FOLIOS) {
		struct folio *f = cache_find(m, off >> PAGE_SHIFT);
		int err;

		if (f) {
			folio_put(f, m->cache);
			break;
		}
		err = cache_get_folio(m, off >> PAGE_SHIFT, get, end - off, &f);
		if (err)
			return r->nr ? 0 : err;
		/* Never sleeps with a folio locked: who closed a range waits
		 * for that one perhaps. */
		get |= GET_NOWAIT;
		/* Somebody else's, made since we looked. */
		if (f->idx != off >> PAGE_SHIFT || f->blocks ||
		    folio_test(f, FOLIO_UPTODATE | FOLIO_EDGE)) {
			folio_unlock(f);
			folio_put(f, m->cache);
			break;
		}
		r->f[r->nr] = f;
		r->iov[r->nr++] = (struct iovec){ folio_data(f), folio_len(f) };
		r->len += folio_len(f);
		off += folio_len(f);
	}
	return 0;
}

/* Makes valid what got bytes have come for, and lets go. */
static void finish_run(struct run *r, size_t got, int err)
{
	struct mapping *m = r->m;
	size_t at = 0;

	got = min_of(got, r->valid);
	for (unsigned i = 0; i < r->nr; i++) {
		struct folio *f = r->f[i];
		size_t len = folio_len(f);
		size_t have = got > at ? min_of(got - at, len) : 0;

		/* A short read means zeros, a failed one nothing. */
		if (!err || have == len) {
			memset((char *)folio_data(f) + have, 0, len - have);
			blocks_set_uptodate(m, f, 0, len);
		} else {
			(void)!folio_try_remove(f, false);
		}
		at += len;
		folio_unlock(f);
		folio_put(f, m->cache);
	}
}

static int read_run(struct run *r)
{
	struct iter it = { .iov = r->iov, .nr = r->nr };
	int64_t left = atomic_load(&r->m->store_size) - r->off;
	int64_t valid = mapping_size(r->m) - r->off;
	size_t len = r->len;
	ssize_t got = 0;

	r->valid = max_of(valid, 0l);
	/* The store has nothing beyond its end of file. */
	if (left < (int64_t)len)
		len = left > 0 ? align_up(left, r->m->unit) : 0;
	if (len)
		got = xfer(r->m, TR_IO_READ, &it, r->off, len);
	finish_run(r, got > 0 ? got : 0, got < 0 ? got : 0);
	return got < 0 ? got : 0;
}

static size_t next_window(struct mapping *m, struct readahead *ra, int64_t off,
			  size_t len)
{
	size_t most = param(&m->cache->params.readahead_max);
	uint32_t window = atomic_load(&ra->window);

	if (atomic_load(&ra->next) != off || !most)
		window = 0;
	else
		window = window ? min_of(2 * (size_t)window, most) : WINDOW_MIN;
	atomic_store(&ra->window, window);
	return max_of((size_t)window, len);
}

int cache_readahead(struct mapping *m, struct readahead *ra, int64_t off,
		    size_t len, bool uncached)
{
	/* Unsigned: the last unit may end beyond the largest offset. */
	uint64_t start = align_down(off, m->unit);
	uint64_t size = align_up(mapping_size(m), m->unit);
	struct run r = { .m = m };
	uint64_t end;
	int err;

	len = min_of(next_window(m, ra, off, len), (size_t)4 << 20);
	end = align_up(min_of((uint64_t)off + len, size), m->unit);
	err = make_run(&r, start, end, uncached);
	if (r.nr)
		err = read_run(&r);
	return err;
}

/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * Cached and uncached reads.
 *
 * A hit takes no lock: find, copy, put. Everything that is not simply valid
 * and wanted (an edge, a mark a cached reader has to clear, blocks that are
 * missing) goes the slow way, under the folio lock; what is absent is read
 * ahead.
 */
#include "cache/io.h"

#include "cache/lookup.h"
#include "folio/edge.h"
#include "writeback/fill.h"

#include <errno.h>

/* Makes [from, to) of a locked folio readable. 1: it is another's now. */
static int make_readable(struct mapping *m, struct folio *f, size_t from,
			 size_t to, unsigned flags)
{
	bool nowait = flags & TR_NOWAIT;
	int err = 0;

	if (!(flags & TR_DONTCACHE)) {
		err = cache_make_ordinary(m, f, nowait);
		if (!err && f->mapping == m)
			folio_clear_dropbehind(f);
	} else if (f->edge && !folio_test(f, FOLIO_UPTODATE) &&
		   !edge_has(f, from, to)) {
		err = nowait ? -EAGAIN : fill_locked(m, f);
	}
	if (err || f->mapping != m)
		return err ?: 1;
	return f->edge ? 0 : fill_missing(m, f, from, to, nowait);
}

/* Reads from a folio that is no simple hit. Takes over the reference. */
static ssize_t read_slow(struct mapping *m, struct folio *f, struct iter *it,
			 int64_t off, size_t len, unsigned flags)
{
	size_t from = 0;
	int err = 1;

	if (!folio_try_lock(f)) {
		if (flags & TR_NOWAIT) {
			folio_put(f, m->cache);
			return -EAGAIN;
		}
		folio_lock(f);
	}
	if (folio_is(f, m, off >> PAGE_SHIFT)) {
		from = off - (f->idx << PAGE_SHIFT);
		len = min_of(len, folio_len(f) - from);
		err = make_readable(m, f, from, from + len, flags);
	}
	if (!err && folio_is(f, m, off >> PAGE_SHIFT))
		iter_copy_to(it, (char *)folio_data(f) + from, len);
	folio_unlock(f);
	folio_put(f, m->cache);
	return err < 0 ? err : err ? 0 : (ssize_t)len;
}

/* Reads from a valid folio. Takes over the reference. */
static ssize_t read_hit(struct mapping *m, struct folio *f, struct iter *it,
			int64_t off, size_t len, unsigned flags)
{
	size_t from = off - (f->idx << PAGE_SHIFT);

	len = min_of(len, folio_len(f) - from);
	cache_count(m->cache, COUNT_READ_HITS, 1);
	iter_copy_to(it, (char *)folio_data(f) + from, len);
	if (!(flags & TR_DONTCACHE)) {
		if (!folio_test(f, FOLIO_REFERENCED))
			state_or(&f->state, FOLIO_REFERENCED);
	} else if (from + len == folio_len(f) ||
		   off + (int64_t)len >= mapping_size(m)) {
		/* Used up: what an uncached read brought in goes. */
		folios_drop_behind(m, &f, 1);
	}
	folio_put(f, m->cache);
	return len;
}

/* What is absent: reads it, or -EAGAIN. */
static int read_miss(struct mapping *m, struct readahead *ra, int64_t off,
		     size_t len, unsigned flags)
{
	struct folio *f;
	int err;

	cache_count(m->cache, COUNT_READ_MISSES, 1);
	if (flags & TR_NOWAIT)
		return -EAGAIN;
	err = cache_readahead(m, ra, off, len, flags & TR_DONTCACHE);
	if (err != -ENOMEM)
		return err;
	/* No memory for a run: page by page. */
	err = cache_get_folio(m, off >> PAGE_SHIFT,
			      GET_CREAT | GET_LOCK | GET_INTERNAL, 0, &f);
	if (err)
		return err;
	folio_unlock(f);
	folio_put(f, m->cache);
	return 0;
}

ssize_t cache_read(struct mapping *m, struct readahead *ra, struct iter *it,
		   int64_t off, size_t len, unsigned flags)
{
	unsigned mask = flags & TR_DONTCACHE ? HIT_UNCACHED : HIT_CACHED;
	int64_t size = mapping_size(m);
	size_t done = 0;
	ssize_t n = 0;

	if (off >= size)
		return 0;
	len = min_of(len, (uint64_t)(size - off));
	while (done < len) {
		int64_t pos = off + done;
		struct folio *f;

		size = mapping_size(m);
		if (pos >= size) {
			/* A truncation has come. */
			done = size > off ? size - off : 0;
			break;
		}
		f = cache_find(m, pos >> PAGE_SHIFT);
		if (!f)
			n = read_miss(m, ra, pos, len - done, flags);
		else if (folio_test(f, mask) == FOLIO_UPTODATE)
			n = read_hit(m, f, it, pos, len - done, flags);
		else
			n = read_slow(m, f, it, pos, len - done, flags);
		/* Nothing: again, unless the file ends here now. */
		if (n < 0 || (!n && pos >= mapping_size(m)))
			break;
		done += n;
	}
	atomic_store_explicit(&ra->next, off + (int64_t)done,
			      memory_order_relaxed);
	return done ? (ssize_t)done : n;
}

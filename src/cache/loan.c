/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * Loans.
 *
 * Happy path: each folio of the range is found, referenced and seen to be
 * valid; its piece becomes a vector. The first that is absent, or not valid in
 * every byte, ends it: everything is given back.
 *
 * Invariant: a loan holds exactly one reference for each vector.
 */
#include "cache/loan.h"

#include "cache/cache.h"
#include "cache/lookup.h"

#include <errno.h>

/* Adds the piece of the range at pos; its length, or -errno. */
static ssize_t lend(struct mapping *m, int64_t pos, size_t len, struct loan *l)
{
	struct folio *f;
	size_t from;

	if (l->nr == LOAN_MAX)
		return -E2BIG;
	f = cache_find(m, pos >> PAGE_SHIFT);
	if (!f)
		return -EAGAIN;
	if (folio_test(f, HIT_CACHED) != FOLIO_UPTODATE) {
		folio_put(f, m->cache);
		return -EAGAIN;
	}
	if (!folio_test(f, FOLIO_REFERENCED))
		state_or(&f->state, FOLIO_REFERENCED);
	from = pos - (f->idx << PAGE_SHIFT);
	len = min_of(len, folio_len(f) - from);
	l->folios[l->nr] = f;
	l->iov[l->nr++] = (struct iovec){ (char *)folio_data(f) + from, len };
	return len;
}

ssize_t loan_start(struct tr_file *file, int64_t off, size_t len,
		   struct loan *loan)
{
	struct mapping *m = file->m;
	int64_t size = mapping_size(m);
	size_t done = 0;
	ssize_t n;

	loan->cache = m->cache;
	loan->nr = 0;
	if (off >= size)
		return 0;
	len = min_of(len, (uint64_t)(size - off));
	while (done < len) {
		n = lend(m, off + (int64_t)done, len - done, loan);
		if (n < 0) {
			loan_end(loan);
			return n;
		}
		done += n;
	}
	cache_count(m->cache, COUNT_READ_HITS, loan->nr);
	/* A sequence of loans is one of reads, for readahead. */
	atomic_store_explicit(&file->ra.next, off + (int64_t)done,
			      memory_order_relaxed);
	return done;
}

void loan_end(struct loan *loan)
{
	while (loan->nr)
		folio_put(loan->folios[--loan->nr], loan->cache);
}

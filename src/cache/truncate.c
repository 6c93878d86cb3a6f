/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * Size and space.
 *
 * Truncation goes in this order, with the gate closed to writers: the new size
 * in memory, so that writeback crops to it; the pages beyond closed, so that
 * nobody reads them in again; device writes in flight there waited for and
 * folios dropped; the unit at the boundary zeroed; then the store. A device
 * write that was submitted is never cancelled, and one that came after the
 * store's truncation would bring old bytes back; one that was only gathered is
 * given up when it is sent (writeback/writeout.c).
 *
 * Punching zeroes partial units through the cache and removes whole ones.
 */
#include "cache/io.h"

#include "base/mem.h"
#include "cache/invalidate.h"
#include "cache/lookup.h"
#include "folio/blocks.h"
#include "folio/edge.h"
#include "writeback/writeout.h"

#include <errno.h>
#include <string.h>

/* Zeroes what the unit at the new end of file holds beyond it, if it is
 * cached; those bytes count as covered. */
static void zero_boundary(struct mapping *m, int64_t size)
{
	struct folio *f;
	size_t from;

	if (!(size & (m->unit - 1)))
		return;
	f = cache_find(m, size >> PAGE_SHIFT);
	if (!f)
		return;
	folio_lock_idle(f);
	if (folio_is(f, m, size >> PAGE_SHIFT)) {
		from = size - (f->idx << PAGE_SHIFT);
		memset((char *)folio_data(f) + from, 0, folio_len(f) - from);
		if (f->edge && edge_reserve(m, f))
			edge_cover(m, f, from, folio_len(f), false);
	}
	folio_unlock(f);
	/* If that completed an edge that is clean, nobody else will come. */
	folios_drop_behind(m, &f, 1);
	folio_put(f, m->cache);
}

static int shrink(struct mapping *m, int64_t size)
{
	uint64_t first = align_up(size, m->unit) >> PAGE_SHIFT;
	struct closed_range closed;
	int err;

	range_close(m, &closed, first, INDEX_MAX);
	cache_remove_all(m, first, INDEX_MAX);
	zero_boundary(m, size);
	prepare_wait(m);
	err = m->bdi->store->ops->truncate(m->sf, size);
	if (!err)
		atomic_store(&m->store_size, size);
	range_open(m, &closed);
	return err;
}

static int grow(struct mapping *m, int64_t size)
{
	int err = m->bdi->store->ops->truncate(m->sf, size);

	if (!err)
		mapping_raise_store_size(m, size);
	return err;
}

int cache_truncate(struct mapping *m, int64_t size)
{
	int64_t old;
	int err;

	gate_close(m);
	old = mapping_size(m);
	atomic_store(&m->size, size);
	/* Equal sizes too: the store's may be smaller. */
	err = size < old ? shrink(m, size) : grow(m, size);
	if (err)
		atomic_store(&m->size, old);
	atomic_fetch_add(&m->changes, 1);
	gate_open(m);
	return err;
}

void cache_cancel(struct mapping *m)
{
	struct closed_range closed;

	gate_close(m);
	range_close(m, &closed, 0, INDEX_MAX);
	cache_remove_all(m, 0, INDEX_MAX);
	range_open(m, &closed);
	gate_open(m);
}

/* Writes zeros over [off, off + len): parts of one unit or of two. */
static int write_zeros(struct mapping *m, int64_t off, int64_t len)
{
	struct iovec iov = { .iov_len = len };
	struct iter it = { .iov = &iov, .nr = 1 };
	ssize_t n;

	if (len <= 0)
		return 0;
	iov.iov_base = mem_zalloc(len);
	if (!iov.iov_base)
		return -ENOMEM;
	n = cache_write_inside(m, &it, off, len, 0);
	mem_free(iov.iov_base);
	return n < 0 ? n : 0;
}

/* Makes a hole of whole units, the last of which may end beyond the largest
 * offset. */
static int punch_units(struct mapping *m, uint64_t off, uint64_t end)
{
	struct closed_range closed;
	int err;

	range_close(m, &closed, off >> PAGE_SHIFT, (end >> PAGE_SHIFT) - 1);
	cache_remove_all(m, off >> PAGE_SHIFT, (end >> PAGE_SHIFT) - 1);
	err = m->bdi->store->ops->punch(
		m->sf, off, min_of(end, (uint64_t)TR_OFFSET_MAX) - off);
	atomic_fetch_add(&m->changes, 1);
	range_open(m, &closed);
	return err;
}

int cache_punch(struct mapping *m, int64_t off, int64_t len)
{
	/* Unsigned: the last unit may end beyond the largest offset. */
	uint64_t first, last, end;
	int64_t size;
	int err = 0;

	gate_close(m);
	size = mapping_size(m);
	end = len > size - off ? size : off + len;
	if (off < size) {
		/* The unit at end of file goes whole. */
		first = align_up(off, m->unit);
		last = end == (uint64_t)size ? align_up(end, m->unit)
					     : align_down(end, m->unit);
		if (first >= last) {
			err = write_zeros(m, off, end - off);
		} else {
			err = write_zeros(m, off, first - off);
			if (!err && last < end)
				err = write_zeros(m, last, end - last);
			err = err ?: punch_units(m, first, last);
			/* What would have made the store's file so long may be
			 * gone. */
			if (!err && end == (uint64_t)size &&
			    atomic_load(&m->store_size) < size)
				err = grow(m, size);
		}
	}
	gate_open(m);
	return err;
}

int cache_allocate(struct mapping *m, int64_t off, int64_t len, bool keep_size)
{
	int err;

	gate_close(m);
	err = m->bdi->store->ops->allocate(m->sf, off, len, keep_size);
	if (!err && !keep_size) {
		mapping_raise_size(m, off + len);
		mapping_raise_store_size(m, off + len);
	}
	atomic_fetch_add(&m->changes, 1);
	gate_open(m);
	return err;
}

int64_t cache_seek(struct mapping *m, int64_t off, int whence)
{
	struct page_range rest = { off >> PAGE_SHIFT, INDEX_MAX };
	int64_t size = mapping_size(m), at;
	int err;

	if (off >= size)
		return -ENXIO;
	/* What is dirty is data to the store only once it is there. */
	err = writeout_wait(m, &rest, 1)
		      ?: m->bdi->store->ops->seek(m->sf, off, whence, &at);
	if (err)
		return err;
	return min_of(at, size);
}

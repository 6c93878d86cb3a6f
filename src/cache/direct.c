/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * Direct reads and writes: past the cache, but never at odds with it.
 *
 * A direct write closes its range, writes out and removes what is cached there,
 * writes, and opens the range again. While it is closed no folio is made in it,
 * so nothing old can be read in, dirtied or written back over it. If a folio
 * cannot be removed, because somebody just dirtied or maps it, the write is
 * served by the cache, which is counted and traced.
 */
#include "cache/io.h"

#include "base/mem.h"
#include "base/trace.h"
#include "cache/invalidate.h"
#include "cache/xfer.h"
#include "writeback/throttle.h"
#include "writeback/writeout.h"

#include <errno.h>

static uint64_t first_page(const struct mapping *m, int64_t off)
{
	return align_down(off, m->unit) >> PAGE_SHIFT;
}

static uint64_t last_page(const struct mapping *m, int64_t off, size_t len)
{
	uint64_t end = (uint64_t)off + len;

	return (align_down(end - 1, m->unit) + m->unit - 1) >> PAGE_SHIFT;
}

/*
 * Bytes of an extending write that lie in a last, partial block: where direct
 * writes are aligned to sectors and blocks are larger. They go the way of a tail:
 * written directly, they leave an end of file within a block that is written and
 * that the host has no page of, and XFS reads it when the file is extended next
 * (iomap_zero_range). 13 reads of 16 KiB in 22,842 records of 47008 bytes.
 */
static size_t partial_block(const struct mapping *m, int64_t off, size_t len)
{
	size_t part = (uint64_t)(off + (int64_t)len) % m->attr.block;

	return off + (int64_t)len > mapping_size(m) && part < len ? part : 0;
}

/* Bytes, or -errno. */
static ssize_t write_part(struct mapping *m, struct iter *it, int64_t off,
			  size_t len)
{
	void *part = mem_alloc(len);
	int err;

	if (!part)
		return -ENOMEM;
	iter_copy_from(it, part, len);
	err = m->bdi->store->ops->write_tail(m->sf, part, len, off);
	mem_free(part);
	return err ?: (ssize_t)len;
}

/* The store's file is made long enough first, so that the device write does
 * not extend it; the file as users see it grows with what was written. */
static ssize_t write_closed(struct mapping *m, struct iter *it, int64_t off,
			    size_t len)
{
	size_t part = partial_block(m, off, len), whole = len - part;
	int64_t end = off + (int64_t)len;
	ssize_t n, rest = 0;
	int err;

	err = m->bdi->store->ops->prepare(m->sf, off, len, end,
					  !atomic_load(&m->sparse));
	if (err)
		return err;
	mapping_raise_store_size(m, end);
	n = xfer(m, TR_IO_WRITE, it, off, whole);
	if (n == (ssize_t)whole && part)
		rest = write_part(m, it, off + n, part);
	if (n > 0) {
		n += max_of(rest, (ssize_t)0);
		mapping_raise_size(m, off + n);
		atomic_fetch_add(&m->changes, 1);
	}
	return n;
}

/* After a write that failed or was short: what the store's file was made too
 * long goes. */
static void cut_store(struct mapping *m)
{
	int64_t size;

	gate_close(m);
	size = mapping_size(m);
	if (atomic_load(&m->store_size) > size) {
		prepare_wait(m);
		if (!m->bdi->store->ops->truncate(m->sf, size))
			atomic_store(&m->store_size, size);
		atomic_fetch_add(&m->changes, 1);
	}
	gate_open(m);
}

static ssize_t fall_back(struct mapping *m, struct iter *it, int64_t off,
			 size_t len, unsigned flags, bool *fell_back)
{
	*fell_back = true;
	cache_count(m->cache, COUNT_DIRECT_FALLBACKS, 1);
	TRACE(iomap_dio_invalidate_fail, .ino = m->id.ino, .offset = off,
	      .len = len);
	return cache_write(m, it, off, len, flags & ~TR_DIRECT);
}

ssize_t cache_write_direct(struct mapping *m, struct iter *it, int64_t off,
			   size_t len, unsigned flags, bool *fell_back)
{
	uint64_t first = first_page(m, off), last = last_page(m, off, len);
	struct closed_range closed;
	ssize_t n;
	int err;

	*fell_back = false;
	if (flags & TR_NOWAIT)
		return -EAGAIN; /* a device write is always waited for */
	gate_enter(m);
	range_close(m, &closed, first, last);
	err = cache_invalidate(m, first, last, true);
	n = err ? err : write_closed(m, it, off, len);
	range_open(m, &closed);
	gate_leave(m);
	if (!err && n < (ssize_t)len)
		cut_store(m);
	if (err == -EBUSY)
		return fall_back(m, it, off, len, flags, fell_back);
	return n;
}

ssize_t cache_read_direct(struct mapping *m, struct iter *it, int64_t off,
			  size_t len, unsigned flags)
{
	struct page_range range = { off >> PAGE_SHIFT, last_page(m, off, len) };
	int64_t size = mapping_size(m), store_size;
	unsigned long errors = atomic_load(&m->nr_errors);
	struct iter zeros = *it;
	ssize_t n, want;
	int err;

	if (off >= size)
		return 0;
	if (flags & TR_NOWAIT)
		return -EAGAIN;
	err = writeout_wait(m, &range, 1);
	/* What could not be written is not to be read as it was before. */
	if (!err && atomic_load(&m->nr_errors) != errors)
		err = err_last(m);
	if (err)
		return err;
	want = min_of((uint64_t)len, (uint64_t)(size - off));
	store_size = atomic_load(&m->store_size);
	n = xfer(m, TR_IO_READ, it, off, len);
	if (n < 0 || n >= want)
		return min_of(n, want);
	/* The store may end before the file in memory does: then there is a
	 * hole. Short before its end is a failure. */
	if (off + n < store_size)
		return n;
	iter_skip(&zeros, n);
	iter_zero(&zeros, want - n);
	return want;
}

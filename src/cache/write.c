/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * Cached and uncached writes.
 *
 * A write goes folio by folio: get it locked (made as large as what the write
 * covers wholly), make valid what the write leaves of a block, copy, record
 * what became valid, dirty and covered, unlock. Writers of different folios
 * meet only in the index lock, for a moment.
 *
 * An uncached write that covers a unit partly treats it as an edge: nothing is
 * read, its coverage grows, and the write that completes it marks it. A whole
 * unit that it brings in is drop-behind from the start; one that was cached
 * before stays.
 */
#include "cache/io.h"

#include "cache/gift.h"
#include "cache/lookup.h"
#include "folio/blocks.h"
#include "folio/edge.h"
#include "writeback/fill.h"
#include "writeback/throttle.h"

#include <assert.h>
#include <errno.h>
#include <string.h>

/* Bytes between two looks at the dirty limits. */
#define THROTTLE_STEP (1u << 20)

/* A write that starts so far beyond end of file leaves a hole on purpose;
 * records of many writers do not arrive in order, but closer. */
#define SPARSE_GAP (16 << 20)

/* One folio's part of a write: [from, to) in it. */
struct part {
	struct mapping *m;
	struct folio *f;
	size_t from, to;
	unsigned flags;
};

static bool is_whole(const struct part *p)
{
	return !p->from && p->to == folio_len(p->f);
}

int cache_make_ordinary(struct mapping *m, struct folio *f, bool nowait)
{
	int err;

	if (!f->edge)
		return 0;
	if (nowait && !folio_test(f, FOLIO_UPTODATE))
		return -EAGAIN;
	err = fill_locked(m, f);
	if (err || f->mapping != m)
		return err;
	if (f->edge) {
		cache_count(m->cache, COUNT_EDGES_DETACHED, 1);
		edge_detach(m, f);
	}
	return 0;
}

/* Makes valid what the blocks at both ends of the part hold besides it. */
static int prepare_cached(struct part *p)
{
	struct mapping *m = p->m;
	struct folio *f = p->f;
	size_t block = m->attr.block;
	bool nowait = p->flags & TR_NOWAIT;
	int err = 0;

	if (is_whole(p))
		return 0;
	if (folio_test(f, FOLIO_UPTODATE)) {
		/* So that not all of it is written back; if there is no
		 * memory for that, all of it is. */
		if (!f->blocks && !folio_test(f, FOLIO_DIRTY))
			(void)!blocks_make(m, f);
		return 0;
	}
	if (!f->blocks && !blocks_make(m, f) && blocks_nr(m, f) > 1)
		return fill_missing(m, f, 0, folio_len(f), nowait);
	if (p->from % block)
		err = fill_missing(m, f, p->from, p->from + 1, nowait);
	if (!err && p->to % block)
		err = fill_missing(m, f, p->to, p->to + 1, nowait);
	return err;
}

/* After the copy of a part that is not an edge's. */
static void finish_cached(struct part *p)
{
	blocks_set_uptodate(p->m, p->f, p->from, p->to);
	blocks_set_dirty(p->m, p->f, p->from, p->to);
}

/* The edge's coverage cannot be kept: read the rest now and let it go. */
static int lose_coverage(struct part *p, bool *edge)
{
	int err;

	*edge = false;
	if (p->flags & TR_NOWAIT)
		return -EAGAIN;
	cache_count(p->m->cache, COUNT_LAZY_FILLS, 1);
	err = fill_locked(p->m, p->f);
	if (err)
		return err;
	if (p->f->mapping == p->m && folio_test(p->f, FOLIO_EDGE))
		edge_retire(p->m, p->f);
	return 1;
}

/*
 * Makes a folio of the smallest size an edge, if this uncached write is to
 * treat it so. *edge says whether.
 */
static int prepare_edge(struct part *p, bool *edge)
{
	struct mapping *m = p->m;
	struct folio *f = p->f;
	int err;

	*edge = f->edge;
	if (*edge && edge_reserve(m, f))
		return 0;
	if (*edge)
		return lose_coverage(p, edge);
	/* Brought in by an uncached write and complete; or an ordinary page
	 * that cannot be split or dropped. */
	if (folio_test(f, FOLIO_DROPBEHIND) || f->order != m->min_order ||
	    atomic_load(&f->maps))
		return prepare_cached(p);
	if (f->blocks) {
		err = fill_missing(m, f, 0, folio_len(f), p->flags & TR_NOWAIT);
		if (err)
			return err;
	}
	*edge = edge_attach(m, f);
	if (*edge)
		return 0;
	cache_count(m->cache, COUNT_LAZY_FILLS, 1);
	return prepare_cached(p);
}

/* After the copy of an edge's part. */
static void finish_edge(struct part *p)
{
	blocks_set_dirty(p->m, p->f, p->from, p->to);
	if (edge_cover(p->m, p->f, p->from, p->to, p->flags & IO_DEFER))
		throttle_edges_gone(p->m);
}

/* Everything before the copy. 1: the folio is no longer what it was: again. */
static int prepare(struct part *p, bool partial, bool *edge)
{
	struct mapping *m = p->m;
	struct folio *f = p->f;
	bool uncached = p->flags & TR_DONTCACHE;
	int err;

	*edge = false;
	if (uncached && partial && f->order > m->min_order) {
		if (folio_test(f, FOLIO_WRITEBACK) && !(p->flags & TR_NOWAIT)) {
			folio_unlock(f);
			folio_wait(f, FOLIO_WRITEBACK);
			folio_lock(f);
			return 1;
		}
		if (folio_split(f))
			return 1;
	}
	if (uncached && (partial || f->edge))
		err = prepare_edge(p, edge);
	else if (uncached)
		err = prepare_cached(p);
	else
		err = cache_make_ordinary(m, f, p->flags & TR_NOWAIT)
			      ?: f->mapping == m ? prepare_cached(p)
						 : 1;
	return err;
}

/*
 * Makes the caller's own folio the file's: no copy. Bytes; 0: it cannot be, for
 * its size, or because something is cached there or the range is closed.
 */
static size_t write_gift(struct mapping *m, struct iter *it, int64_t off,
			 size_t len, unsigned flags)
{
	struct folio *f = gift_at(it->gift, iter_at(it));
	unsigned state = FOLIO_LOCKED | FOLIO_REFERENCED;
	size_t n = f ? folio_len(f) : 0;

	if (!f || n > len || off & (n - 1) || f->order < m->min_order ||
	    f->order > m->max_order)
		return 0;
	if (flags & TR_DONTCACHE)
		state |= FOLIO_DROPBEHIND;
	atomic_store(&f->state, state);
	/* The gift's reference becomes the index's; a late lookup may hold one
	 * of what these pages were before. */
	folio_get(f);
	if (mapping_insert(m, f, off >> PAGE_SHIFT)) {
		count_sub(&f->refs, 1);
		atomic_store(&f->state, 0);
		return 0;
	}
	gift_adopted(it->gift);
	blocks_set_uptodate(m, f, 0, n);
	blocks_set_dirty(m, f, 0, n);
	mapping_raise_size(m, off + (int64_t)n);
	folio_mark_dirty(f, 0);
	folio_unlock(f);
	folio_put(f, m->cache);
	iter_skip(it, n);
	return n;
}

/* Writes into one folio. Bytes, 0 to try again, or -errno. */
static ssize_t write_part(struct mapping *m, struct iter *it, int64_t off,
			  size_t len, unsigned flags)
{
	struct part p = { .m = m, .flags = flags };
	size_t in_unit = off & (m->unit - 1);
	bool partial = in_unit || len < m->unit, edge;
	size_t span = partial ? min_of(m->unit - in_unit, len)
			      : align_down(len, m->unit);
	unsigned get = GET_LOCK | GET_CREAT;
	size_t given;
	int err;

	if (it->gift && !partial) {
		given = write_gift(m, it, off, len, flags);
		if (given)
			return (ssize_t)given;
	}
	if (flags & TR_DONTCACHE)
		get |= GET_DONTCACHE | (partial ? GET_EDGE : 0);
	if (flags & TR_NOWAIT)
		get |= GET_NOWAIT;
	err = cache_get_folio(m, off >> PAGE_SHIFT, get, span, &p.f);
	if (err)
		return err;
	p.from = off - (p.f->idx << PAGE_SHIFT);
	p.to = min_of(p.from + span, folio_len(p.f));
	err = prepare(&p, partial, &edge);
	if (!err) {
		iter_copy_from(it, (char *)folio_data(p.f) + p.from,
			       p.to - p.from);
		if (edge)
			finish_edge(&p);
		else
			finish_cached(&p);
		mapping_raise_size(m, off + (p.to - p.from));
		folio_mark_dirty(p.f, 0);
	}
	folio_unlock(p.f);
	folio_put(p.f, m->cache);
	return err < 0 ? err : err ? 0 : (ssize_t)(p.to - p.from);
}

ssize_t cache_write_inside(struct mapping *m, struct iter *it, int64_t off,
			   size_t len, unsigned flags)
{
	size_t done = 0;
	ssize_t n;

	if (off - SPARSE_GAP > mapping_size(m))
		atomic_store(&m->sparse, true);
	while (done < len) {
		n = write_part(m, it, off + done, len - done, flags);
		if (n < 0)
			return done ? (ssize_t)done : n;
		done += n;
	}
	return done;
}

void cache_kick(struct mapping *m)
{
	struct wb *wb;

	/* The wb may be retired with its group as soon as the lock is open. */
	mutex_lock(&m->index_lock);
	wb = m->wb;
	wb_get(wb);
	mutex_unlock(&m->index_lock);
	wb_kick(wb);
	wb_put(wb);
}

static ssize_t write_in_gate(struct mapping *m, struct iter *it, int64_t off,
			     size_t len, unsigned flags)
{
	bool nowait = flags & TR_NOWAIT, inside = flags & IO_INSIDE;
	ssize_t n;

	if (nowait && !inside && !gate_try_enter(m))
		return -EAGAIN;
	if (!nowait && !inside)
		gate_enter(m);
	n = cache_write_inside(m, it, off, len, flags);
	if (!inside)
		gate_leave(m);
	return n;
}

/* One step of a write: at most so much that the limits are kept. */
static ssize_t write_step(struct mapping *m, struct iter *it, int64_t off,
			  size_t len, unsigned flags)
{
	bool uncached = flags & TR_DONTCACHE;
	ssize_t n = throttle_write(m, off, len, uncached, flags & TR_NOWAIT);

	if (n)
		return n;
	n = write_in_gate(m, it, off, len, flags);
	throttle_wrote(m, len, uncached);
	if (n > 0 && uncached && !(flags & IO_DEFER))
		cache_kick(m);
	return n;
}

ssize_t cache_write(struct mapping *m, struct iter *it, int64_t off, size_t len,
		    unsigned flags)
{
	size_t done = 0;
	ssize_t n;

	while (done < len) {
		size_t step = min_of(len - done, (size_t)THROTTLE_STEP);

		n = write_step(m, it, off + done, step, flags);
		if (n < 0)
			return done ? (ssize_t)done : n;
		done += n;
		if ((size_t)n < step)
			break;
	}
	return done;
}

void cache_edge_complete(struct mapping *m, int64_t off)
{
	struct folio *f = cache_find(m, off >> PAGE_SHIFT);

	if (!f)
		return;
	if (folio_test(f, FOLIO_COMPLETE)) {
		folio_lock(f);
		if (f->mapping == m)
			edge_complete(m, f);
		folio_unlock(f);
		/* Clean already: nobody else will come to drop it. */
		folios_drop_behind(m, &f, 1);
	}
	folio_put(f, m->cache);
}

void cache_write_end(struct mapping *m, int64_t off, size_t len)
{
	if (!len)
		return;
	cache_edge_complete(m, off);
	if ((off + len - 1) / m->unit != (uint64_t)off / m->unit)
		cache_edge_complete(m, off + len - 1);
}

/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * Lookup: under RCU, by reference, then look again.
 *
 * A hit takes no lock: the index is read under RCU, a reference is taken
 * unless the folio is being freed, and the slot is read once more: if it still
 * holds this folio, the reference was taken while it was in the index, and so
 * it cannot leave it unnoticed.
 */
#include "cache/lookup.h"

#include "cache/reclaim.h"

#include <errno.h>

struct folio *cache_find(struct mapping *m, uint64_t idx)
{
	struct folio *f;

	rcu_read_lock();
	for (;;) {
		f = index_load(&m->index, idx);
		if (!f)
			break;
		if (folio_try_get(f)) {
			if (f == index_load(&m->index, idx))
				break;
			rcu_read_unlock();
			folio_put(f, m->cache);
		} else {
			/* Frozen, for a few instructions, or gone. */
			rcu_read_unlock();
			task_yield();
		}
		rcu_read_lock();
	}
	rcu_read_unlock();
	return f;
}

static int lock_folio(struct folio *f, unsigned flags)
{
	if (folio_try_lock(f))
		return 0;
	if (flags & GET_NOWAIT)
		return -EAGAIN;
	folio_lock(f);
	return 0;
}

/* Somebody wants it cached. If another task holds the lock the mark stays, as
 * if this lookup had come before. */
static void clear_mark(struct mapping *m, struct folio *f, uint64_t idx,
		       unsigned flags)
{
	bool locked = flags & GET_LOCK;

	if (flags & (GET_DONTCACHE | GET_INTERNAL) ||
	    !folio_test(f, FOLIO_DROPBEHIND))
		return;
	if (!locked && !folio_try_lock(f))
		return;
	if (folio_is(f, m, idx))
		folio_clear_dropbehind(f);
	if (!locked)
		folio_unlock(f);
}

static unsigned pick_order(const struct mapping *m, uint64_t idx, size_t hint)
{
	uint64_t pages = hint >> PAGE_SHIFT;
	unsigned order = m->max_order;

	while (order > m->min_order &&
	       (1ull << order > pages || idx & ((1ull << order) - 1)))
		order--;
	return order;
}

/* Makes the folio. -EEXIST: there is one now. */
static int make_folio(struct mapping *m, uint64_t idx, unsigned flags,
		      size_t hint, struct folio **out)
{
	unsigned order = pick_order(m, idx, hint);
	struct folio *f = NULL;
	unsigned refused = 0;
	int err;

	for (;;) {
		if (!f)
			f = cache_alloc_folio(m->cache, order, m->min_order,
					      flags & GET_NOWAIT);
		if (!f)
			return flags & GET_NOWAIT ? -EAGAIN : -ENOMEM;
		order = f->order;
		atomic_store(&f->state, FOLIO_LOCKED);
		if ((flags & (GET_DONTCACHE | GET_EDGE)) == GET_DONTCACHE)
			state_or(&f->state, FOLIO_DROPBEHIND);
		/* Not stored: a late lookup may hold what it takes for the
		 * folio that these pages were before. */
		folio_get(f);
		err = mapping_insert(m, f, align_down(idx, 1ull << order));
		if (!err) {
			*out = f;
			return 0;
		}
		count_sub(&f->refs, 1);
		atomic_store(&f->state, 0);
		if (err == -ENOMEM && flags & GET_NOWAIT)
			err = -EAGAIN;
		else if (err == -ENOMEM &&
			 cache_alloc_again(m->cache, 0, &refused))
			continue;
		folio_put(f, m->cache);
		f = NULL;
		/* Smaller, it may fit beside what is there or closed. */
		if ((err == -EEXIST || err == -EAGAIN) && order > m->min_order)
			order--;
		else
			return err;
	}
}

static int get_or_make(struct mapping *m, uint64_t idx, unsigned flags,
		       size_t hint, struct folio **out)
{
	int err;

	*out = cache_find(m, idx);
	if (*out)
		return 0;
	if (!(flags & GET_CREAT))
		return -ENOENT;
	err = make_folio(m, align_down(idx, 1ull << m->min_order), flags, hint,
			 out);
	return err ?: 1;
}

int cache_get_folio(struct mapping *m, uint64_t idx, unsigned flags,
		    size_t hint, struct folio **out)
{
	struct folio *f;
	int err;

	for (;;) {
		err = get_or_make(m, idx, flags, hint, &f);
		if (err == 1)
			break; /* made, and locked */
		if (err == -EEXIST)
			continue;
		if (err == -EAGAIN && !(flags & GET_NOWAIT)) {
			range_wait(m, align_down(idx, 1ull << m->min_order),
				   m->min_order);
			continue;
		}
		if (err)
			return err;
		if (flags & GET_LOCK) {
			err = lock_folio(f, flags);
			if (err) {
				folio_put(f, m->cache);
				return err;
			}
			if (!folio_is(f, m, idx)) {
				folio_unlock(f);
				folio_put(f, m->cache);
				continue;
			}
		}
		clear_mark(m, f, idx, flags);
		if (!folio_test(f, FOLIO_REFERENCED))
			state_or(&f->state, FOLIO_REFERENCED);
		break;
	}
	*out = f;
	return 0;
}

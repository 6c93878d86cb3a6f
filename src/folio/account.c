/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * Exact accounting of dirty, marked and written folios: state.h has the rule
 * and the states. Each function here is one section of the index lock; the
 * wb a mapping belongs to is read in that same section.
 *
 * Invariants (mapping_check):
 *  1. A folio has at most one of TAG_DIRTY and TAG_EDGE, and one only while
 *     FOLIO_DIRTY is set.
 *  2. TAG_WRITEBACK if and only if FOLIO_WRITEBACK.
 *  3. The sums of the wb's counters are those of the tags; dontcache_dirty is
 *     that of the tagged folios with FOLIO_DROPBEHIND.
 *  4. A mapping is listed if and only if some folio of it has TAG_DIRTY.
 */
#include "folio/state.h"

#include "folio/account.h"
#include "folio/blocks.h"
#include "folio/edge.h"
#include "folio/lru.h"

#include <assert.h>

static void count(struct counter *of_wb, struct counter *of_all, long n)
{
	counter_add(of_wb, n);
	counter_add(of_all, n);
}

/* folio_mark_dirty() looks at it without a lock, for a mapped store. */
static void set_mapping(struct folio *f, struct mapping *m)
{
	__atomic_store_n(&f->mapping, m, __ATOMIC_RELAXED);
}

static bool counted(const struct mapping *m, const struct folio *f)
	REQUIRES(m->index_lock)
{
	return index_has_tag(&m->index, f->idx, TAG_DIRTY) ||
	       index_has_tag(&m->index, f->idx, TAG_EDGE);
}

static void make_eligible(struct mapping *m, struct folio *f)
	REQUIRES(m->index_lock)
{
	index_tag(&m->index, f->idx, TAG_DIRTY);
	if (!m->listed)
		wb_list(m->wb, m);
}

void account_dirty(struct mapping *m, struct folio *f) REQUIRES(m->index_lock)
{
	struct tr_cache *c = m->cache;
	struct wb *wb = m->wb;
	long n = folio_nr_pages(f);

	if (folio_test(f, FOLIO_EDGE)) {
		index_tag(&m->index, f->idx, TAG_EDGE);
		count(&wb->nr.edge_dirty, &c->edge_dirty, n);
	} else {
		make_eligible(m, f);
	}
	count(&wb->nr.reclaimable, &c->reclaimable, n);
	if (folio_test(f, FOLIO_DROPBEHIND))
		count(&wb->nr.dontcache_dirty, &c->dontcache_dirty, n);
	counter_add(&wb->nr.dirtied, n);
}

void account_clean(struct mapping *m, struct folio *f) REQUIRES(m->index_lock)
{
	struct tr_cache *c = m->cache;
	struct wb *wb = m->wb;
	long n = folio_nr_pages(f);

	if (index_has_tag(&m->index, f->idx, TAG_EDGE)) {
		index_untag(&m->index, f->idx, TAG_EDGE);
		count(&wb->nr.edge_dirty, &c->edge_dirty, -n);
	} else if (index_has_tag(&m->index, f->idx, TAG_DIRTY)) {
		index_untag(&m->index, f->idx, TAG_DIRTY);
	} else {
		return;
	}
	count(&wb->nr.reclaimable, &c->reclaimable, -n);
	if (folio_test(f, FOLIO_DROPBEHIND))
		count(&wb->nr.dontcache_dirty, &c->dontcache_dirty, -n);
}

void folio_mark_dirty(struct folio *f, unsigned also)
{
	struct mapping *m;

	if (state_or(&f->state, FOLIO_DIRTY | also) & FOLIO_DIRTY)
		return;
	explore_point(&f->mapping);
	m = __atomic_load_n(&f->mapping, __ATOMIC_RELAXED);
	if (!m)
		return;
	mutex_lock(&m->index_lock);
	if (f->mapping == m && folio_test(f, FOLIO_DIRTY) && !counted(m, f))
		account_dirty(m, f);
	mutex_unlock(&m->index_lock);
}

void folio_mark_again(struct folio *f)
{
	struct mapping *m = f->mapping;

	folio_mark_dirty(f, FOLIO_ALLDIRTY);
	mutex_lock(&m->index_lock);
	index_tag(&m->index, f->idx, TAG_TOWRITE);
	mutex_unlock(&m->index_lock);
	atomic_fetch_add(&m->again, 1);
}

/* FOLIO_ALLDIRTY goes in the same step as FOLIO_DIRTY: a mapped store that
 * comes later sets both again. */
static unsigned take_dirty(struct mapping *m, struct folio *f)
	REQUIRES(m->index_lock)
{
	unsigned was = state_and(&f->state, ~(FOLIO_DIRTY | FOLIO_ALLDIRTY));

	account_clean(m, f);
	return was;
}

static bool start_writeback(struct mapping *m, struct folio *f)
	REQUIRES(m->index_lock)
{
	long n = folio_nr_pages(f);
	unsigned was;

	if (f->mapping != m || folio_test(f, FOLIO_WRITEBACK) ||
	    !folio_test(f, FOLIO_DIRTY))
		return false;
	was = take_dirty(m, f);
	if (was & FOLIO_ALLDIRTY)
		blocks_all_dirty(f);
	index_untag(&m->index, f->idx, TAG_TOWRITE);
	index_tag(&m->index, f->idx, TAG_WRITEBACK);
	state_or(&f->state, FOLIO_WRITEBACK);
	count(&m->wb->nr.writeback, &m->cache->writeback, n);
	return true;
}

unsigned folios_start_writeback(struct mapping *m, struct folio **f,
				unsigned nr)
{
	unsigned started = 0;

	mutex_lock(&m->index_lock);
	while (started < nr && start_writeback(m, f[started]))
		started++;
	mutex_unlock(&m->index_lock);
	return started;
}

void folios_end_writeback(struct mapping *m, struct folio **f, unsigned nr,
			  bool written)
{
	long pages = 0;

	mutex_lock(&m->index_lock);
	for (unsigned i = 0; i < nr; i++) {
		assert(f[i]->mapping == m);
		index_untag(&m->index, f[i]->idx, TAG_WRITEBACK);
		pages += folio_nr_pages(f[i]);
	}
	count(&m->wb->nr.writeback, &m->cache->writeback, -pages);
	if (written)
		counter_add(&m->wb->nr.written, pages);
	for (unsigned i = 0; i < nr; i++)
		folio_clear_wake(f[i], FOLIO_WRITEBACK);
	mutex_unlock(&m->index_lock);
	for (unsigned i = 0; i < nr; i++)
		if (folio_test(f[i], FOLIO_RECLAIM)) {
			state_and(&f[i]->state, ~FOLIO_RECLAIM);
			lru_rotate(m->cache, f[i]);
		}
	waitq_wake_all(&m->cache->memory);
}

void folio_cancel_dirty(struct folio *f)
{
	struct mapping *m = f->mapping;

	mutex_lock(&m->index_lock);
	take_dirty(m, f);
	index_untag(&m->index, f->idx, TAG_TOWRITE);
	mutex_unlock(&m->index_lock);
}

void folio_mark_dropbehind(struct folio *f)
{
	struct mapping *m = f->mapping;

	mutex_lock(&m->index_lock);
	if (!(state_or(&f->state, FOLIO_DROPBEHIND) & FOLIO_DROPBEHIND) &&
	    counted(m, f))
		count(&m->wb->nr.dontcache_dirty, &m->cache->dontcache_dirty,
		      folio_nr_pages(f));
	mutex_unlock(&m->index_lock);
}

static void clear_dropbehind(struct mapping *m, struct folio *f)
	REQUIRES(m->index_lock)
{
	if ((state_and(&f->state, ~FOLIO_DROPBEHIND) & FOLIO_DROPBEHIND) &&
	    counted(m, f))
		count(&m->wb->nr.dontcache_dirty, &m->cache->dontcache_dirty,
		      -(long)folio_nr_pages(f));
}

void folio_clear_dropbehind(struct folio *f)
{
	struct mapping *m = f->mapping;

	mutex_lock(&m->index_lock);
	clear_dropbehind(m, f);
	mutex_unlock(&m->index_lock);
}

void folio_edge_to_dirty(struct folio *f)
{
	struct mapping *m = f->mapping;

	mutex_lock(&m->index_lock);
	state_and(&f->state, ~FOLIO_EDGE);
	if (index_has_tag(&m->index, f->idx, TAG_EDGE)) {
		index_untag(&m->index, f->idx, TAG_EDGE);
		count(&m->wb->nr.edge_dirty, &m->cache->edge_dirty,
		      -(long)folio_nr_pages(f));
		make_eligible(m, f);
	}
	mutex_unlock(&m->index_lock);
}

/*
 * Unlinks a folio whose references are the index's and the caller's only.
 * They are frozen at 0 while it goes, so that no lookup gets hold of it.
 */
bool folio_unlink(struct mapping *m, struct folio *f, bool behind)
{
	int expected = 2;

	explore_point(&f->maps);
	if (atomic_load(&f->maps)) {
		if (behind)
			clear_dropbehind(m, f);
		return false;
	}
	if (!count_cas(&f->refs, &expected, 0))
		return false;
	/* Looked at last: a mapped store that dirtied the folio did so before
	 * it gave back its map and reference. */
	if (folio_test(f, FOLIO_DIRTY | FOLIO_WRITEBACK | FOLIO_FILLING)) {
		atomic_store(&f->refs, 2);
		return false;
	}
	index_remove(&m->index, f->idx, f->order);
	clear_dropbehind(m, f);
	set_mapping(f, NULL);
	return true;
}

void folio_bury(struct mapping *m, struct folio *f)
{
	lru_del(m->cache, f);
	edge_detach(m, f);
	blocks_free(m->cache, f);
	atomic_store(&f->refs, 1);
}

void folio_remove(struct folio *f)
{
	struct mapping *m = f->mapping;
	bool emptied;

	mutex_lock(&m->index_lock);
	take_dirty(m, f);
	index_remove(&m->index, f->idx, f->order);
	clear_dropbehind(m, f);
	set_mapping(f, NULL);
	emptied = index_is_empty(&m->index);
	mutex_unlock(&m->index_lock);
	lru_del(m->cache, f);
	edge_detach(m, f);
	blocks_free(m->cache, f);
	folio_put(f, m->cache);
	if (emptied)
		mapping_put(m);
}

bool folio_try_remove(struct folio *f, bool behind)
{
	struct mapping *m = f->mapping;
	bool removed, emptied;

	mutex_lock(&m->index_lock);
	removed = folio_unlink(m, f, behind);
	emptied = removed && index_is_empty(&m->index);
	mutex_unlock(&m->index_lock);
	if (removed)
		folio_bury(m, f);
	if (emptied)
		mapping_put(m);
	return removed;
}

/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * Dropping marked folios once they are on disk.
 *
 * The end of writeback runs where it must not sleep for a folio lock. A folio
 * it cannot lock, or that somebody refers to just then, is queued with its
 * reference for the flusher, which tries again until the folio is dropped or
 * no longer to be: unmarked, dirty or under writeback again (then the next end
 * of writeback drops it). A queued folio is off the LRU, whose link the queue
 * uses.
 */
#include "folio/state.h"

#include "folio/lru.h"

/* Folios looked at in one section: as many as a 1 MiB write of pages has. */
#define DROP_BATCH 256

static bool wants_drop(const struct folio *f)
{
	unsigned s =
		folio_test(f, FOLIO_DROPBEHIND | FOLIO_DIRTY | FOLIO_WRITEBACK);

	return s == FOLIO_DROPBEHIND;
}

/* Hands a referenced folio to the flusher. Takes over the reference, unless
 * it is queued already. */
static void queue_drop(struct mapping *m, struct folio *f)
{
	struct wb *wb = m->bdi->root;

	if (state_or(&f->state, FOLIO_DROP_QUEUED) & FOLIO_DROP_QUEUED) {
		folio_put(f, m->cache);
		return;
	}
	lru_del(m->cache, f);
	mutex_lock(&wb->lock);
	cds_list_add_tail(&f->lru, &wb->drops);
	mutex_unlock(&wb->lock);
	wb_start(wb, WB_START_DROPS);
}

static void drop_batch(struct mapping *m, struct folio **f, unsigned nr)
{
	unsigned locked = 0, unlinked = 0;
	struct folio *got[DROP_BATCH];
	bool emptied;

	for (unsigned i = 0; i < nr; i++) {
		if (folio_try_lock(f[i])) {
			got[locked++] = f[i];
		} else {
			folio_get(f[i]);
			queue_drop(m, f[i]);
		}
	}
	mutex_lock(&m->index_lock);
	for (unsigned i = 0; i < locked; i++) {
		struct folio *x = got[i];

		if (x->mapping == m && wants_drop(x) &&
		    folio_unlink(m, x, true)) {
			got[i] = got[unlinked];
			got[unlinked++] = x;
		}
	}
	emptied = unlinked && index_is_empty(&m->index);
	mutex_unlock(&m->index_lock);
	for (unsigned i = 0; i < locked; i++) {
		bool again = i >= unlinked && got[i]->mapping == m &&
			     wants_drop(got[i]);

		if (i < unlinked) {
			cache_count(m->cache, COUNT_DROPPED_BEHIND,
				    folio_nr_pages(got[i]));
			folio_bury(m, got[i]);
		}
		folio_unlock(got[i]);
		if (again) {
			folio_get(got[i]);
			queue_drop(m, got[i]);
		}
	}
	if (emptied)
		mapping_put(m);
}

void folios_drop_behind(struct mapping *m, struct folio **f, unsigned nr)
{
	struct folio *want[DROP_BATCH];
	unsigned n = 0;

	for (unsigned i = 0; i < nr; i++) {
		if (wants_drop(f[i]))
			want[n++] = f[i];
		if (n == DROP_BATCH || (n && i == nr - 1)) {
			drop_batch(m, want, n);
			n = 0;
		}
	}
}

/*
 * The folio is not to be dropped now: back to the LRU. Whoever ended a
 * writeback of it meanwhile saw FOLIO_DROP_QUEUED and left it to us, so look
 * again after clearing that. false: it is still ours to drop.
 */
static bool unqueue(struct tr_cache *c, struct folio *f)
{
	lru_add(c, f);
	state_and(&f->state, ~FOLIO_DROP_QUEUED);
	if (!wants_drop(f) ||
	    (state_or(&f->state, FOLIO_DROP_QUEUED) & FOLIO_DROP_QUEUED))
		return true;
	lru_del(c, f);
	return false;
}

/* Tries one folio of the queue. false: try again later. */
static bool retry_drop(struct folio *f, struct tr_cache *c)
{
	struct mapping *m;
	bool done = true;

	if (!folio_try_lock(f))
		return false;
	m = f->mapping;
	if (!m) {
		state_and(&f->state, ~FOLIO_DROP_QUEUED);
		folio_unlock(f);
		return true;
	}
	mapping_get(m);
	if (wants_drop(f) && folio_try_remove(f, true)) {
		cache_count(c, COUNT_DROPPED_BEHIND, folio_nr_pages(f));
		state_and(&f->state, ~FOLIO_DROP_QUEUED);
	} else {
		done = !wants_drop(f) && unqueue(c, f);
	}
	folio_unlock(f);
	mapping_put(m);
	return done;
}

unsigned long wb_run_drops(struct wb *wb)
{
	CDS_LIST_HEAD(todo);
	CDS_LIST_HEAD(left);
	struct folio *f, *next;
	unsigned long nr = 0;

	mutex_lock(&wb->lock);
	cds_list_splice(&wb->drops, &todo);
	CDS_INIT_LIST_HEAD(&wb->drops);
	mutex_unlock(&wb->lock);
	cds_list_for_each_entry_safe (f, next, &todo, lru) {
		cds_list_del(&f->lru);
		if (retry_drop(f, wb->cache)) {
			folio_put(f, wb->cache);
			continue;
		}
		cds_list_add_tail(&f->lru, &left);
		nr++;
	}
	mutex_lock(&wb->lock);
	cds_list_splice(&left, &wb->drops);
	mutex_unlock(&wb->lock);
	return nr;
}

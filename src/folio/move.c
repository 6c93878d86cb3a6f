/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * Moving a file to another writeback domain, with everything that is counted
 * for it. All counters of a domain change in sections of the index lock that
 * read mapping.wb, so one section of it makes the move exact, whoever dirties,
 * marks, cleans or ends a writeback meanwhile.
 */
#include "folio/state.h"

/* What a file's tags say is counted, in pages. */
struct tally {
	long reclaimable, edge_dirty, dontcache_dirty, writeback;
};

static void tally_tag(struct mapping *m, enum index_tag tag, struct tally *t)
	REQUIRES(m->index_lock)
{
	uint64_t idx = 0;
	struct folio *f;

	while ((f = index_next_tag(&m->index, &idx, INDEX_MAX, tag))) {
		long n = folio_nr_pages(f);

		idx = f->idx + n;
		if (tag == TAG_WRITEBACK) {
			t->writeback += n;
			continue;
		}
		t->reclaimable += n;
		if (tag == TAG_EDGE)
			t->edge_dirty += n;
		if (folio_test(f, FOLIO_DROPBEHIND))
			t->dontcache_dirty += n;
	}
}

static void add(struct wb *wb, const struct tally *t, int sign)
{
	counter_add(&wb->nr.reclaimable, sign * t->reclaimable);
	counter_add(&wb->nr.edge_dirty, sign * t->edge_dirty);
	counter_add(&wb->nr.dontcache_dirty, sign * t->dontcache_dirty);
	counter_add(&wb->nr.writeback, sign * t->writeback);
}

/* By the time it became dirty, as the list is. */
static void link_by_age(struct wb *wb, struct mapping *m) REQUIRES(wb->lock)
{
	struct cds_list_head *at = wb->b_dirty.prev;

	while (at != &wb->b_dirty &&
	       cds_list_entry(at, struct mapping, wb_node)->dirtied_ns >
		       m->dirtied_ns)
		at = at->prev;
	cds_list_add(&m->wb_node, at);
}

/* A file that a flusher has taken is on no list; it goes back to its new
 * domain's. */
static void move_listing(struct mapping *m, struct wb *from, struct wb *to)
	REQUIRES(m->index_lock)
{
	bool linked;

	mutex_lock(&from->lock);
	linked = !cds_list_empty(&m->wb_node);
	if (linked)
		cds_list_del_init(&m->wb_node);
	mutex_unlock(&from->lock);
	if (!linked)
		return;
	mutex_lock(&to->lock);
	link_by_age(to, m);
	mutex_unlock(&to->lock);
}

void mapping_move_wb(struct mapping *m, struct wb *to)
{
	struct tally t = { 0 };
	struct wb *from;

	wb_get(to);
	mutex_lock(&m->index_lock);
	from = m->wb;
	if (from != to) {
		tally_tag(m, TAG_DIRTY, &t);
		tally_tag(m, TAG_EDGE, &t);
		tally_tag(m, TAG_WRITEBACK, &t);
		add(from, &t, -1);
		add(to, &t, 1);
		move_listing(m, from, to);
		m->wb = to;
	}
	mutex_unlock(&m->index_lock);
	wb_put(from);
}

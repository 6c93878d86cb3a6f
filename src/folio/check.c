/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * The check of a mapping: the invariants at the top of account.c, folio.h and
 * edge.h, one line for each that does not hold.
 */
#include "folio/check.h"

#include "folio/state.h"

#include <errno.h>
#include <stdio.h>

static int complain(const struct mapping *m, const struct folio *f,
		    const char *what)
{
	fprintf(stderr,
		"mapping_check: file %llu page %llu order %u state 0x%x "
		"refs %d: %s\n",
		(unsigned long long)m->id.ino, (unsigned long long)f->idx,
		f->order, folio_test(f, ~0u), atomic_load(&f->refs), what);
	return -EUCLEAN;
}

static int check_tags(struct mapping *m, struct folio *f,
		      struct dirty_sums *sums)
{
	bool dirty = index_has_tag(&m->index, f->idx, TAG_DIRTY);
	bool edge = index_has_tag(&m->index, f->idx, TAG_EDGE);
	bool writeback = index_has_tag(&m->index, f->idx, TAG_WRITEBACK);
	long n = folio_nr_pages(f);
	int err = 0;

	if (dirty && edge)
		err = complain(m, f, "tagged both DIRTY and EDGE");
	if ((dirty || edge) != !!folio_test(f, FOLIO_DIRTY))
		err = complain(m, f, "dirty bit and tag differ");
	if (edge && !folio_test(f, FOLIO_EDGE))
		err = complain(m, f, "EDGE tag on what is no edge");
	if (writeback != !!folio_test(f, FOLIO_WRITEBACK))
		err = complain(m, f, "writeback bit and tag differ");
	if (dirty && !m->listed)
		err = complain(m, f, "eligible in a file that is not listed");
	sums->reclaimable += dirty || edge ? n : 0;
	sums->edge_dirty += edge ? n : 0;
	sums->writeback += writeback ? n : 0;
	if ((dirty || edge) && folio_test(f, FOLIO_DROPBEHIND))
		sums->dontcache_dirty += n;
	return err;
}

static int check_folio(struct mapping *m, struct folio *f,
		       struct dirty_sums *sums)
{
	int err = check_tags(m, f, sums);

	if (f->mapping != m)
		err = complain(m, f, "of another mapping");
	if (f->order < m->min_order || f->idx & (folio_nr_pages(f) - 1))
		err = complain(m, f, "too small or not aligned");
	if (folio_test(f, FOLIO_LOCKED | FOLIO_FILLING))
		err = complain(m, f, "locked or filling at rest");
	if (!f->edge != !folio_test(f, FOLIO_EDGE | FOLIO_COMPLETE))
		err = complain(m, f, "edge and flag differ");
	if (folio_test(f, FOLIO_EDGE) && folio_test(f, FOLIO_COMPLETE))
		err = complain(m, f, "an edge both complete and not");
	if (folio_test(f, FOLIO_DIRTY) && !folio_test(f, FOLIO_UPTODATE) &&
	    !f->blocks && !f->edge)
		err = complain(m, f, "dirty but nothing in it is valid");
	if (!folio_test(f, FOLIO_LRU) != !!folio_test(f, FOLIO_DROP_QUEUED))
		err = complain(m, f, "on no list, or on two");
	sums->on_lru += folio_test(f, FOLIO_LRU) ? folio_nr_pages(f) : 0;
	sums->edges += !!folio_test(f, FOLIO_EDGE);
	return err;
}

int mapping_check(struct mapping *m, struct dirty_sums *sums)
{
	uint64_t idx = 0;
	struct folio *f;
	int err = 0;

	mutex_lock(&m->index_lock);
	index_check(&m->index);
	while ((f = index_next(&m->index, &idx, INDEX_MAX))) {
		err = check_folio(m, f, sums) ?: err;
		idx = f->idx + folio_nr_pages(f);
	}
	mutex_unlock(&m->index_lock);
	return err;
}

void mapping_print(struct mapping *m)
{
	uint64_t idx = 0;
	struct folio *f;

	mutex_lock(&m->index_lock);
	fprintf(stderr, "file %llu size %lld store %lld edges %lu\n",
		(unsigned long long)m->id.ino, (long long)mapping_size(m),
		(long long)atomic_load(&m->store_size),
		atomic_load(&m->nr_edges));
	while ((f = index_next(&m->index, &idx, INDEX_MAX))) {
		fprintf(stderr, "  page %llu order %u state 0x%x refs %d\n",
			(unsigned long long)f->idx, f->order,
			folio_test(f, ~0u), atomic_load(&f->refs));
		idx = f->idx + folio_nr_pages(f);
	}
	mutex_unlock(&m->index_lock);
}

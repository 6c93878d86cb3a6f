/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * Coverage and the list of incomplete edges.
 *
 * Coverage is a few byte ranges in order, which is all that records larger
 * than a unit ever need, and beyond that a bit per byte, allocated on demand.
 *
 * Invariants: the ranges are sorted, disjoint and not adjacent; covered is
 * their length; an edge is on the age list if and only if its folio has
 * FOLIO_EDGE. The list is guarded by edge_lock, which is inner to the index
 * lock; everything else of an edge by its folio's lock.
 */
#include "folio/edge.h"

#include "base/clock.h"
#include "base/mem.h"
#include "base/trace.h"
#include "folio/state.h"

#include <assert.h>
#include <string.h>

/* Ranges kept in the edge itself. */
#define EDGE_RANGES 5

struct edge {
	struct cds_list_head age; /* edge_lock; of the cache */
	struct cds_list_head of_mapping; /* edge_lock */
	struct folio *folio;
	struct mapping *m; /* has references while the edge is on its lists */
	uint64_t since_ns;
	uint32_t covered; /* bytes */
	uint16_t nr; /* ranges, while bits is NULL */
	struct edge_range {
		uint32_t from, to;
	} r[EDGE_RANGES];
	uint64_t *bits; /* a bit per byte, or NULL */
};

int edge_init(struct tr_cache *c)
{
	mutex_init(&c->edge_lock, LOCK_EDGE);
	CDS_INIT_LIST_HEAD(&c->edge_ages);
	atomic_init(&c->nr_edges, 0);
	return slab_init(&c->edges, c->arena, sizeof(struct edge), "edges");
}

void edge_fini(struct tr_cache *c)
{
	slab_fini(&c->edges);
	mutex_fini(&c->edge_lock);
}

bool edge_attach(struct mapping *m, struct folio *f)
{
	struct tr_cache *c = m->cache;
	struct edge *e = slab_alloc(&c->edges);

	if (!e)
		return false;
	assert(!f->edge && f->order == m->min_order);
	e->folio = f;
	e->m = m;
	e->since_ns = clock_ns();
	f->edge = e;
	state_or(&f->state, FOLIO_EDGE);
	mutex_lock(&c->edge_lock);
	cds_list_add_tail(&e->age, &c->edge_ages);
	cds_list_add_tail(&e->of_mapping, &m->edges);
	mutex_unlock(&c->edge_lock);
	atomic_fetch_add(&c->nr_edges, 1);
	atomic_fetch_add(&m->nr_edges, 1);
	TRACE(edge_held, .ino = m->id.ino, .offset = f->idx << PAGE_SHIFT);
	return true;
}

/* Takes an incomplete edge off the list; it is no longer FOLIO_EDGE. */
static void unlist(struct mapping *m, struct folio *f)
{
	struct tr_cache *c = m->cache;

	mutex_lock(&c->edge_lock);
	cds_list_del(&f->edge->age);
	cds_list_del(&f->edge->of_mapping);
	mutex_unlock(&c->edge_lock);
	atomic_fetch_sub(&c->nr_edges, 1);
	atomic_fetch_sub(&m->nr_edges, 1);
	if (f->mapping)
		folio_edge_to_dirty(f);
	else
		state_and(&f->state, ~FOLIO_EDGE);
}

static void free_edge(struct tr_cache *c, struct folio *f)
{
	mem_free(f->edge->bits);
	slab_free(&c->edges, f->edge);
	f->edge = NULL;
	state_and(&f->state, ~FOLIO_COMPLETE);
}

static bool to_bits(struct mapping *m, struct edge *e)
{
	e->bits = mem_zalloc(m->unit / 8);
	if (!e->bits)
		return false;
	for (unsigned i = 0; i < e->nr; i++)
		for (uint32_t b = e->r[i].from; b < e->r[i].to; b++)
			e->bits[b / 64] |= 1ull << b % 64;
	return true;
}

static void cover_bits(struct edge *e, uint32_t from, uint32_t to)
{
	while (from < to) {
		uint32_t end = min_of(to, (from / 64 + 1) * 64);
		uint64_t mask =
			(end - from == 64 ? 0 : 1ull << (end - from)) - 1;

		mask <<= from % 64;
		e->covered += __builtin_popcountll(mask & ~e->bits[from / 64]);
		e->bits[from / 64] |= mask;
		from = end;
	}
}

/* Merges [from, to) into the ranges, in which there is room for one more. */
static void cover_ranges(struct edge *e, uint32_t from, uint32_t to)
{
	unsigned i = 0, j;

	while (i < e->nr && e->r[i].to < from)
		i++;
	for (j = i; j < e->nr && e->r[j].from <= to; j++) {
		from = min_of(from, e->r[j].from);
		to = max_of(to, e->r[j].to);
		e->covered -= e->r[j].to - e->r[j].from;
	}
	assert(i < j || e->nr < EDGE_RANGES);
	memmove(&e->r[i + 1], &e->r[j], (e->nr - j) * sizeof(e->r[0]));
	e->nr = e->nr - (j - i) + 1;
	e->r[i].from = from;
	e->r[i].to = to;
	e->covered += to - from;
}

bool edge_reserve(struct mapping *m, struct folio *f)
{
	struct edge *e = f->edge;

	return e->bits || e->nr < EDGE_RANGES || to_bits(m, e);
}

bool edge_cover(struct mapping *m, struct folio *f, size_t from, size_t to,
		bool defer)
{
	struct edge *e = f->edge;

	if (e->bits)
		cover_bits(e, from, to);
	else
		cover_ranges(e, from, to);
	explore_point(&e->covered);
	if (e->covered < m->unit)
		return false;
	if (!folio_test(f, FOLIO_COMPLETE)) {
		state_or(&f->state, FOLIO_UPTODATE);
		unlist(m, f);
		state_or(&f->state, FOLIO_COMPLETE);
		cache_count(m->cache, COUNT_EDGES_COMPLETED, 1);
		TRACE(edge_completed, .ino = m->id.ino,
		      .offset = f->idx << PAGE_SHIFT);
	}
	if (!defer)
		edge_complete(m, f);
	return true;
}

void edge_complete(struct mapping *m, struct folio *f)
{
	if (!folio_test(f, FOLIO_COMPLETE))
		return;
	free_edge(m->cache, f);
	folio_mark_dropbehind(f);
}

void edge_retire(struct mapping *m, struct folio *f)
{
	assert(folio_test(f, FOLIO_UPTODATE));
	unlist(m, f);
	free_edge(m->cache, f);
	folio_mark_dropbehind(f);
}

void edge_detach(struct mapping *m, struct folio *f)
{
	if (!f->edge)
		return;
	if (folio_test(f, FOLIO_EDGE))
		unlist(m, f);
	free_edge(m->cache, f);
}

bool edge_next_covered(const struct folio *f, size_t *from, size_t *to)
{
	const struct edge *e = f->edge;
	size_t i = *from, end;

	if (!e->bits) {
		for (unsigned k = 0; k < e->nr; k++) {
			if (e->r[k].to <= i)
				continue;
			if (e->r[k].from >= *to)
				return false;
			*from = max_of(i, (size_t)e->r[k].from);
			*to = min_of(*to, (size_t)e->r[k].to);
			return *from < *to;
		}
		return false;
	}
	while (i < *to && !(e->bits[i / 64] >> i % 64 & 1))
		i++;
	for (end = i; end < *to && (e->bits[end / 64] >> end % 64 & 1);)
		end++;
	*from = i;
	*to = end;
	return i < end;
}

bool edge_next_gap(const struct folio *f, size_t *from, size_t *to)
{
	size_t a = *from, b = *to;

	while (a < *to && edge_next_covered(f, &a, &b)) {
		if (a > *from) {
			*to = a;
			return true;
		}
		*from = a = b;
		b = *to;
	}
	return *from < *to;
}

bool edge_has(const struct folio *f, size_t from, size_t to)
{
	return !edge_next_gap(f, &from, &to);
}

/* Takes references, unless the folio is just leaving the cache. */
static bool ref_edge(const struct edge *e, struct edge_ref *out)
	REQUIRES(c->edge_lock)
{
	if (!folio_try_get(e->folio))
		return false;
	/* The folio may just have left its mapping (folio_remove), which gives
	 * back what it held of it only after the edge has left the list. */
	out->f = e->folio;
	out->m = e->m;
	mapping_get(out->m);
	return true;
}

unsigned edge_oldest(struct tr_cache *c, const struct bdi *bdi,
		     uint64_t since_ns, struct edge_ref *out, unsigned max)
{
	struct edge *e;
	unsigned nr = 0;

	mutex_lock(&c->edge_lock);
	cds_list_for_each_entry (e, &c->edge_ages, age) {
		if (nr == max || e->since_ns > since_ns)
			break;
		if (e->m->bdi == bdi)
			nr += ref_edge(e, &out[nr]);
	}
	mutex_unlock(&c->edge_lock);
	return nr;
}

unsigned edge_of_mapping(struct mapping *m, struct edge_ref *out, unsigned max)
{
	struct edge *e;
	unsigned nr = 0;

	mutex_lock(&m->cache->edge_lock);
	cds_list_for_each_entry (e, &m->edges, of_mapping) {
		if (nr == max)
			break;
		nr += ref_edge(e, &out[nr]);
	}
	mutex_unlock(&m->cache->edge_lock);
	return nr;
}

uint64_t edge_oldest_ns(struct tr_cache *c)
{
	uint64_t ns = UINT64_MAX;

	mutex_lock(&c->edge_lock);
	if (!cds_list_empty(&c->edge_ages))
		ns = cds_list_first_entry(&c->edge_ages, struct edge, age)
			     ->since_ns;
	mutex_unlock(&c->edge_lock);
	return ns;
}

/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Goal: the coverage of an edge is exactly the bytes that were recorded,
 * however many ranges; it is complete when the last byte is, once; the lists of
 * edges have those that are incomplete, oldest first.
 *
 * Method: random ranges recorded in an edge and in plain bytes alike, every
 * question asked about random ranges of both.
 */
#include "lib/test.h"

#include <stdlib.h>
#include <string.h>

#include "base/mem.h"
#include "cache/file.h"
#include "cache/lookup.h"
#include "folio/edge.h"
#include "lib/cachetest.h"

#define UNIT_MAX 16384

struct scene {
	struct rig rig;
	struct mapping *m;
	struct rng rng;
	bool covered[UNIT_MAX]; /* the model */
};

static void scene_init(struct scene *s, uint32_t block)
{
	struct rig_options o = { .block = block, .no_flushers = true };

	rig_init(&s->rig, &o);
	s->m = cache_file_mapping(s->rig.file);
	rng_seed(&s->rng, seed_draw());
	memset(s->covered, 0, sizeof(s->covered));
}

/* A locked edge of the unit of page idx. */
static struct folio *make_edge(struct scene *s, uint64_t idx)
{
	struct folio *f;

	assert_int_equal(cache_get_folio(s->m, idx,
					 GET_LOCK | GET_CREAT | GET_DONTCACHE |
						 GET_EDGE,
					 0, &f),
			 0);
	assert_true(edge_attach(s->m, f));
	return f;
}

/* A clean folio leaves the cache, as the test's are made of nothing. */
static void drop(struct scene *s, struct folio *f)
{
	folio_remove(f);
	folio_unlock(f);
	folio_put(f, s->rig.cache);
}

static void draw(struct scene *s, size_t most, size_t *from, size_t *to)
{
	*from = rng_below(&s->rng, s->m->unit);
	*to = *from + 1 + rng_below(&s->rng, most);
	*to = *to > s->m->unit ? s->m->unit : *to;
}

/* The first run of bytes in [*from, *to) of which the model says val. */
static bool model_run(struct scene *s, bool val, size_t *from, size_t *to)
{
	size_t i = *from, end;

	while (i < *to && s->covered[i] != val)
		i++;
	for (end = i; end < *to && s->covered[end] == val; end++)
		;
	*from = i;
	*to = end;
	return i < end;
}

static void compare(struct scene *s, struct folio *f)
{
	size_t from, to, a, b, c, d;
	bool whole;

	draw(s, s->m->unit, &from, &to);
	a = c = from;
	b = d = to;
	whole = !model_run(s, false, &a, &b);
	assert_int_equal(edge_has(f, from, to), whole);
	assert_int_equal(edge_next_gap(f, &c, &d), !whole);
	if (!whole)
		assert_true(a == c && b == d);
	a = c = from;
	b = d = to;
	assert_int_equal(edge_next_covered(f, &c, &d),
			 model_run(s, true, &a, &b));
	if (a < b)
		assert_true(a == c && b == d);
}

static bool model_whole(struct scene *s)
{
	size_t from = 0, to = s->m->unit;

	return !model_run(s, false, &from, &to);
}

static void coverage(uint32_t block, size_t most, bool defer)
{
	struct scene s;
	struct folio *f;
	bool complete = false;

	scene_init(&s, block);
	f = make_edge(&s, 0);
	while (!complete) {
		size_t from, to;

		draw(&s, most, &from, &to);
		assert_true(edge_reserve(s.m, f));
		memset(s.covered + from, true, to - from);
		complete = edge_cover(s.m, f, from, to, defer);
		assert_int_equal(complete, model_whole(&s));
		if (complete)
			break;
		compare(&s, f);
		assert_true(folio_test(f, FOLIO_EDGE));
		assert_int_equal(atomic_load(&s.m->nr_edges), 1);
	}
	assert_false(folio_test(f, FOLIO_EDGE));
	assert_true(folio_test(f, FOLIO_UPTODATE));
	assert_int_equal(atomic_load(&s.m->nr_edges), 0);
	assert_int_equal(!!folio_test(f, FOLIO_COMPLETE), defer);
	assert_int_equal(!!folio_test(f, FOLIO_DROPBEHIND), !defer);
	if (defer) {
		/* A neighbour's write changes nothing; the mark comes once. */
		assert_true(edge_cover(s.m, f, 0, 1, true));
		edge_complete(s.m, f);
	}
	assert_true(folio_test(f, FOLIO_DROPBEHIND));
	assert_null(f->edge);
	edge_complete(s.m, f);
	assert_int_equal(rig_statistics(&s.rig).edges_completed, 1);
	drop(&s, f);
	rig_fini(&s.rig);
}

static void coverage_is_what_was_written(void **state)
{
	static const size_t most[] = { 20, 300, 3000 };

	for (unsigned i = 0; i < 3; i++) {
		coverage(4096, most[i], false);
		coverage(4096, most[i], true);
		coverage(16384, most[i], i & 1);
	}
}

/* Without memory for a bit per byte it says so, and stays as it was. */
static void reserving_may_fail(void **state)
{
	struct scene s;
	struct folio *f;
	bool room = true;

	scene_init(&s, 4096);
	f = make_edge(&s, 0);
	mem_fail_at(1, true);
	for (unsigned at = 0; room; at += 20) {
		room = edge_reserve(s.m, f);
		if (!room)
			break;
		s.covered[at] = true;
		(void)edge_cover(s.m, f, at, at + 1, false);
	}
	mem_fail_at(0, false);
	compare(&s, f);
	assert_true(edge_reserve(s.m, f));
	s.covered[4000] = true;
	(void)edge_cover(s.m, f, 4000, 4001, false);
	for (int i = 0; i < 100; i++)
		compare(&s, f);
	edge_detach(s.m, f);
	assert_false(folio_test(f, FOLIO_EDGE));
	drop(&s, f);
	rig_fini(&s.rig);
}

static void lists_have_the_oldest_first(void **state)
{
	struct folio *f[8];
	struct edge_ref r[8];
	struct scene s;

	scene_init(&s, 4096);
	assert_int_equal(edge_oldest_ns(s.rig.cache), UINT64_MAX);
	for (int i = 0; i < 8; i++)
		f[i] = make_edge(&s, 10 - i);
	assert_true(edge_oldest_ns(s.rig.cache) < UINT64_MAX);
	state_or(&f[0]->state, FOLIO_UPTODATE);
	edge_retire(s.m, f[0]);
	edge_detach(s.m, f[3]);
	edge_detach(s.m, f[3]);
	assert_int_equal(edge_oldest(s.rig.cache, s.m->bdi, 0, r, 8), 0);
	assert_int_equal(edge_oldest(s.rig.cache, NULL, UINT64_MAX, r, 8), 0);
	assert_int_equal(edge_oldest(s.rig.cache, s.m->bdi, UINT64_MAX, r, 3),
			 3);
	for (int i = 0; i < 3; i++) {
		assert_ptr_equal(r[i].f, f[i < 2 ? i + 1 : 4]);
		assert_ptr_equal(r[i].m, s.m);
		folio_put(r[i].f, s.rig.cache);
		mapping_put(s.m);
	}
	assert_int_equal(edge_of_mapping(s.m, r, 8), 6);
	for (int i = 0; i < 6; i++) {
		folio_put(r[i].f, s.rig.cache);
		mapping_put(s.m);
	}
	for (int i = 0; i < 8; i++)
		drop(&s, f[i]);
	assert_int_equal(atomic_load(&s.m->nr_edges), 0);
	rig_check(&s.rig);
	rig_fini(&s.rig);
}

/* The tag of a dirty edge, and with it what passes see, follows its state. */
static void tags_follow(void **state)
{
	struct tr_statistics st;
	struct scene s;
	struct folio *f;

	scene_init(&s, 4096);
	f = make_edge(&s, 5);
	folio_mark_dirty(f, 0);
	st = rig_statistics(&s.rig);
	assert_int_equal(st.edge_dirty, 1);
	assert_int_equal(st.reclaimable, 1);
	assert_int_equal(st.dontcache_dirty, 0);
	assert_false(s.m->listed);
	assert_true(edge_cover(s.m, f, 0, 4096, true));
	st = rig_statistics(&s.rig);
	assert_int_equal(st.edge_dirty, 0);
	assert_int_equal(st.reclaimable, 1);
	assert_int_equal(st.dontcache_dirty, 0);
	assert_true(s.m->listed);
	edge_complete(s.m, f);
	assert_int_equal(rig_statistics(&s.rig).dontcache_dirty, 1);
	folio_clear_dropbehind(f);
	folio_clear_dropbehind(f);
	assert_int_equal(rig_statistics(&s.rig).dontcache_dirty, 0);
	folio_mark_dropbehind(f);
	folio_mark_dropbehind(f);
	assert_int_equal(rig_statistics(&s.rig).dontcache_dirty, 1);
	drop(&s, f);
	rig_is_clean(&s.rig);
	rig_check(&s.rig);
	rig_fini(&s.rig);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(coverage_is_what_was_written),
		cmocka_unit_test(reserving_may_fail),
		cmocka_unit_test(lists_have_the_oldest_first),
		cmocka_unit_test(tags_follow),
	};

	return cmocka_run_group_tests(tests, leak_setup, leak_check);
}

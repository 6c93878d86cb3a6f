/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Goal: the index answers as a plain array would, keeps its shape, and can be
 * read under RCU while it changes. Method: random changes to the index and to
 * an array for three ranges of page numbers (the lowest, one across a high
 * node's edge, the highest), index_check() and random questions after every
 * step; every allocation of an insert failed in turn; readers against a writer.
 */
#include "lib/test.h"

#include "base/mem.h"
#include "base/rng.h"
#include "base/task.h"
#include "folio/arena.h"
#include "folio/index.h"
#include "folio/slab.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#define RANGES 3
#define SPAN 2048u /* pages of a range */
#define PAGES (RANGES * SPAN)

static const uint64_t bases[RANGES] = {
	0,
	(1ull << 24) - SPAN / 2,
	INDEX_MAX + 1 - SPAN,
};

/* Slot n of the model is page number number(n). */
static uint64_t number(unsigned n)
{
	return bases[n / SPAN] + n % SPAN;
}

struct world {
	struct arena *arena;
	struct slab slab;
	struct index ix;
	struct rng rng;
	struct folio *slots[PAGES]; /* the model */
	uint8_t tags[PAGES]; /* of folios that begin there */
	struct folio folios[PAGES]; /* folio n begins at slot n */
	unsigned nr_pages;
};

static struct world *world_new(void)
{
	struct world *w = aligned_alloc(64, align_up(sizeof(*w), 64));
	unsigned n;

	assert_non_null(w);
	memset(w, 0, sizeof(*w));
	assert_int_equal(
		arena_create(ARENA_SIZE_MIN, true, NULL, NULL, &w->arena), 0);
	assert_int_equal(slab_init(&w->slab, w->arena, INDEX_NODE_SIZE, "node"),
			 0);
	index_init(&w->ix, &w->slab);
	for (n = 0; n < PAGES; n++)
		w->folios[n].idx = number(n);
	return w;
}

static void world_end(struct world *w)
{
	assert_true(index_is_empty(&w->ix));
	rcu_barrier();
	assert_int_equal(slab_nr_objs(&w->slab), 0);
	slab_fini(&w->slab);
	arena_destroy(w->arena);
	free(w);
}

static unsigned first_of(const struct world *w, unsigned n)
{
	return (unsigned)(w->slots[n] - w->folios);
}

static void insert(struct world *w, unsigned n, unsigned order)
{
	unsigned i, nr = 1u << order;
	bool used = false;
	int err;

	n &= ~(nr - 1);
	for (i = n; i < n + nr; i++)
		used |= w->slots[i] != NULL;
	if (!used)
		w->folios[n].order = (uint8_t)order;
	err = index_insert(&w->ix, number(n), order, &w->folios[n]);
	assert_int_equal(err, used ? -EEXIST : 0);
	if (used)
		return;
	for (i = n; i < n + nr; i++)
		w->slots[i] = &w->folios[n];
	w->nr_pages += nr;
}

static void remove_at(struct world *w, unsigned n)
{
	unsigned i, nr;

	n = first_of(w, n);
	nr = (unsigned)folio_nr_pages(&w->folios[n]);
	index_remove(&w->ix, number(n), w->folios[n].order);
	for (i = n; i < n + nr; i++)
		w->slots[i] = NULL;
	w->tags[n] = 0;
	w->nr_pages -= nr;
}

static void split(struct world *w, unsigned n, unsigned to)
{
	unsigned i, end, t;

	n = first_of(w, n);
	end = n + (unsigned)folio_nr_pages(&w->folios[n]);
	if (to >= w->folios[n].order)
		return;
	for (i = n; i < end; i++) {
		w->slots[i] = &w->folios[i & ~((1u << to) - 1)];
		w->slots[i]->order = (uint8_t)to;
		index_replace(&w->ix, number(i), w->slots[i]);
	}
	for (i = n + (1u << to); i < end; i += 1u << to) {
		w->tags[i] = w->tags[n];
		for (t = 0; t < INDEX_TAGS; t++)
			if (w->tags[n] >> t & 1)
				index_tag(&w->ix, number(i), t);
	}
}

static void step(struct world *w)
{
	unsigned n = (unsigned)rng_below(&w->rng, PAGES);
	unsigned order = (unsigned)rng_below(&w->rng, FOLIO_ORDER_MAX + 1);
	enum index_tag t = (enum index_tag)rng_below(&w->rng, INDEX_TAGS);
	unsigned what = (unsigned)rng_below(&w->rng, 10);

	if (rng_below(&w->rng, 4))
		order /= 3;
	if (what < 4) {
		insert(w, n, order);
		return;
	}
	/* The next folio, so that questions find one. */
	while (n < PAGES && !w->slots[n])
		n++;
	if (n == PAGES)
		return;
	if (what < 7) {
		remove_at(w, n);
	} else if (what == 7) {
		split(w, n, order);
	} else if (what == 8) {
		n = first_of(w, n);
		index_tag(&w->ix, number(n), t);
		w->tags[n] |= 1u << t;
	} else {
		n = first_of(w, n);
		index_untag(&w->ix, number(n), t);
		w->tags[n] &= ~(1u << t);
	}
}

/* The slot where a folio with the tag (INDEX_TAGS: any) is first met. */
static unsigned model_next(const struct world *w, unsigned n, unsigned last,
			   unsigned t)
{
	for (; n <= last; n++)
		if (w->slots[n] &&
		    (t == INDEX_TAGS || w->tags[first_of(w, n)] >> t & 1))
			return n;
	return PAGES;
}

static void ask_next(struct world *w, unsigned n, unsigned last, unsigned t)
{
	unsigned want = model_next(w, n, last, t);
	uint64_t idx = number(n);
	struct folio *f;

	if (t == INDEX_TAGS)
		f = index_next(&w->ix, &idx, number(last));
	else
		f = index_next_tag(&w->ix, &idx, number(last), t);
	if (want == PAGES) {
		assert_null(f);
		return;
	}
	assert_ptr_equal(f, w->slots[want]);
	assert_int_equal(idx, number(want));
}

static void ask_batch(struct world *w, unsigned n, unsigned last,
		      enum index_tag t, unsigned max)
{
	uint64_t idx = number(n);
	struct folio *out[16];
	unsigned nr, i, at;

	nr = index_next_tags(&w->ix, &idx, number(last), t, out, max);
	assert_true(nr <= max);
	for (i = 0; i < nr; i++) {
		at = model_next(w, n, last, t);
		assert_int_not_equal(at, PAGES);
		assert_ptr_equal(out[i], w->slots[at]);
		n = first_of(w, at) + (unsigned)folio_nr_pages(out[i]);
	}
	if (nr == max) {
		assert_int_equal(idx, out[nr - 1]->idx +
					      folio_nr_pages(out[nr - 1]));
		return;
	}
	assert_int_equal(model_next(w, n, last, t), PAGES);
	assert_true(idx > number(last));
}

static void ask(struct world *w)
{
	unsigned n = (unsigned)rng_below(&w->rng, PAGES), t;
	unsigned last = n + (unsigned)rng_below(&w->rng, PAGES - n);

	assert_ptr_equal(index_load(&w->ix, number(n)), w->slots[n]);
	assert_null(index_load(&w->ix, (1ull << 30) + n));
	for (t = 0; t < INDEX_TAGS; t++) {
		bool any = model_next(w, 0, PAGES - 1, t) != PAGES;

		assert_int_equal(index_any(&w->ix, t), any);
		assert_int_equal(index_has_tag(&w->ix, number(n), t),
				 w->slots[n] && first_of(w, n) == n &&
					 w->tags[n] >> t & 1);
	}
	t = (unsigned)rng_below(&w->rng, INDEX_TAGS + 1);
	ask_next(w, n, last, t);
	ask_batch(w, n, last, t % INDEX_TAGS,
		  1 + (unsigned)rng_below(&w->rng, 16));
	assert_int_equal(w->ix.nr_pages, w->nr_pages);
	assert_int_equal(index_is_empty(&w->ix), w->nr_pages == 0);
}

static void steps_match_model(void **state)
{
	struct world *w = world_new();
	unsigned i, n, rounds = seed_rounds(3000);

	rng_seed(&w->rng, seed_draw());
	for (i = 0; i < rounds; i++) {
		step(w);
		index_check(&w->ix);
		ask(w);
		/* Now and then from empty again: roots rise and fall. */
		if (rng_below(&w->rng, 300))
			continue;
		for (n = 0; n < PAGES; n++)
			if (w->slots[n])
				remove_at(w, n);
		index_check(&w->ix);
		assert_true(index_is_empty(&w->ix));
	}
	for (n = 0; n < PAGES; n++)
		if (w->slots[n])
			remove_at(w, n);
	world_end(w);
}

/* Whatever allocation fails, the index is as before. */
static void insert_fails_clean(void **state)
{
	static const unsigned at[] = { 0, SPAN + 512, 2 * SPAN + 1024 };
	static const unsigned orders[] = { 0, 6, 9 };
	struct world *w = world_new();
	unsigned i, o;
	uint64_t nodes, n;
	int err;

	for (o = 0; o < ARRAY_SIZE(orders); o++) {
		for (i = 0; i < ARRAY_SIZE(at); i++) {
			w->folios[at[i]].order = (uint8_t)orders[o];
			nodes = w->ix.nr_nodes;
			n = 0;
			do {
				n++;
				mem_fail_at(n, n % 2);
				err = index_insert(&w->ix, number(at[i]),
						   orders[o],
						   &w->folios[at[i]]);
				mem_fail_at(0, false);
				index_check(&w->ix);
				if (err)
					assert_int_equal(w->ix.nr_nodes, nodes);
			} while (err == -ENOMEM);
			assert_int_equal(err, 0);
			assert_true(n > 1);
		}
		for (i = 0; i < ARRAY_SIZE(at); i++)
			index_remove(&w->ix, number(at[i]), orders[o]);
	}
	world_end(w);
}

static void walks_end(void **state)
{
	struct world *w = world_new();
	struct folio *out[4];
	uint64_t idx = UINT64_MAX;

	assert_null(index_load(&w->ix, UINT64_MAX));
	assert_null(index_next(&w->ix, &idx, UINT64_MAX));
	insert(w, PAGES - 1, 0);
	index_tag(&w->ix, INDEX_MAX, TAG_EDGE);
	assert_null(index_load(&w->ix, UINT64_MAX));
	assert_null(index_next(&w->ix, &idx, UINT64_MAX));
	idx = 0;
	assert_int_equal(
		index_next_tags(&w->ix, &idx, UINT64_MAX, TAG_EDGE, out, 4), 1);
	assert_int_equal(
		index_next_tags(&w->ix, &idx, UINT64_MAX, TAG_EDGE, out, 4), 0);
	idx = 0;
	assert_null(index_next_tag(&w->ix, &idx, INDEX_MAX - 1, TAG_EDGE));
	assert_int_equal(index_next_tags(&w->ix, &idx, 5, TAG_EDGE, out, 0), 0);
	assert_int_equal(idx, 0);
	remove_at(w, PAGES - 1);
	world_end(w);
}

struct reader {
	struct world *w;
	atomic_bool *stop;
	uint64_t seed;
	uint64_t found;
};

static void read_along(void *arg)
{
	struct reader *r = arg;
	struct folio *f;
	struct rng rng;
	uint64_t idx;

	rng_seed(&rng, r->seed);
	while (!*r->stop) {
		rcu_read_lock();
		idx = number((unsigned)rng_below(&rng, PAGES));
		f = index_load(&r->w->ix, idx);
		if (f) {
			assert_true(f->idx == idx);
			r->found++;
		}
		/* Page 0 is there all the time. */
		assert_non_null(index_load(&r->w->ix, 0));
		f = index_next(&r->w->ix, &idx, UINT64_MAX);
		if (f)
			assert_true(f->idx == idx);
		index_any(&r->w->ix, TAG_DIRTY);
		rcu_read_unlock();
	}
}

static void readers_see_whole_nodes(void **state)
{
	struct world *w = world_new();
	atomic_bool stop = false;
	struct reader r[2];
	struct task *tasks[2];
	unsigned i, n, rounds = seed_rounds(30000);
	uint64_t seed = seed_draw();

	rng_seed(&w->rng, seed);
	insert(w, 0, 0);
	for (i = 0; i < ARRAY_SIZE(r); i++) {
		r[i] = (struct reader){ w, &stop, seed + i, 0 };
		assert_int_equal(
			task_create(&tasks[i], "reader", read_along, &r[i]), 0);
	}
	/* Sparse, so that nodes come and go and the root rises and falls. */
	for (i = 0; i < rounds; i++) {
		n = 1 + (unsigned)rng_below(&w->rng, PAGES - 1);
		if (w->slots[n])
			remove_at(w, n);
		else if (w->nr_pages < 12)
			insert(w, n, 0);
		n = 1 + (unsigned)rng_below(&w->rng, PAGES - 1);
		while (w->nr_pages > 1 && rng_below(&w->rng, 2)) {
			while (!w->slots[n] || !n)
				n = (n + 1) % PAGES;
			if (rng_below(&w->rng, 2))
				index_tag(&w->ix, number(n), TAG_DIRTY);
			remove_at(w, n);
		}
		/* Callbacks lag behind: their nodes must fit the arena. */
		if (i % 1024 == 0)
			rcu_barrier();
	}
	stop = true;
	for (i = 0; i < ARRAY_SIZE(r); i++)
		task_join(tasks[i]);
	for (n = 0; n < PAGES; n++)
		if (w->slots[n])
			remove_at(w, n);
	world_end(w);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(steps_match_model),
		cmocka_unit_test(insert_fails_clean),
		cmocka_unit_test(walks_end),
		cmocka_unit_test(readers_see_whole_nodes),
	};

	return cmocka_run_group_tests(tests, leak_setup, leak_check);
}

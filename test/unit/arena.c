/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Goal: no page is given twice, lost or misaligned; sizes, reserve and growth
 * are as promised. Method: random allocations, frees and splits against a map
 * of who owns each page, arena_check() after every step; then each promise on
 * its own; then three tasks at once.
 */
#include "lib/test.h"

#include "base/mem.h"
#include "base/rng.h"
#include "base/task.h"
#include "folio/arena.h"

#include <errno.h>
#include <string.h>

#define MIB (1ull << 20)
#define BLOCKS 256

static struct arena *arena_new(uint64_t size)
{
	struct arena *a;

	assert_int_equal(arena_create(size, false, NULL, NULL, &a), 0);
	return a;
}

static void drop(struct arena *a, struct folio *f)
{
	f->refs = 0;
	arena_free(a, f);
}

/* The number of f's page within its chunk. */
static unsigned page_nr(const struct folio *f)
{
	return (uintptr_t)f % ARENA_CHUNK_LEN / sizeof(*f);
}

static void fields_are_zero(const struct folio *f, unsigned order, int refs)
{
	struct folio want;

	memset(&want, 0, sizeof(want));
	want.order = (uint8_t)order;
	want.refs = refs;
	assert_memory_equal(f, &want, sizeof(want));
}

struct owned {
	struct folio *blocks[BLOCKS];
	unsigned nr;
	uint8_t owner[ARENA_CHUNK_PAGES]; /* 1: some block's */
	uint64_t pages;
};

static void own(struct owned *o, struct folio *f)
{
	uint64_t i, nr = folio_nr_pages(f);

	assert_int_equal(page_nr(f) % nr, 0);
	assert_int_equal((uintptr_t)folio_data(f) % folio_len(f), 0);
	for (i = 0; i < nr; i++) {
		assert_int_equal(o->owner[page_nr(f) + i], 0);
		o->owner[page_nr(f) + i] = 1;
		assert_ptr_equal(folio_of_data((char *)folio_data(f) +
					       i * PAGE_SIZE + 17),
				 f + i);
	}
	memset(folio_data(f), 0xa5, folio_len(f));
	o->pages += nr;
	o->blocks[o->nr++] = f;
}

static struct folio *disown(struct owned *o, unsigned at)
{
	struct folio *f = o->blocks[at];

	memset(o->owner + page_nr(f), 0, folio_nr_pages(f));
	o->pages -= folio_nr_pages(f);
	o->blocks[at] = o->blocks[--o->nr];
	return f;
}

static void split(struct owned *o, unsigned at, unsigned to)
{
	struct folio *f = disown(o, at);
	unsigned i, nr = 1u << (f->order - to);

	f->state = FOLIO_DIRTY;
	arena_split(f, to);
	assert_int_equal(f->state, FOLIO_DIRTY);
	for (i = 0; i < nr; i++) {
		if (i > 0)
			fields_are_zero(f + ((size_t)i << to), to, 0);
		own(o, f + ((size_t)i << to));
	}
}

static void step(struct arena *a, struct owned *o, struct rng *rng)
{
	unsigned order = (unsigned)rng_below(rng, FOLIO_ORDER_MAX + 1);
	unsigned at = o->nr ? (unsigned)rng_below(rng, o->nr) : 0;
	struct folio *f;

	if (rng_below(rng, 2))
		order /= 3;
	switch (rng_below(rng, 8)) {
	case 0:
		if (!o->nr)
			return;
		f = o->blocks[at];
		if (order < f->order &&
		    o->nr + (1u << (f->order - order)) <= BLOCKS)
			split(o, at, order);
		return;
	case 1:
	case 2:
	case 3:
		if (o->nr)
			drop(a, disown(o, at));
		return;
	default:
		if (o->nr == BLOCKS)
			return;
		f = arena_alloc(a, order, at % 2 ? ARENA_RESERVE : 0);
		if (!f) {
			assert_true(order || arena_free_pages(a) <=
						     arena_reserve_pages(a));
			return;
		}
		fields_are_zero(f, order, 1);
		own(o, f);
	}
}

static void steps_match_model(void **state)
{
	static struct owned o;
	unsigned i, rounds = seed_rounds(20000);
	struct arena *a = arena_new(ARENA_SIZE_MIN);
	struct rng rng;

	rng_seed(&rng, seed_draw());
	for (i = 0; i < rounds; i++) {
		step(a, &o, &rng);
		arena_check(a);
		assert_int_equal(arena_free_pages(a) + o.pages,
				 arena_total_pages(a));
	}
	while (o.nr)
		drop(a, disown(&o, 0));
	arena_check(a);
	arena_destroy(a);
}

static void reserve_is_kept(void **state)
{
	struct arena *a = arena_new(ARENA_SIZE_MIN);
	uint64_t reserve = arena_reserve_pages(a);
	struct folio *f, *list = NULL;

	assert_int_equal(reserve, arena_total_pages(a) / 64);
	assert_true(reserve > 0);
	while ((f = arena_alloc(a, 0, 0))) {
		f->mapping = (struct mapping *)list;
		list = f;
	}
	assert_int_equal(arena_free_pages(a), reserve);
	f = arena_alloc(a, 0, ARENA_RESERVE | ARENA_NOREF);
	assert_non_null(f);
	fields_are_zero(f, 0, 0);
	arena_free(a, f);
	while ((f = arena_alloc(a, 0, ARENA_RESERVE))) {
		f->mapping = (struct mapping *)list;
		list = f;
	}
	assert_int_equal(arena_free_pages(a), 0);
	arena_check(a);
	while ((f = list)) {
		list = (struct folio *)f->mapping;
		drop(a, f);
		assert_true(arena_free_pages(a) > 0);
	}
	/* What lies in a CPU's stack is found when a large block is asked. */
	f = arena_alloc(a, FOLIO_ORDER_MAX, 0);
	assert_non_null(f);
	drop(a, f);
	arena_destroy(a);
}

struct chunks {
	unsigned nr;
	size_t len;
};

static void chunk_ready(void *arg, void *addr, size_t len)
{
	struct chunks *c = arg;

	assert_int_equal((uintptr_t)addr % ARENA_CHUNK_LEN, 0);
	c->nr++;
	c->len += len;
}

/* Takes every page there is, in the largest blocks. */
static void all_pages_are_given(struct arena *a)
{
	struct folio *f, *list = NULL;
	uint64_t nr = 0;
	int order;

	for (order = FOLIO_ORDER_MAX; order >= 0; order--) {
		while ((f = arena_alloc(a, (unsigned)order, ARENA_RESERVE))) {
			f->mapping = (struct mapping *)list;
			list = f;
			nr += folio_nr_pages(f);
		}
	}
	assert_int_equal(nr, arena_total_pages(a));
	while ((f = list)) {
		list = (struct folio *)f->mapping;
		drop(a, f);
	}
}

static void sizes_are_kept(void **state)
{
	static const struct {
		uint64_t size, used;
		unsigned chunks;
	} rows[] = {
		{ 4 * MIB, 4 * MIB, 1 },
		{ 5 * MIB + 4097, 5 * MIB + 4096, 1 },
		{ 64 * MIB, 64 * MIB, 1 },
		{ 65 * MIB, 64 * MIB, 1 },
		{ 66 * MIB + 5, 66 * MIB, 2 },
		{ 131 * MIB, 131 * MIB, 3 },
	};
	struct arena *a;
	unsigned i;

	assert_int_equal(arena_create(4 * MIB - 1, false, NULL, NULL, &a),
			 -EINVAL);
	assert_int_equal(arena_create(1ull << 60, false, NULL, NULL, &a),
			 -ENOMEM);
	for (i = 0; i < ARRAY_SIZE(rows); i++) {
		struct chunks c = { 0 };
		uint64_t pages = rows[i].used / PAGE_SIZE;

		assert_int_equal(arena_create(rows[i].size, true, chunk_ready,
					      &c, &a),
				 0);
		assert_false(arena_growing(a));
		assert_int_equal(c.nr, rows[i].chunks);
		assert_int_equal(c.len, rows[i].used);
		/* Descriptors are 1/64, rounded up to a page a chunk. */
		assert_in_range(pages - arena_total_pages(a), pages / 64,
				pages / 64 + c.nr);
		assert_int_equal(arena_ready_pages(a), arena_total_pages(a));
		assert_int_equal(arena_free_pages(a), arena_total_pages(a));
		all_pages_are_given(a);
		arena_check(a);
		arena_destroy(a);
	}
}

/*
 * Where the last chunk's descriptors end, pages begin. What a caller writes
 * there may look like the descriptor of a free buddy beyond the last frame.
 */
static void data_is_no_descriptor(void **state)
{
	/* 1344 frames, their descriptors 21 pages; the last 64 are a block. */
	struct arena *a = arena_new(5 * MIB + 256 * 1024);
	struct folio *f, *fake, *list = NULL;
	unsigned i;

	while ((f = arena_alloc(a, 0, ARENA_RESERVE))) {
		fake = folio_data(f);
		for (i = 0; i < PAGE_SIZE / sizeof(*fake); i++) {
			memset(&fake[i], 0xff, sizeof(*fake));
			fake[i].order = 6;
		}
		f->mapping = (struct mapping *)list;
		list = f;
	}
	while ((f = list)) {
		list = (struct folio *)f->mapping;
		drop(a, f);
	}
	all_pages_are_given(a);
	arena_check(a);
	arena_destroy(a);
}

static void grows_behind(void **state)
{
	struct chunks c = { 0 };
	struct arena *a;
	struct folio *f;

	assert_int_equal(arena_create(130 * MIB, false, chunk_ready, &c, &a),
			 0);
	assert_true(arena_ready_pages(a) > 0);
	f = arena_alloc(a, 0, 0);
	assert_non_null(f);
	arena_check(a);
	arena_wait_ready(a);
	assert_false(arena_growing(a));
	assert_int_equal(c.nr, 3);
	assert_int_equal(c.len, 130 * MIB);
	assert_int_equal(arena_ready_pages(a), arena_total_pages(a));
	arena_check(a);
	drop(a, f);
	arena_destroy(a);

	/* Destroyed in the middle. */
	assert_int_equal(arena_create(1024 * MIB, false, NULL, NULL, &a), 0);
	arena_destroy(a);
}

static void failures_leave_nothing(void **state)
{
	struct arena *a;
	struct folio *f;
	uint64_t n = 0;
	int err;

	do {
		mem_fail_at(++n, false);
		err = arena_create(66 * MIB, false, NULL, NULL, &a);
		mem_fail_at(0, false);
		assert_true(err == 0 || err == -ENOMEM || err == -EAGAIN);
	} while (err);
	assert_true(n > 2);
	mem_fail_at(1, false);
	assert_null(arena_alloc(a, 0, 0));
	f = arena_alloc(a, 0, 0);
	assert_non_null(f);
	mem_fail_at(0, false);
	drop(a, f);
	arena_destroy(a);
}

struct worker {
	struct arena *a;
	uint64_t seed;
};

static void churn(void *arg)
{
	struct worker *w = arg;
	struct folio *mine[64] = { NULL };
	struct rng rng;
	unsigned i, at;

	rng_seed(&rng, w->seed);
	for (i = 0; i < 20000; i++) {
		at = (unsigned)rng_below(&rng, ARRAY_SIZE(mine));
		if (mine[at]) {
			assert_true(*(struct folio **)folio_data(mine[at]) ==
				    mine[at]);
			drop(w->a, mine[at]);
			mine[at] = NULL;
			continue;
		}
		mine[at] = arena_alloc(
			w->a, rng_below(&rng, 4) ? 0 : (unsigned)at % 6, 0);
		if (mine[at])
			*(struct folio **)folio_data(mine[at]) = mine[at];
		if (i % 4096 == 0)
			arena_check(w->a);
	}
	for (at = 0; at < ARRAY_SIZE(mine); at++)
		if (mine[at])
			drop(w->a, mine[at]);
}

static void tasks_share(void **state)
{
	struct arena *a = arena_new(ARENA_SIZE_MIN);
	struct worker w[3];
	struct task *tasks[3];
	uint64_t seed = seed_draw();
	unsigned i;

	for (i = 0; i < ARRAY_SIZE(w); i++) {
		w[i].a = a;
		w[i].seed = seed + i;
		assert_int_equal(task_create(&tasks[i], "churn", churn, &w[i]),
				 0);
	}
	for (i = 0; i < ARRAY_SIZE(w); i++)
		task_join(tasks[i]);
	arena_check(a);
	assert_int_equal(arena_free_pages(a), arena_total_pages(a));
	all_pages_are_given(a);
	arena_destroy(a);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(steps_match_model),
		cmocka_unit_test(reserve_is_kept),
		cmocka_unit_test(sizes_are_kept),
		cmocka_unit_test(data_is_no_descriptor),
		cmocka_unit_test(grows_behind),
		cmocka_unit_test(failures_leave_nothing),
		cmocka_unit_test(tasks_share),
	};

	return cmocka_run_group_tests(tests, leak_setup, leak_check);
}

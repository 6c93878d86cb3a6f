/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Goal: objects are zero, never overlap, and pages go back. Method: random
 * allocations and frees for several sizes, every object filled with its own
 * byte and compared when freed, slab_check() after every step; then no memory
 * at all; then two tasks.
 */
#include "lib/test.h"

#include "base/mem.h"
#include "base/rng.h"
#include "base/task.h"
#include "folio/arena.h"
#include "folio/slab.h"

#include <errno.h>
#include <string.h>

#define OBJS 200

struct objs {
	unsigned char *obj[OBJS];
	unsigned char fill[OBJS];
};

static struct arena *arena_new(void)
{
	struct arena *a;

	assert_int_equal(arena_create(ARENA_SIZE_MIN, true, NULL, NULL, &a), 0);
	return a;
}

static bool all_are(const unsigned char *p, size_t len, unsigned char c)
{
	size_t i;

	for (i = 0; i < len; i++)
		if (p[i] != c)
			return false;
	return true;
}

static void step(struct slab *s, size_t size, struct objs *o, struct rng *rng)
{
	unsigned at = (unsigned)rng_below(rng, OBJS);

	if (o->obj[at]) {
		assert_true(all_are(o->obj[at], size, o->fill[at]));
		assert_ptr_equal(slab_of(o->obj[at]), s);
		slab_free(s, o->obj[at]);
		o->obj[at] = NULL;
		return;
	}
	o->obj[at] = slab_alloc(s);
	assert_non_null(o->obj[at]);
	assert_int_equal((uintptr_t)o->obj[at] % (size % 64 ? 8 : 64), 0);
	assert_true(all_are(o->obj[at], size, 0));
	o->fill[at] = (unsigned char)rng_next(rng) | 1;
	memset(o->obj[at], o->fill[at], size);
}

static void steps_match_model(void **state)
{
	static const size_t sizes[] = { 16, 64, 100, 576, 2048, 4096 };
	unsigned rounds = seed_rounds(5000), i, r;
	struct arena *a = arena_new();
	struct rng rng;
	struct slab s;

	rng_seed(&rng, seed_draw());
	for (i = 0; i < ARRAY_SIZE(sizes); i++) {
		struct objs o = { 0 };

		assert_int_equal(slab_init(&s, a, sizes[i], "test"), 0);
		for (r = 0; r < rounds; r++) {
			step(&s, sizes[i], &o, &rng);
			slab_check(&s);
		}
		for (r = 0; r < OBJS; r++)
			if (o.obj[r])
				slab_free(&s, o.obj[r]);
		slab_check(&s);
		assert_int_equal(slab_nr_objs(&s), 0);
		assert_int_equal(slab_nr_pages(&s), 1);
		slab_fini(&s);
		assert_int_equal(arena_free_pages(a), arena_total_pages(a));
	}
	arena_destroy(a);
}

static void sizes_are_limited(void **state)
{
	struct arena *a = arena_new();
	struct slab s;

	assert_int_equal(slab_init(&s, a, 15, "small"), -EINVAL);
	assert_int_equal(slab_init(&s, a, 4097, "large"), -EINVAL);
	arena_destroy(a);
}

static void no_memory_is_null(void **state)
{
	struct arena *a = arena_new();
	void *obj, *list = NULL;
	struct slab s;
	uint64_t n;

	assert_int_equal(slab_init(&s, a, 2000, "test"), 0);
	for (n = 1; n <= 2; n++) {
		mem_fail_at(n, false);
		assert_null(slab_alloc(&s));
		mem_fail_at(0, false);
		slab_check(&s);
	}
	while ((obj = slab_alloc(&s))) {
		*(void **)obj = list;
		list = obj;
	}
	assert_int_equal(arena_free_pages(a), 0);
	assert_int_equal(slab_nr_objs(&s), 2 * slab_nr_pages(&s));
	slab_check(&s);
	while ((obj = list)) {
		list = *(void **)obj;
		slab_free(&s, obj);
	}
	slab_fini(&s);
	arena_check(a);
	arena_destroy(a);
}

static void churn(void *arg)
{
	struct slab *s = arg;
	struct rng rng;
	struct objs o = { 0 };
	unsigned i;

	rng_seed(&rng, (uintptr_t)&o);
	for (i = 0; i < 20000; i++)
		step(s, 576, &o, &rng);
	for (i = 0; i < OBJS; i++)
		if (o.obj[i])
			slab_free(s, o.obj[i]);
}

static void tasks_share(void **state)
{
	struct arena *a = arena_new();
	struct task *tasks[2];
	struct slab s;
	unsigned i;

	assert_int_equal(slab_init(&s, a, 576, "test"), 0);
	for (i = 0; i < ARRAY_SIZE(tasks); i++)
		assert_int_equal(task_create(&tasks[i], "churn", churn, &s), 0);
	for (i = 0; i < ARRAY_SIZE(tasks); i++)
		task_join(tasks[i]);
	slab_check(&s);
	slab_fini(&s);
	arena_destroy(a);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(steps_match_model),
		cmocka_unit_test(sizes_are_limited),
		cmocka_unit_test(no_memory_is_null),
		cmocka_unit_test(tasks_share),
	};

	return cmocka_run_group_tests(tests, leak_setup, leak_check);
}

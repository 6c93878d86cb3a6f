/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Goal: the lock checker lets pass what is in order and aborts, with a message
 * that names the mutex, on all else. Method: records of held mutexes are made
 * by hand; what aborts is done in a child.
 */
#include "lib/test.h"

#include "base/held.h"
#include "base/lock.h"
#include "lib/death.h"

static const struct mutex outer = { .rank = LOCK_CACHE };
static const struct mutex middle = { .rank = LOCK_INDEX };
static const struct mutex equal = { .rank = LOCK_INDEX };
static const struct mutex inner = { .rank = LOCK_LRU };

static void order_passes(void **state)
{
	struct held h = { .nr = 0 };

	held_assert_none(&h);
	held_check(&h, &outer);
	held_push(&h, &outer);
	held_check(&h, &middle);
	held_push(&h, &middle);
	held_check(&h, &inner);
	held_push(&h, &inner);
	held_assert(&h, &outer);
	/* Released in any order. */
	held_pop(&h, &middle);
	assert_int_equal(h.nr, 2);
	assert_ptr_equal(h.m[0], &outer);
	assert_ptr_equal(h.m[1], &inner);
	held_pop(&h, &inner);
	held_pop(&h, &outer);
	held_assert_none(&h);
}

static void take_held_middle(void *m)
{
	struct held h = { .nr = 1, .m = { &middle } };

	held_check(&h, m);
}

static void pop_held_middle(void *m)
{
	struct held h = { .nr = 1, .m = { &middle } };

	held_pop(&h, m);
}

static void assert_held_middle(void *m)
{
	struct held h = { .nr = 1, .m = { &middle } };

	held_assert(&h, m);
}

static void assert_none(void *m)
{
	struct held h = { .nr = 1, .m = { &middle } };

	held_assert_none(&h);
}

static void push_too_many(void *m)
{
	struct held h = { .nr = 0 };
	unsigned i;

	for (i = 0; i <= HELD_MAX; i++)
		held_push(&h, m);
}

static void disorder_aborts(void **state)
{
	assert_true(death_of(take_held_middle, (void *)&outer,
			     "out of order (cache"));
	assert_true(death_of(take_held_middle, (void *)&equal,
			     "out of order (index"));
	assert_true(death_of(take_held_middle, (void *)&middle, "twice"));
	assert_true(death_of(pop_held_middle, (void *)&inner, "has it not"));
	assert_true(
		death_of(assert_held_middle, (void *)&inner, "should be held"));
	assert_true(
		death_of(assert_none, NULL, "held, outermost first: index"));
	assert_true(death_of(push_too_many, (void *)&inner, "too many"));
}

static void every_rank_has_a_name(void **state)
{
	unsigned i;

	for (i = 0; i < LOCK_RANKS; i++)
		assert_non_null(lock_rank_name(i));
	assert_string_equal(lock_rank_name(LOCK_RANKS), "unknown");
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(order_passes),
		cmocka_unit_test(disorder_aborts),
		cmocka_unit_test(every_rank_has_a_name),
	};

	return cmocka_run_group_tests(tests, leak_setup, leak_check);
}

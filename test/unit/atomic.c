/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Goal: each operation does what its name says and returns the value from
 * before; a count that reached zero is not revived. Method: values by hand; two
 * tasks take and drop references beside one that drops the last.
 */
#include "lib/test.h"

#include "base/atomic.h"
#include "base/task.h"

#define ROUNDS 20000

static void state_operations(void **state)
{
	atomic_uint w = 1;
	unsigned old = 7;

	assert_int_equal(state_load(&w), 1);
	assert_int_equal(state_or(&w, 6), 1);
	assert_int_equal(state_and(&w, ~2u), 7);
	assert_int_equal(state_xchg(&w, 9), 5);
	assert_false(state_cas(&w, &old, 1));
	assert_int_equal(old, 9);
	assert_true(state_cas(&w, &old, 2));
	state_store(&w, state_load(&w) + 1);
	assert_int_equal(state_load(&w), 3);
}

static void count_operations(void **state)
{
	atomic_int c = 0;
	int old = 0;

	assert_false(count_inc_unless_zero(&c));
	assert_int_equal(count_add(&c, 2), 0);
	assert_true(count_inc_unless_zero(&c));
	assert_int_equal(count_sub(&c, 1), 3);
	assert_false(count_cas(&c, &old, 5));
	assert_true(count_cas(&c, &old, 5));
	assert_int_equal(count_load(&c), 5);
}

static void taker(void *arg)
{
	atomic_int *c = arg;
	int i;

	for (i = 0; i < ROUNDS; i++)
		if (count_inc_unless_zero(c))
			count_sub(c, 1);
}

static void zero_stays(void **state)
{
	atomic_int c = 1;
	struct task *a, *b;

	assert_int_equal(task_create(&a, "a", taker, &c), 0);
	assert_int_equal(task_create(&b, "b", taker, &c), 0);
	count_sub(&c, 1);
	task_join(a);
	task_join(b);
	assert_int_equal(count_load(&c), 0);
	assert_false(count_inc_unless_zero(&c));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(state_operations),
		cmocka_unit_test(count_operations),
		cmocka_unit_test(zero_stays),
	};

	return cmocka_run_group_tests(tests, leak_setup, leak_check);
}

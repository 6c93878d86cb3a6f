/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Goal: no amount is lost or doubled, however many add; the cheap reading is
 * within its bound; a sum beside adders holds at least what was there before.
 * Method: two tasks add ups and downs with a known end.
 */
#include "lib/test.h"

#include <errno.h>
#include <stdlib.h>

#include "base/counter.h"
#include "base/mem.h"
#include "base/task.h"

#define ROUNDS 100000

static void adder(void *arg)
{
	struct counter *c = arg;
	int i;

	for (i = 0; i < ROUNDS; i++)
		counter_add(c, i % 3 == 2 ? -1 : 1);
}

static void climber(void *arg)
{
	struct counter *c = arg;
	int i;

	for (i = 0; i < ROUNDS; i++)
		counter_add(c, 1);
}

static void sum_is_exact(void **state)
{
	struct counter c;
	struct task *a, *b;
	long want = 0;
	int i;

	for (i = 0; i < ROUNDS; i++)
		want += i % 3 == 2 ? -1 : 1;
	assert_int_equal(counter_init(&c), 0);
	assert_int_equal(task_create(&a, "a", adder, &c), 0);
	assert_int_equal(task_create(&b, "b", adder, &c), 0);
	task_join(a);
	task_join(b);
	assert_int_equal(counter_sum(&c), 2 * want);
	assert_true(labs(counter_read(&c) - 2 * want) <=
		    COUNTER_BATCH * (long)(c.cell_mask + 1));
	counter_fini(&c);
}

static void sum_never_falls(void **state)
{
	long sum, last = 0;
	struct counter c;
	struct task *t;

	assert_int_equal(counter_init(&c), 0);
	assert_int_equal(task_create(&t, "climber", climber, &c), 0);
	do {
		sum = counter_sum(&c);
		assert_true(sum >= last);
		last = sum;
	} while (sum < ROUNDS);
	task_join(t);
	assert_int_equal(counter_sum(&c), ROUNDS);
	counter_fini(&c);
}

static void large_amounts(void **state)
{
	struct counter c;

	assert_int_equal(counter_init(&c), 0);
	counter_add(&c, 1l << 40);
	assert_int_equal(counter_read(&c), 1l << 40);
	counter_add(&c, -(1l << 41));
	assert_int_equal(counter_read(&c), -(1l << 40));
	assert_int_equal(counter_sum(&c), -(1l << 40));
	counter_fini(&c);
}

static void init_fails(void **state)
{
	struct counter c;

	mem_fail_at(1, false);
	assert_int_equal(counter_init(&c), -ENOMEM);
	mem_fail_at(0, false);
}

static void several_or_none(void **state)
{
	struct counter c[3];

	for (unsigned nth = 1; nth <= ARRAY_SIZE(c); nth++) {
		mem_fail_at(nth, false);
		assert_int_equal(counters_init(c, ARRAY_SIZE(c)), -ENOMEM);
	}
	mem_fail_at(0, false);
	assert_int_equal(counters_init(c, ARRAY_SIZE(c)), 0);
	counter_add(&c[2], 1);
	assert_int_equal(counter_sum(&c[1]), 0);
	assert_int_equal(counter_sum(&c[2]), 1);
	counters_fini(c, ARRAY_SIZE(c));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(sum_is_exact),
		cmocka_unit_test(sum_never_falls),
		cmocka_unit_test(large_amounts),
		cmocka_unit_test(init_fails),
		cmocka_unit_test(several_or_none),
	};

	return cmocka_run_group_tests(tests, leak_setup, leak_check);
}

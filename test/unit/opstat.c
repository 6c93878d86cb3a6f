/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Goal: operations are counted each, by two threads too, and percentiles lie
 * where the times do. Method: known times; two tasks add at once.
 */
#include "lib/test.h"

#include <string.h>

#include "base/clock.h"
#include "base/opstat.h"
#include "base/task.h"

#define ADDS 20000

static void percentiles(void **state)
{
	struct opstat_sum sum = { 0 };
	struct opstat o = { 0 };
	uint64_t p;

	opstat_read(&o, &sum);
	assert_int_equal(opstat_percentile(&sum, 500), 0);
	for (int i = 0; i < 99; i++)
		opstat_add(&o, 10, 1, 100 * NS_PER_US);
	opstat_add(&o, 10, 1, 3 * NS_PER_S);
	opstat_read(&o, &sum);
	assert_int_equal(sum.count, 100);
	assert_int_equal(sum.bytes_in, 1000);
	assert_int_equal(sum.bytes_out, 100);
	assert_int_equal(sum.max_ns, 3 * NS_PER_S);
	p = opstat_percentile(&sum, 500);
	assert_in_range(p, 64, 128);
	assert_true(opstat_percentile(&sum, 990) <= 128);
	/* The last bucket is open: its end is the largest time. */
	assert_int_equal(opstat_percentile(&sum, 1000), 3000000);
	/* A second reading adds. */
	opstat_read(&o, &sum);
	assert_int_equal(sum.count, 200);
}

static void never_above_the_largest(void **state)
{
	struct opstat_sum sum = { 0 };
	struct opstat o = { 0 };

	opstat_add(&o, 0, 0, 70 * NS_PER_US);
	opstat_read(&o, &sum);
	assert_int_equal(opstat_percentile(&sum, 999), 70);
	memset(&o, 0, sizeof(o));
	memset(&sum, 0, sizeof(sum));
	opstat_add(&o, 0, 0, 0);
	opstat_read(&o, &sum);
	assert_int_equal(opstat_percentile(&sum, 1), 0);
}

static void add_many(void *arg)
{
	for (uint64_t i = 0; i < ADDS; i++)
		opstat_add(arg, 1, 2, i);
}

static void two_threads(void **state)
{
	struct opstat_sum sum = { 0 };
	struct opstat o = { 0 };
	struct task *t[2];

	for (int i = 0; i < 2; i++)
		assert_int_equal(task_create(&t[i], "adder", add_many, &o), 0);
	for (int i = 0; i < 2; i++)
		task_join(t[i]);
	opstat_read(&o, &sum);
	assert_int_equal(sum.count, 2 * ADDS);
	assert_int_equal(sum.bytes_out, 4 * ADDS);
	assert_int_equal(sum.max_ns, ADDS - 1);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(percentiles),
		cmocka_unit_test(never_above_the_largest),
		cmocka_unit_test(two_threads),
	};

	return cmocka_run_group_tests(tests, leak_setup, leak_check);
}

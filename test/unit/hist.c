/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Goal: a percentile is never below the value that has it nor more than 1.6 %
 * above, and merging loses nothing. Method: values of every magnitude alone,
 * then known distributions, whole and in two halves merged.
 */
#include "lib/test.h"

#include <stdlib.h>

#include "cmd/bench/hist.h"

static struct hist *hist_new(void)
{
	struct hist *h = calloc(1, sizeof(*h));

	assert_non_null(h);
	return h;
}

static void every_magnitude(void **state)
{
	for (unsigned shift = 0; shift < 64; shift++) {
		for (int delta = -1; delta <= 1; delta++) {
			uint64_t v = (1ull << shift) + (uint64_t)delta, p;
			struct hist *h = hist_new();

			assert_true(hist_bucket(v) < HIST_BUCKETS);
			hist_add(h, v);
			/* A larger one, so that the maximum does not help. */
			hist_add(h, UINT64_MAX);
			p = hist_percentile(h, 0.5);
			assert_true(p >= v);
			assert_true(p - v <= v / 64);
			free(h);
		}
	}
}

static void known_distribution(void **state)
{
	struct hist *whole = hist_new(), *half = hist_new();
	struct hist *other = hist_new();
	uint64_t p;

	assert_int_equal(hist_percentile(whole, 0.5), 0);
	for (uint64_t v = 1; v <= 100000; v++) {
		hist_add(whole, v);
		hist_add(v % 2 ? half : other, v);
	}
	hist_merge(half, other);
	assert_memory_equal(whole, half, sizeof(*whole));
	p = hist_percentile(whole, 0.5);
	assert_in_range(p, 50000, 50800);
	p = hist_percentile(whole, 0.99);
	assert_in_range(p, 99000, 100000);
	assert_int_equal(hist_percentile(whole, 1.0), 100000);
	assert_int_equal(whole->max_ns, 100000);
	free(whole);
	free(half);
	free(other);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(every_magnitude),
		cmocka_unit_test(known_distribution),
	};
	return cmocka_run_group_tests(tests, leak_setup, leak_check);
}

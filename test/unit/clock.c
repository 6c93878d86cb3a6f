/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Goal: the clocks read the kernel's time, or the test's while simulated, and
 * sleeps last as long as asked by whichever it is. Method: compare with
 * clock_gettime(2); move simulated time under a sleeper.
 */
#include "lib/test.h"

#include <stdatomic.h>

#include "base/clock.h"
#include "base/task.h"

static void kernel_time(void **state)
{
	struct timespec ts, real = clock_real();
	uint64_t a = clock_ns(), b;

	clock_gettime(CLOCK_MONOTONIC, &ts);
	b = (uint64_t)ts.tv_sec * NS_PER_S + (uint64_t)ts.tv_nsec;
	assert_true(a <= b && clock_ns() >= b);
	clock_gettime(CLOCK_REALTIME, &ts);
	assert_true(ts.tv_sec - real.tv_sec <= 1);
	clock_sleep(NS_PER_MS);
	assert_true(clock_ns() >= a + NS_PER_MS);
}

static void simulated_time(void **state)
{
	struct timespec a, b;

	clock_sim_start(7);
	assert_int_equal(clock_ns(), 7);
	a = clock_real();
	clock_sim_advance(2 * NS_PER_S + 5);
	assert_int_equal(clock_ns(), 2 * NS_PER_S + 12);
	b = clock_real();
	assert_int_equal(b.tv_sec - a.tv_sec, 2);
	assert_int_equal(b.tv_nsec - a.tv_nsec, 5);
	clock_sim_stop();
	assert_int_not_equal(clock_ns(), 2 * NS_PER_S + 12);
}

static void sleeper(void *arg)
{
	clock_sleep(100);
	atomic_store((atomic_uint *)arg, clock_ns() >= 100);
}

static void simulated_sleep(void **state)
{
	atomic_uint slept = 0;
	struct task *t;

	clock_sim_start(0);
	assert_int_equal(task_create(&t, "sleeper", sleeper, &slept), 0);
	/* Wherever the sleeper is by now, time comes to it. */
	while (!atomic_load(&slept)) {
		clock_sim_advance(10);
		task_yield();
	}
	task_join(t);
	clock_sim_stop();
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(kernel_time),
		cmocka_unit_test(simulated_time),
		cmocka_unit_test(simulated_sleep),
	};

	return cmocka_run_group_tests(tests, leak_setup, leak_check);
}

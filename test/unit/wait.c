/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Goal: sleepers wake when their condition holds and not for ever after a
 * wake-up that came early; deadlines end a wait, in simulated time too.
 * Method: two tasks pass a number back and forth many times, which hangs on the
 * first wake-up lost; the protocol's steps are also done one by one on one
 * task; time is moved by the test.
 */
#include "lib/test.h"

#include "base/clock.h"
#include "base/task.h"
#include "base/wait.h"

#define ROUNDS 5000

struct shared {
	struct waitq wq;
	atomic_uint word;
	atomic_uint ended;
	uint64_t deadline_ns;
};

static void shared_init(struct shared *s)
{
	waitq_init(&s->wq);
	atomic_init(&s->word, 0);
	atomic_init(&s->ended, 0);
	s->deadline_ns = 0;
}

static void ping(struct shared *s, unsigned parity)
{
	unsigned i;

	for (i = 0; i < ROUNDS; i++) {
		wait_event(&s->wq, atomic_load(&s->word) % 2 == parity);
		/* Relaxed: waking must not rely on the caller's order. */
		atomic_fetch_add_explicit(&s->word, 1, memory_order_relaxed);
		waitq_wake_all(&s->wq);
	}
}

static void ping_odd(void *arg)
{
	ping(arg, 1);
}

static void no_wakeup_is_lost(void **state)
{
	struct shared s;
	struct task *t;

	shared_init(&s);
	assert_int_equal(task_create(&t, "odd", ping_odd, &s), 0);
	ping(&s, 0);
	task_join(t);
	assert_int_equal(atomic_load(&s.word), 2 * ROUNDS);
	assert_int_equal(atomic_load(&s.wq.sleepers), 0);
}

static void early_wakeup_counts(void **state)
{
	struct shared s;
	unsigned seen;

	shared_init(&s);
	/* Nobody sleeps: nothing is counted. */
	waitq_wake_all(&s.wq);
	assert_int_equal(atomic_load(&s.wq.seq), 0);
	seen = waitq_prepare(&s.wq);
	waitq_wake_one(&s.wq);
	assert_true(waitq_sleep(&s.wq, seen, 0));
	waitq_prepare(&s.wq);
	waitq_cancel(&s.wq);
	assert_int_equal(atomic_load(&s.wq.sleepers), 0);
}

static void deadline_passes(void **state)
{
	uint64_t until = clock_ns() + NS_PER_MS;
	struct shared s;

	shared_init(&s);
	assert_false(wait_event_until(&s.wq, false, until));
	assert_true(clock_ns() >= until);
	/* Long past. */
	assert_false(wait_event_until(&s.wq, false, 1));
	/* What holds is not waited for. */
	assert_true(wait_event_until(&s.wq, true, 1));
	assert_int_equal(atomic_load(&s.wq.sleepers), 0);
}

static void take_one(void *arg)
{
	struct shared *s = arg;
	unsigned v = 0;

	for (;;) {
		wait_event(&s->wq, (v = atomic_load(&s->word)));
		if (atomic_compare_exchange_strong(&s->word, &v, v - 1))
			break;
	}
	atomic_fetch_add(&s->ended, 1);
}

static void wake_one_serves_all_in_turn(void **state)
{
	struct task *t[4];
	struct shared s;
	unsigned i;

	shared_init(&s);
	for (i = 0; i < ARRAY_SIZE(t); i++)
		assert_int_equal(task_create(&t[i], "taker", take_one, &s), 0);
	for (i = 0; i < ARRAY_SIZE(t); i++) {
		atomic_fetch_add(&s.word, 1);
		waitq_wake_one(&s.wq);
	}
	for (i = 0; i < ARRAY_SIZE(t); i++)
		task_join(t[i]);
	assert_int_equal(atomic_load(&s.ended), ARRAY_SIZE(t));
	assert_int_equal(atomic_load(&s.word), 0);
}

static void sleep_to_deadline(void *arg)
{
	struct shared *s = arg;

	if (!wait_event_until(&s->wq, atomic_load(&s->word), s->deadline_ns))
		atomic_store(&s->ended, 1);
}

static void simulated_deadline(void **state)
{
	struct shared s;
	struct task *t;

	shared_init(&s);
	clock_sim_start(1000);
	s.deadline_ns = 3000;
	assert_int_equal(task_create(&t, "sleeper", sleep_to_deadline, &s), 0);
	while (!atomic_load(&s.wq.sleepers))
		task_yield();
	clock_sim_advance(1999);
	assert_int_equal(atomic_load(&s.ended), 0);
	clock_sim_advance(1);
	task_join(t);
	assert_int_equal(atomic_load(&s.ended), 1);

	/* One that is woken in time. */
	s.deadline_ns = 5000;
	atomic_store(&s.ended, 0);
	assert_int_equal(task_create(&t, "sleeper", sleep_to_deadline, &s), 0);
	atomic_store(&s.word, 1);
	waitq_wake_all(&s.wq);
	task_join(t);
	assert_int_equal(atomic_load(&s.ended), 0);
	clock_sim_stop();
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(no_wakeup_is_lost),
		cmocka_unit_test(early_wakeup_counts),
		cmocka_unit_test(deadline_passes),
		cmocka_unit_test(wake_one_serves_all_in_turn),
		cmocka_unit_test(simulated_deadline),
	};

	return cmocka_run_group_tests(tests, leak_setup, leak_check);
}

/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Goal: mutexes exclude, try_lock refuses what another task has, and test
 * builds abort on disorder. Method: two tasks add to a plain number; a second
 * task tries a mutex the first holds; disorder is done in a child.
 */
#include "lib/test.h"

#include "base/lock.h"
#include "base/task.h"
#include "base/wait.h"
#include "lib/death.h"

#define ROUNDS 20000

struct shared {
	struct mutex m;
	int plain;
	bool got;
};

static void adder(void *arg)
{
	struct shared *s = arg;
	int i;

	for (i = 0; i < ROUNDS; i++) {
		mutex_lock(&s->m);
		mutex_assert_held(&s->m);
		s->plain++;
		mutex_unlock(&s->m);
	}
	lock_assert_none();
}

static void mutex_excludes(void **state)
{
	struct shared s = { .plain = 0 };
	struct task *a, *b;

	mutex_init(&s.m, LOCK_INDEX);
	assert_int_equal(task_create(&a, "a", adder, &s), 0);
	assert_int_equal(task_create(&b, "b", adder, &s), 0);
	task_join(a);
	task_join(b);
	assert_int_equal(s.plain, 2 * ROUNDS);
	mutex_fini(&s.m);
}

static void trier(void *arg)
{
	struct shared *s = arg;

	s->got = mutex_try_lock(&s->m);
	if (s->got)
		mutex_unlock(&s->m);
}

static bool other_gets(struct shared *s)
{
	struct task *t;

	assert_int_equal(task_create(&t, "trier", trier, s), 0);
	task_join(t);
	return s->got;
}

static void try_lock_refuses(void **state)
{
	struct shared s;

	mutex_init(&s.m, LOCK_INDEX);
	mutex_lock(&s.m);
	assert_false(other_gets(&s));
	mutex_unlock(&s.m);
	assert_true(other_gets(&s));
	mutex_fini(&s.m);
}

/* Against the order, which a try may be. */
static void try_lock_has_no_order(void **state)
{
	struct mutex outer, inner;

	mutex_init(&outer, LOCK_CACHE);
	mutex_init(&inner, LOCK_LRU);
	mutex_lock(&inner);
	assert_true(mutex_try_lock(&outer));
	mutex_unlock(&outer);
	mutex_unlock(&inner);
	mutex_fini(&outer);
	mutex_fini(&inner);
}

static void lock_disorder(void *arg)
{
	struct mutex outer, inner;

	mutex_init(&outer, LOCK_CACHE);
	mutex_init(&inner, LOCK_LRU);
	mutex_lock(&inner);
	mutex_lock(&outer);
}

static void sleep_with_mutex(void *arg)
{
	struct waitq wq;
	struct mutex m;

	waitq_init(&wq);
	mutex_init(&m, LOCK_CACHE);
	mutex_lock(&m);
	waitq_sleep(&wq, waitq_prepare(&wq), 0);
}

static void disorder_aborts(void **state)
{
#ifdef TR_LOCK_CHECK
	assert_true(death_of(lock_disorder, NULL, "out of order"));
	assert_true(death_of(sleep_with_mutex, NULL, "no mutex may be held"));
#else
	(void)lock_disorder;
	(void)sleep_with_mutex;
	skip();
#endif
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(disorder_aborts),
		cmocka_unit_test(mutex_excludes),
		cmocka_unit_test(try_lock_refuses),
		cmocka_unit_test(try_lock_has_no_order),
	};

	return cmocka_run_group_tests(tests, leak_setup, leak_check);
}

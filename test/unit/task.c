/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Goal: a task runs its function, named, with all signals blocked, and failing
 * to make one leaves nothing. Method: the task looks at itself; every resource
 * that task_create() asks for is refused in turn.
 */
#include "lib/test.h"

#include <errno.h>
#include <pthread.h>
#include <signal.h>
#include <string.h>

#include "base/mem.h"
#include "base/task.h"

struct seen {
	char name[16];
	sigset_t blocked;
};

static void look(void *arg)
{
	struct seen *seen = arg;

	task_yield();
	pthread_getname_np(pthread_self(), seen->name, sizeof(seen->name));
	pthread_sigmask(SIG_SETMASK, NULL, &seen->blocked);
}

static void task_is_as_promised(void **state)
{
	struct seen seen;
	struct task *t;

	assert_int_equal(task_create(&t, "fifteen-bytes-n", look, &seen), 0);
	task_join(t);
	assert_string_equal(seen.name, "fifteen-bytes-n");
	assert_true(sigismember(&seen.blocked, SIGTERM));
	assert_true(sigismember(&seen.blocked, SIGUSR1));
	pthread_sigmask(SIG_SETMASK, NULL, &seen.blocked);
	assert_false(sigismember(&seen.blocked, SIGTERM));

	/* A longer name is cut. */
	assert_int_equal(task_create(&t, "sixteen-bytes-no", look, &seen), 0);
	task_join(t);
	assert_string_equal(seen.name, "sixteen-bytes-n");
}

static void failure_leaves_nothing(void **state)
{
	struct seen seen;
	struct task *t = NULL;
	int rc, nth;

	for (nth = 1;; nth++) {
		mem_fail_at((uint64_t)nth, false);
		rc = task_create(&t, "t", look, &seen);
		mem_fail_at(0, false);
		if (!rc)
			break;
		assert_true(rc == -ENOMEM || rc == -EAGAIN);
		assert_null(t);
	}
	assert_int_equal(nth, 3);
	task_join(t);
}

static void cpus_are_counted(void **state)
{
	assert_true(task_nr_cpus() >= 1);
	assert_int_equal(task_nr_cpus(), task_nr_cpus());
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(task_is_as_promised),
		cmocka_unit_test(failure_leaves_nothing),
		cmocka_unit_test(cpus_are_counted),
	};

	return cmocka_run_group_tests(tests, leak_setup, leak_check);
}

/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Goal: nobody returns before a sync that began after its change has ended;
 * concurrent callers share syncs; a failure reaches all whom it concerns.
 *
 * Method: tasks raise a number and sync; the sync copies the number, yields,
 * and publishes the copy. After its sync each task finds its own number
 * published. A second run fails every sync.
 */
#include "lib/test.h"

#include "base/task.h"
#include "fs/syncgroup.h"

#include <errno.h>
#include <stdatomic.h>
#include <stdbool.h>

#define TASKS 8
#define ROUNDS 500

struct world {
	struct syncgroup group;
	atomic_uint changed, durable, syncs, wrong;
	int error;
};

static int sync_world(void *arg)
{
	struct world *w = arg;
	unsigned seen = atomic_load(&w->changed);

	task_yield();
	atomic_fetch_add(&w->syncs, 1);
	/* Only one sync runs at a time, and numbers only grow. */
	if (seen < atomic_load(&w->durable))
		atomic_fetch_add(&w->wrong, 1);
	atomic_store(&w->durable, seen);
	return w->error;
}

static void change_and_sync(void *arg)
{
	struct world *w = arg;
	unsigned mine;
	int i;

	for (i = 0; i < ROUNDS; i++) {
		mine = atomic_fetch_add(&w->changed, 1) + 1;
		if (syncgroup_sync(&w->group, sync_world, w) != w->error)
			atomic_fetch_add(&w->wrong, 1);
		if (atomic_load(&w->durable) < mine)
			atomic_fetch_add(&w->wrong, 1);
	}
}

static void run(int error)
{
	struct world w = { .error = error };
	struct task *tasks[TASKS];
	int i;

	syncgroup_init(&w.group);
	for (i = 0; i < TASKS; i++)
		assert_int_equal(
			task_create(&tasks[i], "sync", change_and_sync, &w), 0);
	for (i = 0; i < TASKS; i++)
		task_join(tasks[i]);
	syncgroup_fini(&w.group);
	assert_int_equal(w.wrong, 0);
	assert_true(w.syncs <= TASKS * ROUNDS);
}

static void all_are_served(void **state)
{
	(void)state;
	run(0);
}

static void all_are_told(void **state)
{
	(void)state;
	run(-EIO);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(all_are_served),
		cmocka_unit_test(all_are_told),
	};
	return cmocka_run_group_tests(tests, leak_setup, leak_check);
}

/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * The race explorer: runs a test once per order in which its tasks can run.
 *
 * In the TR_EXPLORE build tasks are coroutines on one thread, and only at
 * scheduling points another may run: before a mutex is taken and after it is
 * released, at every operation on a wait queue, at task_yield() and at every
 * access through base/atomic.h. explore_run() first goes through all schedules
 * with at most `preemptions` switches away from a task that could have gone on,
 * then through random ones. Accesses between two points are one step: plain
 * data that is not guarded needs an explore_point() of the test's own to show
 * its races.
 *
 * Time is simulated and moves only when nothing else can run. A deadline may
 * therefore be late, never early.
 *
 * A test function must do the same whenever it gets the same schedule: no
 * chance, no real time, no addresses; and must end what it began: join its
 * tasks, free its memory. It fails by explore_assert(), by a deadlock, by never
 * ending, or by dying (assert, ASan); each prints the schedule and the command
 * that runs it again.
 *
 * Not thread-safe: one exploration at a time, on the thread that called it.
 */
#ifndef TR_BASE_EXPLORE_H
#define TR_BASE_EXPLORE_H

#include <stdbool.h>

#include "base/atomic.h" /* explore_point() */
#include "base/compiler.h"

/* Tasks alive at once, the test function and the RCU task included. */
#define EXPLORE_TASKS_MAX 32

/* Zero means the default of each. */
struct explore_options {
	unsigned preemptions; /* default 2 */
	uint64_t schedules_max; /* of the exhaustive part; 200000 */
	uint64_t random_nr; /* random schedules after it; 2000 */
	uint64_t seed; /* of the first of them; 1 */
	unsigned steps_max; /* scheduling points in one schedule; 20000 */
	/*
	 * An enum lock_rank: mutexes of it and inner ones are no scheduling
	 * points, for tests that are not about what they guard. 0: all are.
	 */
	unsigned inner_rank;
	bool one_seed; /* only the random schedule of seed */
	const char *replay; /* only this schedule, printing each step */
	bool quiet; /* print nothing: failure is expected */
};

struct explore_result {
	bool failed;
	bool complete; /* no schedule within preemptions is left out */
	uint64_t schedules; /* run by the exhaustive part */
	uint64_t random; /* and at random */
	char what[256]; /* the failure */
	char schedule[4096]; /* to be replayed; "" if longer */
};

/*
 * Explores fn(arg), which runs as the first task of each schedule. Returns 0
 * or, if a schedule failed, -EFAULT. result and options may be NULL.
 */
int explore_run(const char *name, void (*fn)(void *arg), void *arg,
		const struct explore_options *options,
		struct explore_result *result);

struct explore_test {
	const char *name;
	void (*fn)(void *arg);
	void *arg;
	struct explore_options options;
};

/*
 * main() of a race test:
 *
 *	PROGRAM [NAME]... [--replay STRING | --seed N] [--preemptions N]
 *		[--schedules N] [--random N]
 *
 * Returns the exit status.
 */
int explore_main(int argc, char **argv, const struct explore_test *tests,
		 size_t nr);

/* Ends the schedule as failed unless cond. */
#define explore_assert(cond)                                                   \
	((cond) ? (void)0 : explore_fail(#cond, __FILE__, __LINE__))
_Noreturn void explore_fail(const char *what, const char *file, int line);

/* While calm there are no decisions: nobody is preempted. For what comes before
 * and after the race. */
void explore_calm(bool calm);

#endif

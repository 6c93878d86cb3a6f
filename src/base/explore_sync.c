/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * base/lock.h, wait.h, task.h and clock.h on the explorer's coroutines.
 *
 * Each is the plain single-threaded form of what it says in its header, with a
 * scheduling point where another thread's action could make a difference. The
 * lock checks are always on.
 */
#include <errno.h>

#include "base/clock.h"
#include "base/explore.h"
#include "base/explore_sched.h"
#include "base/lock.h"
#include "base/mem.h"
#include "base/task.h"
#include "base/wait.h"

/* Calendar time of simulated time 0, as in clock.c. */
#define SIM_EPOCH_S 1000000000

/* A machine on which everything can happen at once. */
#define SIM_CPUS 2

void mutex_init(struct mutex *m, enum lock_rank rank)
{
	m->owner = NULL;
	m->rank = rank;
}

void mutex_fini(struct mutex *m)
{
	if (m->owner)
		sched_fail("mutex %p (%s) destroyed while locked", (void *)m,
			   lock_rank_name(m->rank));
}

void mutex_lock(struct mutex *m)
{
	held_check(held_self(), m);
	if (sched_is_point(m))
		sched_point("mutex_lock", m);
	while (m->owner)
		sched_block("mutex_lock", m, 0);
	m->owner = sched_self();
	held_push(held_self(), m);
}

bool mutex_try_lock(struct mutex *m)
{
	sched_point("mutex_try_lock", m);
	if (m->owner)
		return false;
	m->owner = sched_self();
	held_push(held_self(), m);
	return true;
}

void mutex_unlock(struct mutex *m)
{
	held_pop(held_self(), m);
	m->owner = NULL;
	sched_wake(m, EXPLORE_TASKS_MAX);
	/* What the caller does next it does without the mutex. */
	if (sched_is_point(m))
		sched_point("mutex_unlock", m);
}

void mutex_assert_held(const struct mutex *m)
{
	held_assert(held_self(), m);
}

void lock_assert_none(void)
{
	held_assert_none(held_self());
}

unsigned waitq_prepare(struct waitq *wq)
{
	sched_point("waitq_prepare", wq);
	atomic_fetch_add(&wq->sleepers, 1);
	return atomic_load(&wq->seq);
}

void waitq_cancel(struct waitq *wq)
{
	sched_point("waitq_cancel", wq);
	atomic_fetch_sub(&wq->sleepers, 1);
}

bool waitq_sleep(struct waitq *wq, unsigned seen, uint64_t deadline_ns)
{
	bool woken = true;

	lock_assert_none();
	sched_point("waitq_sleep", wq);
	if (atomic_load(&wq->seq) == seen)
		woken = (!deadline_ns || deadline_ns > sched_now()) &&
			sched_block("waitq_sleep", wq, deadline_ns);
	atomic_fetch_sub(&wq->sleepers, 1);
	return woken;
}

static void waitq_wake(struct waitq *wq, const char *op, unsigned nr)
{
	sched_point(op, wq);
	if (!atomic_load(&wq->sleepers))
		return;
	atomic_fetch_add(&wq->seq, 1);
	sched_wake(wq, nr);
}

void waitq_wake_all(struct waitq *wq)
{
	waitq_wake(wq, "waitq_wake_all", EXPLORE_TASKS_MAX);
}

void waitq_wake_one(struct waitq *wq)
{
	waitq_wake(wq, "waitq_wake_one", 1);
}

int task_create(struct task **out, const char *name, void (*fn)(void *arg),
		void *arg)
{
	struct task *t;

	if (!sched_active())
		sched_fail("task_create of %s", name);
	if (mem_should_fail())
		return -EAGAIN;
	t = sched_create(name, fn, arg);
	if (!t)
		return -EAGAIN;
	*out = t;
	sched_point("task_create", t);
	return 0;
}

void task_join(struct task *t)
{
	sched_point("task_join", t);
	while (t->state != TASK_DONE)
		sched_block("task_join", t, 0);
	sched_free(t);
}

void task_yield(void)
{
	sched_yield_to_others();
}

unsigned task_nr_cpus(void)
{
	return SIM_CPUS;
}

uint64_t clock_ns(void)
{
	return sched_now();
}

struct timespec clock_real(void)
{
	struct timespec ts = {
		.tv_sec = (time_t)(SIM_EPOCH_S + sched_now() / NS_PER_S),
		.tv_nsec = (long)(sched_now() % NS_PER_S),
	};

	return ts;
}

void clock_sleep(uint64_t ns)
{
	if (ns)
		sched_block("clock_sleep", NULL, sched_now() + ns);
	else
		task_yield();
}

/* Time is simulated anyhow; a test may set and move it. */
void clock_sim_start(uint64_t now_ns)
{
	sched_set_now(now_ns);
}

void clock_sim_advance(uint64_t ns)
{
	sched_set_now(sched_now() + ns);
}

void clock_sim_stop(void)
{
}

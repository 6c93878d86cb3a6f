/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * The kernel's clocks, or a simulated one.
 *
 * While simulated, time is a number that only clock_sim_advance() moves, and
 * whoever sleeps with a deadline stands in a list here. Moving the clock bumps
 * the wait queues of those whose deadline it reached; they look at the clock
 * again and see that it is time.
 *
 * Invariant: a sleeper is in the list exactly while inside sim_sleep_start()
 * .. sim_sleep_end(), so its wait queue is alive when it is bumped.
 */
#include "base/clock.h"

#include <errno.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdbool.h>

#include "base/sim.h"

/* Calendar time of simulated time 0: a fixed day, so that runs repeat. */
#define SIM_EPOCH_S 1000000000

static struct {
	atomic_bool on;
	atomic_uint_fast64_t now;
	pthread_mutex_t lock; /* sleepers, and changes of on and now */
	struct cds_list_head sleepers;
} sim = {
	.lock = PTHREAD_MUTEX_INITIALIZER,
	.sleepers = CDS_LIST_HEAD_INIT(sim.sleepers),
};

uint64_t clock_ns(void)
{
	struct timespec ts;

	if (unlikely(atomic_load_explicit(&sim.on, memory_order_acquire)))
		return atomic_load(&sim.now);
	clock_gettime(CLOCK_MONOTONIC, &ts);
	return (uint64_t)ts.tv_sec * NS_PER_S + (uint64_t)ts.tv_nsec;
}

struct timespec clock_real(void)
{
	struct timespec ts;
	uint64_t ns;

	if (unlikely(atomic_load_explicit(&sim.on, memory_order_acquire))) {
		ns = atomic_load(&sim.now);
		ts.tv_sec = (time_t)(SIM_EPOCH_S + ns / NS_PER_S);
		ts.tv_nsec = (long)(ns % NS_PER_S);
		return ts;
	}
	clock_gettime(CLOCK_REALTIME, &ts);
	return ts;
}

void clock_sleep(uint64_t ns)
{
	uint64_t until = clock_ns() + ns;
	struct waitq wq;

	waitq_init(&wq);
	(void)wait_event_until(&wq, clock_ns() >= until, until);
}

/* Wakes those whose deadline has come, or all. Holds sim.lock. */
static void sim_wake(bool all)
{
	uint64_t now = atomic_load(&sim.now);
	struct sim_sleeper *s;

	cds_list_for_each_entry (s, &sim.sleepers, list) {
		if (all || s->deadline_ns <= now)
			waitq_bump(s->wq);
	}
}

void clock_sim_start(uint64_t now_ns)
{
	pthread_mutex_lock(&sim.lock);
	atomic_store(&sim.now, now_ns);
	atomic_store(&sim.on, true);
	pthread_mutex_unlock(&sim.lock);
}

void clock_sim_advance(uint64_t ns)
{
	pthread_mutex_lock(&sim.lock);
	atomic_fetch_add(&sim.now, ns);
	sim_wake(false);
	pthread_mutex_unlock(&sim.lock);
}

void clock_sim_stop(void)
{
	pthread_mutex_lock(&sim.lock);
	atomic_store(&sim.on, false);
	sim_wake(true);
	pthread_mutex_unlock(&sim.lock);
}

int sim_sleep_start(struct sim_sleeper *s)
{
	int rc = 1;

	if (likely(!atomic_load_explicit(&sim.on, memory_order_acquire)))
		return -ENODEV;
	pthread_mutex_lock(&sim.lock);
	if (!atomic_load(&sim.on))
		rc = -ENODEV;
	else if (atomic_load(&sim.now) >= s->deadline_ns)
		rc = 0;
	else
		cds_list_add(&s->list, &sim.sleepers);
	pthread_mutex_unlock(&sim.lock);
	return rc;
}

void sim_sleep_end(struct sim_sleeper *s)
{
	pthread_mutex_lock(&sim.lock);
	cds_list_del(&s->list);
	pthread_mutex_unlock(&sim.lock);
}

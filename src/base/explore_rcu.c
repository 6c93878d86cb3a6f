/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * RCU in the explorer: callbacks run at the earliest moment they may.
 *
 * That is when no task is inside a read section, at once: the task that left
 * the last section, or called call_rcu() outside any, first runs the RCU task.
 * So whoever still uses what it read after its section meets freed memory in
 * the very schedule that lets it. A callback that has to wait for a mutex
 * leaves the RCU task blocked like any other.
 *
 * Invariant: a batch under way was queued before a moment without readers.
 */
#include "base/rcu.h"

#include "base/explore.h"
#include "base/explore_sched.h"

static struct {
	struct task *task; /* made by the first call_rcu() of a schedule */
	bool idle; /* it waits for work */
	unsigned readers; /* tasks inside a read section */
	struct rcu_head *head, **tail; /* queued, in order */
} rcu;

void explore_rcu_reset(void)
{
	rcu.task = NULL;
	rcu.idle = false;
	rcu.readers = 0;
	rcu.head = NULL;
	rcu.tail = &rcu.head;
}

static void rcu_batch(void)
{
	struct rcu_head *h = rcu.head, *next;

	rcu.head = NULL;
	rcu.tail = &rcu.head;
	for (; h; h = next) {
		next = h->next;
		h->func(h);
	}
}

static void rcu_main(void *arg UNUSED)
{
	for (;;) {
		while (rcu.head && !rcu.readers)
			rcu_batch();
		rcu.idle = true;
		/* Those of rcu_barrier() and synchronize_rcu(). */
		sched_wake(&rcu.readers, EXPLORE_TASKS_MAX);
		sched_block("rcu", &rcu, 0);
	}
}

/* Runs the callbacks if that is allowed now. */
static void rcu_kick(void)
{
	if (!rcu.head || rcu.readers || !rcu.idle)
		return;
	rcu.idle = false;
	sched_wake(&rcu, 1);
	sched_call(rcu.task);
}

void rcu_read_lock(void)
{
	if (!sched_self()->read_depth++)
		rcu.readers++;
}

void rcu_read_unlock(void)
{
	if (!sched_self()->read_depth)
		sched_fail("rcu_read_unlock outside a read section");
	if (--sched_self()->read_depth)
		return;
	if (!--rcu.readers)
		sched_wake(&rcu.readers, EXPLORE_TASKS_MAX);
	rcu_kick();
}

void call_rcu(struct rcu_head *head, void (*func)(struct rcu_head *head))
{
	if (!sched_active()) {
		/* Outside a schedule there is nobody who could read. */
		func(head);
		return;
	}
	head->next = NULL;
	head->func = func;
	*rcu.tail = head;
	rcu.tail = &head->next;
	if (!rcu.task) {
		rcu.task = sched_create("rcu", rcu_main, NULL);
		if (!rcu.task)
			sched_fail("no task left for rcu");
		rcu.task->daemon = true;
		sched_call(rcu.task);
		return;
	}
	rcu_kick();
}

void rcu_barrier(void)
{
	sched_point("rcu_barrier", &rcu);
	if (sched_self()->read_depth)
		sched_fail("rcu_barrier in a read section");
	while (rcu.task && (rcu.head || !rcu.idle))
		sched_block("rcu_barrier", &rcu.readers, 0);
}

void synchronize_rcu(void)
{
	sched_point("synchronize_rcu", &rcu);
	if (sched_self()->read_depth)
		sched_fail("synchronize_rcu in a read section");
	while (rcu.readers)
		sched_block("synchronize_rcu", &rcu.readers, 0);
}

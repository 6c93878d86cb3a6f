/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * Tasks on POSIX threads.
 *
 * Signals are blocked by the attribute the thread starts with, so none can
 * arrive between its start and a call of its own.
 */
#include "base/task.h"

#include <assert.h>
#include <errno.h>
#include <pthread.h>
#include <sched.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdio.h>

#include "base/mem.h"

struct task {
	pthread_t thread;
	void (*fn)(void *arg);
	void *arg;
	char name[16]; /* the kernel's limit */
};

static void *task_main(void *arg)
{
	struct task *t = arg;

	/* A task without its name in ps still does its work. */
	(void)pthread_setname_np(pthread_self(), t->name);
	t->fn(t->arg);
	return NULL;
}

int task_create(struct task **out, const char *name, void (*fn)(void *arg),
		void *arg)
{
	pthread_attr_t attr;
	sigset_t all;
	struct task *t;
	int rc;

	t = mem_zalloc(sizeof(*t));
	if (!t)
		return -ENOMEM;
	t->fn = fn;
	t->arg = arg;
	snprintf(t->name, sizeof(t->name), "%s", name);
	sigfillset(&all);
	rc = pthread_attr_init(&attr);
	if (rc)
		goto out_free;
	rc = pthread_attr_setsigmask_np(&attr, &all);
	if (!rc && mem_should_fail())
		rc = EAGAIN;
	if (!rc)
		rc = pthread_create(&t->thread, &attr, task_main, t);
	pthread_attr_destroy(&attr);
	if (rc)
		goto out_free;
	*out = t;
	return 0;
out_free:
	mem_free(t);
	return -rc;
}

void task_join(struct task *t)
{
	int rc = pthread_join(t->thread, NULL);

	assert(rc == 0);
	mem_free(t);
}

void task_yield(void)
{
	sched_yield();
}

unsigned task_nr_cpus(void)
{
	static atomic_uint nr;
	unsigned n = atomic_load_explicit(&nr, memory_order_relaxed);
	cpu_set_t set;

	if (n)
		return n;
	/* More CPUs than the set can tell are taken for as many as it can. */
	n = CPU_SETSIZE;
	if (!sched_getaffinity(0, sizeof(set), &set))
		n = (unsigned)CPU_COUNT(&set);
	atomic_store_explicit(&nr, n, memory_order_relaxed);
	return n;
}

/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * Threads, as the library makes them: named, all signals blocked, joined by
 * whoever made them. In the race explorer's build a task is a coroutine.
 */
#ifndef TR_BASE_TASK_H
#define TR_BASE_TASK_H

#include "base/compiler.h"

struct task;

/*
 * Starts fn(arg). name is at most 15 bytes and kept by the kernel for ps and
 * gdb. Returns 0, -EAGAIN or -ENOMEM.
 */
int task_create(struct task **out, const char *name, void (*fn)(void *arg),
		void *arg) MUST_CHECK;

/* Waits until the task has returned and frees it. */
void task_join(struct task *t);

/* Lets others run; a scheduling point of the explorer. */
void task_yield(void);

/* Number of CPUs this process may run on when first asked, at least 1. */
unsigned task_nr_cpus(void);

#endif

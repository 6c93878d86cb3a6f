/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * The explorer's scheduler: coroutines, and who runs next. Seen by the
 * explorer's own files only.
 */
#ifndef TR_BASE_EXPLORE_SCHED_H
#define TR_BASE_EXPLORE_SCHED_H

#include <stdbool.h>
#include <ucontext.h>

#include "base/compiler.h"
#include "base/held.h"

/*
 * FREE -> READY by task_create; READY <-> BLOCKED by sched_block and
 * sched_wake; READY -> DONE when its function returns; DONE -> FREE by
 * task_join.
 */
enum task_state { TASK_FREE, TASK_READY, TASK_BLOCKED, TASK_DONE };

struct task {
	ucontext_t context;
	void *stack;
	size_t stack_len;
	void *fake_stack; /* ASan's, while the task does not run */
	unsigned id;
	enum task_state state;
	bool daemon; /* the schedule may end without it */
	bool timed_out;
	const char *op; /* what it is about to do, or blocked in */
	const volatile void *on; /* and with what */
	uint64_t deadline_ns; /* 0: none */
	uint64_t since; /* when it blocked, for first come first served */
	unsigned read_depth; /* RCU read sections it is inside of */
	struct held held;
	void (*fn)(void *arg);
	void *arg;
	char name[16];
};

/*
 * Answers which of nr options (at least 2) comes next; 0 is the one without a
 * preemption. costly: any other is a preemption.
 */
typedef unsigned sched_choose_fn(unsigned nr, bool costly);

struct sched_params {
	sched_choose_fn *choose;
	unsigned steps_max;
	unsigned inner_rank; /* as in explore_options */
	bool verbose; /* prints each step to stderr */
};

/*
 * Runs one schedule from a fresh state. Returns NULL or what failed, valid
 * until the next call.
 */
const char *sched_run(const struct sched_params *p, void (*fn)(void *arg),
		      void *arg);

/* Ends the schedule as failed. */
_Noreturn void sched_fail(const char *fmt, ...) PRINTF(1, 2);

struct task *sched_self(void);

/* Whether a schedule runs; else the caller is alone and nothing is explored. */
bool sched_active(void);

/* Whether taking and releasing m are scheduling points. */
bool sched_is_point(const struct mutex *m);

/* Another task may run. */
void sched_point(const char *op, const volatile void *on);

/* Another task runs if any can. */
void sched_yield_to_others(void);

/*
 * Blocks until sched_wake(on) or, if deadline_ns is not 0, until that time.
 * Returns false on the latter.
 */
bool sched_block(const char *op, const volatile void *on, uint64_t deadline_ns);

/* Makes ready up to nr tasks blocked on `on`, in the order they came. */
void sched_wake(const volatile void *on, unsigned nr);

/* NULL if EXPLORE_TASKS_MAX are alive. */
struct task *sched_create(const char *name, void (*fn)(void *arg), void *arg);
void sched_free(struct task *t);

/*
 * Runs t until it blocks, then goes on with the caller; no decision. For what
 * must happen now, by another task.
 */
void sched_call(struct task *t);

uint64_t sched_now(void);
void sched_set_now(uint64_t now_ns);

/* explore_rcu.c: forgets what an earlier schedule left. */
void explore_rcu_reset(void);

#endif

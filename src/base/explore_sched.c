/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * Coroutines on one thread, and the decision which of them runs next.
 *
 * A schedule begins in sched_run(), on the caller's stack (the base), with one
 * task. Every decision is made by the running task, which then switches to the
 * chosen one directly; the base comes back when all tasks are done or one
 * failed. Tasks of a failed schedule are abandoned where they stand, their
 * stacks used again.
 *
 * The order of the options at a decision is fixed, so that a schedule is the
 * list of the numbers chosen: first what costs no preemption (the running task
 * at a point, the next one when it yields), then the others, round from the
 * running task. When the running task cannot go on no option costs anything.
 * Time moves to the next deadline only when nothing is ready.
 *
 * Invariant: sched.cur is the task whose stack we are on; it is READY except
 * inside sched_block() and at its end.
 */
#include "base/explore_sched.h"

#include <assert.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

#include "base/clock.h"
#include "base/explore.h"
#include "base/lock.h"

#ifdef __has_feature
#if __has_feature(address_sanitizer)
#define __SANITIZE_ADDRESS__ 1
#endif
#endif
#ifdef __SANITIZE_ADDRESS__
#include <sanitizer/asan_interface.h>
#include <sanitizer/common_interface_defs.h>
#else
#define __sanitizer_start_switch_fiber(save, bottom, len) ((void)0)
#define __sanitizer_finish_switch_fiber(save, bottom, len) ((void)0)
#define ASAN_UNPOISON_MEMORY_REGION(addr, len) ((void)0)
#endif

/*
 * Under ASan frames are large, and each switch clears the shadow of a stack,
 * by a costly mapping from 512 KiB on. Pages never touched cost nothing.
 */
#define STACK_LEN (192u << 10)
#define STACK_GUARD 4096u

static struct {
	struct task base;
	struct task tasks[EXPLORE_TASKS_MAX];
	unsigned nr; /* tasks of this schedule lie in tasks[0..nr) */
	struct task *cur;
	struct task *back; /* whom sched_call() goes back to */
	struct sched_params params;
	unsigned steps;
	bool calm; /* no decisions */
	uint64_t now;
	uint64_t blocks; /* blockings so far: the next one's since */
	bool failed;
	char what[256];
} sched = { .cur = &sched.base };

struct task *sched_self(void)
{
	return sched.cur;
}

bool sched_active(void)
{
	return sched.cur != &sched.base;
}

struct held *held_self(void)
{
	return &sched.cur->held;
}

uint64_t sched_now(void)
{
	return sched.now;
}

/* Goes on with next; returns when the caller's task is switched to again. */
static void coroutine_switch(struct task *next, bool last)
{
	struct task *prev = sched.cur;

	sched.cur = next;
	__sanitizer_start_switch_fiber(last ? NULL : &prev->fake_stack,
				       next->stack, next->stack_len);
	if (swapcontext(&prev->context, &next->context))
		abort();
	__sanitizer_finish_switch_fiber(prev->fake_stack, NULL, NULL);
}

_Noreturn static void schedule_end(void)
{
	coroutine_switch(&sched.base, true);
	abort();
}

void sched_fail(const char *fmt, ...)
{
	va_list ap;

	va_start(ap, fmt);
	vsnprintf(sched.what, sizeof(sched.what), fmt, ap);
	va_end(ap);
	if (!sched_active()) {
		fprintf(stderr, "explore: %s, outside a schedule\n",
			sched.what);
		abort();
	}
	sched.failed = true;
	schedule_end();
}

void explore_fail(const char *what, const char *file, int line)
{
	sched_fail("%s:%d: %s: false in task %s", file, line, what,
		   sched.cur->name);
}

/* What everybody waits for, in one line. */
static void blocked_print(char *buf, size_t len)
{
	const struct task *t;
	size_t n = 0;

	buf[0] = 0;
	for (t = sched.tasks; t < sched.tasks + sched.nr; t++)
		if (t->state == TASK_BLOCKED && !t->daemon && n < len)
			n += (size_t)snprintf(buf + n, len - n, " %s(%s %p)",
					      t->name, t->op,
					      (const void *)t->on);
}

_Noreturn static void deadlock(void)
{
	char text[200];

	blocked_print(text, sizeof(text));
	sched_fail("deadlock:%s", text);
}

/* A loop, or a deadlock beside a task that wakes by its deadlines. */
_Noreturn static void endless(void)
{
	char text[150];

	blocked_print(text, sizeof(text));
	sched_fail("no end after %u steps; running: %s in %s; blocked:%s",
		   sched.params.steps_max, sched.cur->name, sched.cur->op,
		   text);
}

static void task_ready(struct task *t, bool timed_out)
{
	t->state = TASK_READY;
	t->timed_out = timed_out;
	t->deadline_ns = 0;
}

void sched_set_now(uint64_t now_ns)
{
	struct task *t;

	sched.now = now_ns;
	for (t = sched.tasks; t < sched.tasks + sched.nr; t++)
		if (t->state == TASK_BLOCKED && t->deadline_ns &&
		    t->deadline_ns <= now_ns)
			task_ready(t, true);
}

/* Moves time to the next deadline; false if there is none. */
static bool time_advance(void)
{
	const struct task *t;
	uint64_t next = 0;

	for (t = sched.tasks; t < sched.tasks + sched.nr; t++)
		if (t->state == TASK_BLOCKED && t->deadline_ns &&
		    (!next || t->deadline_ns < next))
			next = t->deadline_ns;
	if (next)
		sched_set_now(max_of(next, sched.now));
	return next != 0;
}

/* The ready tasks but the running one, round from it. */
static unsigned others(struct task **options, unsigned nr)
{
	unsigned i, id = sched.cur->id;
	struct task *t;

	for (i = 1; i < sched.nr; i++) {
		if (++id == sched.nr)
			id = 0;
		t = &sched.tasks[id];
		if (t->state == TASK_READY)
			options[nr++] = t;
	}
	return nr;
}

static void step(const char *op, const volatile void *on)
{
	struct task *t = sched.cur;

	t->op = op;
	t->on = on;
	if (sched.params.verbose)
		fprintf(stderr, "%6u  %-15s  %s %p\n", sched.steps, t->name, op,
			(const void *)on);
	if (++sched.steps > sched.params.steps_max)
		endless();
}

static unsigned decide(unsigned nr, bool costly)
{
	unsigned i = 0;

	if (nr > 1 && !sched.calm)
		i = sched.params.choose(nr, costly);
	assert(i < nr);
	return i;
}

static void choose(struct task **options, unsigned nr, bool costly)
{
	unsigned i = decide(nr, costly);

	if (options[i] != sched.cur)
		coroutine_switch(options[i], false);
}

void sched_point(const char *op, const volatile void *on)
{
	struct task *options[EXPLORE_TASKS_MAX];

	if (!sched_active())
		return;
	step(op, on);
	if (sched.back)
		return;
	options[0] = sched.cur;
	choose(options, others(options, 1), true);
}

void explore_point(const volatile void *addr)
{
	sched_point("atomic", addr);
}

void explore_calm(bool calm)
{
	sched.calm = calm;
}

bool sched_is_point(const struct mutex *m)
{
	return !sched.params.inner_rank || m->rank < sched.params.inner_rank;
}

void sched_yield_to_others(void)
{
	struct task *options[EXPLORE_TASKS_MAX];
	unsigned nr;

	if (!sched_active())
		return;
	step("yield", NULL);
	if (sched.back)
		return;
	nr = others(options, 0);
	/* Whoever yields in a loop may wait for a sleeper. */
	if (!nr && time_advance())
		nr = others(options, 0);
	/* Not to yield after all costs as much as a preemption: a loop that
	 * yields until something happens has finitely many schedules. */
	options[nr++] = sched.cur;
	choose(options, nr, true);
}

/* Goes on with anyone else; the running task is blocked or done. */
static void leave(bool last)
{
	struct task *options[EXPLORE_TASKS_MAX], *back = sched.back;
	unsigned i, nr;

	if (back) {
		sched.back = NULL;
		coroutine_switch(back, last);
		return;
	}
	nr = others(options, 0);
	if (!nr && time_advance()) {
		/* It may be the running task's own deadline. */
		if (sched.cur->state == TASK_READY)
			options[nr++] = sched.cur;
		nr = others(options, nr);
	}
	if (!nr) {
		for (i = 0; i < sched.nr; i++)
			if (sched.tasks[i].state == TASK_BLOCKED &&
			    !sched.tasks[i].daemon)
				deadlock();
		schedule_end();
	}
	i = decide(nr, false);
	if (options[i] != sched.cur)
		coroutine_switch(options[i], last);
}

bool sched_block(const char *op, const volatile void *on, uint64_t deadline_ns)
{
	struct task *t = sched.cur;

	if (!sched_active())
		sched_fail("%s would block", op);
	step(op, on);
	t->state = TASK_BLOCKED;
	t->deadline_ns = deadline_ns;
	t->since = sched.blocks++;
	leave(false);
	return !t->timed_out;
}

void sched_wake(const volatile void *on, unsigned nr)
{
	struct task *t, *first;

	for (; nr; nr--) {
		first = NULL;
		for (t = sched.tasks; t < sched.tasks + sched.nr; t++)
			if (t->state == TASK_BLOCKED && t->on == on &&
			    (!first || t->since < first->since))
				first = t;
		if (!first)
			return;
		task_ready(first, false);
	}
}

void sched_call(struct task *t)
{
	assert(sched_active() && !sched.back);
	sched.back = sched.cur;
	coroutine_switch(t, false);
}

static void task_main(void)
{
	struct task *t = sched.cur;

	/* Only the first task comes from the base, whose stack we learn. */
	if (t->id)
		__sanitizer_finish_switch_fiber(NULL, NULL, NULL);
	else
		__sanitizer_finish_switch_fiber(
			NULL, (const void **)&sched.base.stack,
			&sched.base.stack_len);
	t->fn(t->arg);
	if (t->held.nr)
		sched_fail("task %s ended holding a mutex", t->name);
	if (t->read_depth)
		sched_fail("task %s ended in a read section", t->name);
	step("end", t);
	t->state = TASK_DONE;
	sched_wake(t, EXPLORE_TASKS_MAX);
	leave(true);
	abort();
}

static void stack_alloc(struct task *t)
{
	char *p = mmap(NULL, STACK_LEN + STACK_GUARD, PROT_READ | PROT_WRITE,
		       MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);

	if (p == MAP_FAILED || mprotect(p, STACK_GUARD, PROT_NONE))
		abort();
	t->stack = p + STACK_GUARD;
	t->stack_len = STACK_LEN;
}

/* Apart because getcontext() is one that might return twice. */
static NOINLINE void context_init(struct task *t)
{
	getcontext(&t->context);
	t->context.uc_stack.ss_sp = t->stack;
	t->context.uc_stack.ss_size = t->stack_len;
	t->context.uc_link = NULL;
	makecontext(&t->context, task_main, 0);
}

struct task *sched_create(const char *name, void (*fn)(void *arg), void *arg)
{
	struct task *t;

	for (t = sched.tasks; t->state != TASK_FREE; t++)
		if (t == sched.tasks + EXPLORE_TASKS_MAX - 1)
			return NULL;
	if (!t->stack)
		stack_alloc(t);
	t->id = (unsigned)(t - sched.tasks);
	sched.nr = max_of(sched.nr, t->id + 1);
	t->state = TASK_READY;
	t->daemon = false;
	t->fake_stack = NULL;
	t->read_depth = 0;
	t->held.nr = 0;
	t->deadline_ns = 0;
	t->fn = fn;
	t->arg = arg;
	snprintf(t->name, sizeof(t->name), "%s", name);
	ASAN_UNPOISON_MEMORY_REGION(t->stack, t->stack_len);
	context_init(t);
	return t;
}

void sched_free(struct task *t)
{
	assert(t->state == TASK_DONE);
	t->state = TASK_FREE;
}

const char *sched_run(const struct sched_params *p, void (*fn)(void *arg),
		      void *arg)
{
	struct task *t;
	unsigned i;

	assert(!sched_active());
	for (i = 0; i < EXPLORE_TASKS_MAX; i++)
		sched.tasks[i].state = TASK_FREE;
	explore_rcu_reset();
	sched.params = *p;
	sched.nr = 0;
	sched.steps = 0;
	sched.calm = false;
	sched.now = NS_PER_S;
	sched.blocks = 0;
	sched.back = NULL;
	sched.failed = false;
	t = sched_create("main", fn, arg);
	coroutine_switch(t, false);
	if (sched.failed)
		return sched.what;
	for (i = 1; i < sched.nr; i++) {
		t = &sched.tasks[i];
		if (t->state == TASK_DONE) {
			snprintf(sched.what, sizeof(sched.what),
				 "task %s was never joined", t->name);
			return sched.what;
		}
	}
	return NULL;
}

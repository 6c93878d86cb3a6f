/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Goal: the folio lock excludes, and nobody who waits for a folio's state
 * sleeps for ever, however clearing, waiting and locking fall together.
 * Method: a bare folio; tasks that lock it, wait for bits or clear them. A lost
 * wake-up is a deadlock, which the explorer reports.
 */
#include "base/explore.h"
#include "base/task.h"
#include "folio/state.h"

struct shared {
	struct folio folio;
	int inside;
	int entered;
};

static struct task *start(const char *name, void (*fn)(void *arg), void *arg)
{
	struct task *t = NULL;

	explore_assert(task_create(&t, name, fn, arg) == 0);
	return t;
}

static void locker(void *arg)
{
	struct shared *s = arg;

	folio_lock(&s->folio);
	explore_assert(s->inside++ == 0);
	explore_point(&s->inside);
	s->entered++;
	s->inside--;
	folio_unlock(&s->folio);
}

static void trier(void *arg)
{
	struct shared *s = arg;

	if (!folio_try_lock(&s->folio))
		return;
	explore_assert(s->inside == 0);
	explore_point(&s->inside);
	explore_assert(s->inside == 0);
	folio_unlock(&s->folio);
}

static void lock_excludes(void *arg UNUSED)
{
	struct shared s = { .entered = 0 };
	struct task *a = start("a", locker, &s), *b = start("b", locker, &s);
	struct task *c = start("c", trier, &s);

	task_join(a);
	task_join(b);
	task_join(c);
	explore_assert(s.entered == 2);
	explore_assert(!folio_test(&s.folio, FOLIO_LOCKED));
}

static void waiter(void *arg)
{
	struct shared *s = arg;

	folio_wait(&s->folio, FOLIO_WRITEBACK);
	explore_assert(!folio_test(&s->folio, FOLIO_WRITEBACK));
}

/* As writeback ends, by a task that holds no lock. */
static void ender(void *arg)
{
	struct shared *s = arg;

	folio_clear_wake(&s->folio, FOLIO_WRITEBACK);
}

static void waiters_wake(void *arg UNUSED)
{
	struct shared s = { .entered = 0 };
	struct task *a, *b, *c;

	atomic_init(&s.folio.state, FOLIO_WRITEBACK);
	a = start("lock", locker, &s);
	b = start("wait", waiter, &s);
	c = start("end", ender, &s);
	task_join(a);
	task_join(b);
	task_join(c);
	explore_assert(!folio_test(&s.folio, FOLIO_WRITEBACK | FOLIO_LOCKED));
}

int main(int argc, char **argv)
{
	const struct explore_test tests[] = {
		{ .name = "lock_excludes", .fn = lock_excludes },
		{ .name = "waiters_wake", .fn = waiters_wake },
	};

	return explore_main(argc, argv, tests, ARRAY_SIZE(tests));
}

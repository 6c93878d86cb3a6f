/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * The race explorer tried on races that are known.
 *
 * Goal: within two preemptions it finds a lost update, a lost wake-up, an ABBA
 * deadlock, a use after a read section and a timeout race, and it passes the
 * corrected form of each, having seen all schedules. What it found it finds
 * again by the schedule it printed.
 * Method: each race is a small test function in a wrong and a right form; the
 * exploration of the wrong one must fail, that of the right one must be
 * complete. Counts of schedules and orders known by hand show that none is left
 * out.
 */
#include <assert.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/atomic.h"
#include "base/clock.h"
#include "base/explore.h"
#include "base/lock.h"
#include "base/rcu.h"
#include "base/task.h"
#include "base/wait.h"
#include "lib/death.h"

/* What the tasks of one schedule share. */
struct shared {
	bool right; /* the corrected form */
	struct mutex lock;
	struct waitq wq;
	atomic_uint word;
	int plain;
	struct object *object;
};

static void shared_init(struct shared *s, const bool *right)
{
	memset(s, 0, sizeof(*s));
	s->right = *right;
	mutex_init(&s->lock, LOCK_INDEX);
	waitq_init(&s->wq);
}

static void shared_fini(struct shared *s)
{
	mutex_fini(&s->lock);
}

static struct task *start(const char *name, void (*fn)(void *arg),
			  struct shared *s)
{
	struct task *t = NULL;

	explore_assert(task_create(&t, name, fn, s) == 0);
	return t;
}

static void run_two(struct shared *s, void (*one)(void *arg),
		    void (*two)(void *arg))
{
	struct task *t1 = start("one", one, s), *t2 = start("two", two, s);

	task_join(t1);
	task_join(t2);
}

/* Lost update: load and store against one addition. */
static void update_task(void *arg)
{
	struct shared *s = arg;
	unsigned v = state_load(&s->word);

	if (!s->right)
		state_store(&s->word, v + 1);
	else
		while (!state_cas(&s->word, &v, v + 1))
			;
}

static void update_test(void *right)
{
	struct shared s;

	shared_init(&s, right);
	run_two(&s, update_task, update_task);
	explore_assert(state_load(&s.word) == 2);
	shared_fini(&s);
}

/* The same with plain data, by a mutex dropped in between. */
static void section_task(void *arg)
{
	struct shared *s = arg;
	int v;

	mutex_lock(&s->lock);
	v = s->plain;
	if (!s->right) {
		mutex_unlock(&s->lock);
		mutex_lock(&s->lock);
	}
	s->plain = v + 1;
	mutex_unlock(&s->lock);
}

static void section_test(void *right)
{
	struct shared s;

	shared_init(&s, right);
	run_two(&s, section_task, section_task);
	explore_assert(s.plain == 2);
	shared_fini(&s);
}

/* Lost wake-up: the condition is not tested after registering. */
static void wakeup_sleeper(void *arg)
{
	struct shared *s = arg;

	if (s->right)
		wait_event(&s->wq, state_load(&s->word));
	else if (!state_load(&s->word))
		waitq_sleep(&s->wq, waitq_prepare(&s->wq), 0);
}

static void wakeup_waker(void *arg)
{
	struct shared *s = arg;

	state_store(&s->word, 1);
	waitq_wake_all(&s->wq);
}

static void wakeup_test(void *right)
{
	struct shared s;

	shared_init(&s, right);
	run_two(&s, wakeup_sleeper, wakeup_waker);
	shared_fini(&s);
}

/* ABBA, of bit locks: mutexes have ranks that abort before any deadlock. */
enum { BIT_A = 1, BIT_B = 2 };

static void bit_lock(struct shared *s, unsigned bit)
{
	wait_event(&s->wq, !(state_or(&s->word, bit) & bit));
}

static void bit_unlock(struct shared *s, unsigned bit)
{
	state_and(&s->word, ~bit);
	waitq_wake_all(&s->wq);
}

static void abba_lock_both(struct shared *s, unsigned first, unsigned second)
{
	bit_lock(s, first);
	bit_lock(s, second);
	s->plain++;
	bit_unlock(s, second);
	bit_unlock(s, first);
}

static void abba_in_order(void *arg)
{
	abba_lock_both(arg, BIT_A, BIT_B);
}

static void abba_against(void *arg)
{
	struct shared *s = arg;

	if (s->right)
		abba_lock_both(s, BIT_A, BIT_B);
	else
		abba_lock_both(s, BIT_B, BIT_A);
}

static void abba_test(void *right)
{
	struct shared s;

	shared_init(&s, right);
	run_two(&s, abba_in_order, abba_against);
	explore_assert(s.plain == 2);
	shared_fini(&s);
}

/* RCU: the object is used after the end of the section. */
struct object {
	struct rcu_head rcu;
	bool freed;
};

static void object_free(struct rcu_head *head)
{
	container_of(head, struct object, rcu)->freed = true;
}

static void rcu_reader(void *arg)
{
	struct shared *s = arg;
	struct object *o;

	rcu_read_lock();
	explore_point(&s->object);
	o = rcu_dereference(s->object);
	if (!s->right)
		rcu_read_unlock();
	explore_point(o);
	explore_assert(!o || !o->freed);
	if (s->right)
		rcu_read_unlock();
}

static void rcu_writer(void *arg)
{
	struct shared *s = arg;
	struct object *o = s->object;

	explore_point(&s->object);
	rcu_assign_pointer(s->object, NULL);
	call_rcu(&o->rcu, object_free);
}

static void rcu_test(void *right)
{
	struct object o = { .freed = false };
	struct shared s;

	shared_init(&s, right);
	s.object = &o;
	run_two(&s, rcu_reader, rcu_writer);
	rcu_barrier();
	explore_assert(o.freed);
	shared_fini(&s);
}

/* Deadlines: nobody wakes; time moves, and only when all are asleep. */
static void deadline_sleeper(void *arg)
{
	struct shared *s = arg;
	uint64_t until = clock_ns() + NS_PER_MS;

	if (wait_event_until(&s->wq, state_load(&s->word), until))
		return;
	explore_assert(clock_ns() >= until);
	/* Wrong: to believe that what did not come will not come. */
	explore_assert(s->right || !state_load(&s->word));
}

static void deadline_waker(void *arg)
{
	struct shared *s = arg;

	clock_sleep(NS_PER_MS);
	state_store(&s->word, 1);
	waitq_wake_one(&s->wq);
}

static void deadline_test(void *right)
{
	uint64_t start_ns = clock_ns();
	struct shared s;

	shared_init(&s, right);
	run_two(&s, deadline_sleeper, deadline_waker);
	explore_assert(clock_ns() == start_ns + NS_PER_MS);
	shared_fini(&s);
}

/* A loop that yields ends; one that does not is found. */
static void spin_task(void *arg)
{
	struct shared *s = arg;

	while (!state_load(&s->word))
		if (s->right)
			task_yield();
}

static void spin_test(void *right)
{
	struct shared s;

	shared_init(&s, right);
	run_two(&s, spin_task, wakeup_waker);
	shared_fini(&s);
}

static const struct {
	const char *name;
	void (*fn)(void *right);
	const char *what; /* in the wrong form's message */
} races[] = {
	{ "update", update_test, "state_load(&s.word) == 2" },
	{ "section", section_test, "s.plain == 2" },
	{ "wakeup", wakeup_test, "deadlock:" },
	{ "abba", abba_test, "deadlock:" },
	{ "rcu", rcu_test, "freed" },
	{ "deadline", deadline_test, "state_load(&s->word)" },
	{ "spin", spin_test, "no end after" },
};

static void check_wrong(const char *name, void (*fn)(void *right),
			const char *what)
{
	struct explore_options quiet = { .quiet = true, .random_nr = 1 };
	struct explore_result found, again;
	bool right = false;

	assert(explore_run(name, fn, &right, &quiet, &found));
	printf("%s: found after %llu schedules: %s; %s\n", name,
	       (unsigned long long)found.schedules, found.what, found.schedule);
	assert(found.failed && strstr(found.what, what));

	quiet.replay = found.schedule;
	assert(explore_run(name, fn, &right, &quiet, &again));
	assert(!strcmp(again.schedule, found.schedule));
	assert(strstr(again.what, what));
}

static void check_random(const char *name, void (*fn)(void *right))
{
	struct explore_options o = { .quiet = true,
				     .schedules_max = 1,
				     .random_nr = 10000 };
	struct explore_result found, again;
	bool right = false;

	assert(explore_run(name, fn, &right, &o, &found));
	if (!found.random)
		return;
	o.seed = found.random;
	o.one_seed = true;
	assert(explore_run(name, fn, &right, &o, &again));
	assert(!strcmp(again.what, found.what));
}

static void check_right(const char *name, void (*fn)(void *right))
{
	struct explore_result r;
	uint64_t begin, ns;
	struct timespec ts;
	bool right = true;

	clock_gettime(CLOCK_MONOTONIC, &ts);
	begin = (uint64_t)ts.tv_sec * NS_PER_S + (uint64_t)ts.tv_nsec;
	assert(!explore_run(name, fn, &right, NULL, &r));
	clock_gettime(CLOCK_MONOTONIC, &ts);
	ns = (uint64_t)ts.tv_sec * NS_PER_S + (uint64_t)ts.tv_nsec - begin;
	printf("%s: passed %llu schedules, %.0f/s\n", name,
	       (unsigned long long)(r.schedules + r.random),
	       (double)(r.schedules + r.random) * 1e9 / (double)ns);
	assert(r.complete);
}

/* All orders of two tasks that do ORDER_STEPS things each. */
#define ORDER_STEPS 3
#define ORDERS 20 /* 6 over 3 */

struct orders {
	char done[2 * ORDER_STEPS + 1]; /* in this schedule */
	char seen[ORDERS][2 * ORDER_STEPS + 1];
	unsigned nr_seen;
	unsigned runs;
};

struct order_task {
	struct orders *o;
	char letter;
};

static void order_task(void *arg)
{
	struct order_task *t = arg;
	int i;

	for (i = 0; i < ORDER_STEPS; i++) {
		explore_point(t->o);
		strncat(t->o->done, &t->letter, 1);
	}
}

static void order_test(void *arg)
{
	struct orders *o = arg;
	struct order_task a = { o, 'a' }, b = { o, 'b' };
	struct task *ta = NULL, *tb = NULL;
	unsigned i;

	o->runs++;
	o->done[0] = 0;
	explore_assert(task_create(&ta, "a", order_task, &a) == 0);
	explore_assert(task_create(&tb, "b", order_task, &b) == 0);
	task_join(ta);
	task_join(tb);
	for (i = 0; i < o->nr_seen; i++)
		if (!strcmp(o->seen[i], o->done))
			return;
	explore_assert(o->nr_seen < ORDERS);
	strcpy(o->seen[o->nr_seen++], o->done);
}

static void check_orders(void)
{
	struct explore_options o = { .preemptions = 255, .random_nr = 1 };
	struct orders all = { .nr_seen = 0 };
	struct explore_result r;

	assert(!explore_run("orders", order_test, &all, &o, &r));
	assert(r.complete && all.nr_seen == ORDERS);
	assert(all.runs == r.schedules + r.random);

	/* With one preemption: aaabbb and bbbaaa, a's 2 (aabbba and abbbaa)
	 * and b's 2; main's own points only decide who is first. */
	memset(&all, 0, sizeof(all));
	o.preemptions = 1;
	assert(!explore_run("orders", order_test, &all, &o, &r));
	assert(r.complete && all.nr_seen == 6);
	printf("orders: %llu schedules with one preemption\n",
	       (unsigned long long)r.schedules);
}

/* One task, by hand: it runs at its creation, at the join, or after it. */
static void count_task(void *arg)
{
	(void)arg;
}

static void count_test(void *arg)
{
	struct task *t = NULL;

	explore_assert(task_create(&t, "one", count_task, NULL) == 0);
	task_join(t);
}

static void check_count(void)
{
	struct explore_options o = { .random_nr = 1 };
	struct explore_result r;

	assert(!explore_run("count", count_test, NULL, &o, &r));
	assert(r.complete && r.schedules == 3);
}

/* What ends the process still names the schedule. */
static void rank_test(void *right)
{
	struct mutex outer;
	struct shared s;

	shared_init(&s, right);
	mutex_init(&outer, LOCK_CACHE);
	mutex_lock(&s.lock);
	mutex_lock(&outer);
}

static void dying_child(void *arg)
{
	bool right = false;

	explore_run("rank", rank_test, &right, NULL, NULL);
}

static void check_death(void)
{
	assert(death_of(dying_child, NULL, "rank --replay -"));
	assert(death_of(dying_child, NULL, "out of order (cache"));
}

/* The command line: which tests, which schedules. */
static int run_main(char *first, char *second, char *third)
{
	static bool right = true, wrong;
	const struct explore_test tests[] = {
		{ "right", update_test, &right, { .quiet = true } },
		{ "wrong", update_test, &wrong, { .quiet = true } },
	};
	char *argv[] = { "race", first, second, third, NULL };
	int argc = 1;

	while (argv[argc])
		argc++;
	return explore_main(argc, argv, tests, ARRAY_SIZE(tests));
}

static void check_main(void)
{
	assert(run_main(NULL, NULL, NULL) == EXIT_FAILURE);
	assert(run_main("right", NULL, NULL) == EXIT_SUCCESS);
	assert(run_main("wrong", NULL, NULL) == EXIT_FAILURE);
	assert(run_main("wrong", "--replay", "5.1") == EXIT_FAILURE);
	assert(run_main("wrong", "--replay", "-") == EXIT_SUCCESS);
	assert(run_main("right", "--seed", "5") == EXIT_SUCCESS);
	assert(run_main("right", "--bad", "5") == EXIT_FAILURE);
	assert(run_main("neither", NULL, NULL) == EXIT_FAILURE);
}

/* A test that depends on more than the schedule is told so. */
static void unlike_test(void *arg)
{
	unsigned *runs = arg;

	if ((*runs)++ % 2)
		count_test(NULL);
	count_test(NULL);
}

static void check_unlike(void)
{
	struct explore_options o = { .quiet = true };
	struct explore_result r;
	unsigned runs = 0;

	assert(explore_run("unlike", unlike_test, &runs, &o, &r));
	assert(strstr(r.what, "more than the schedule"));
}

int main(void)
{
	size_t i;

	check_count();
	check_orders();
	check_death();
	check_unlike();
	check_main();
	for (i = 0; i < ARRAY_SIZE(races); i++) {
		check_wrong(races[i].name, races[i].fn, races[i].what);
		check_random(races[i].name, races[i].fn);
		check_right(races[i].name, races[i].fn);
	}
	return EXIT_SUCCESS;
}

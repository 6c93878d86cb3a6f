/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * Which schedules are run: depth first, at random, or one again.
 *
 * A schedule is the list of choices the scheduler asked for. Depth first means
 * to follow the list of the last schedule up to its last choice that has an
 * alternative within the allowed preemptions, take that, and choose 0 from
 * there on; when no choice has one, all schedules have been seen. The schedules
 * are not stored, only the current list.
 *
 * Written down, a schedule is the choices that are not 0, as POSITION.CHOICE
 * joined by commas, or "-" if there is none. After a failure the schedule is
 * run once more, printing each step. If the process dies instead, a signal
 * handler (or ASan's) prints the schedule before it goes.
 *
 * Invariant: path[0..at) are the choices made so far in this schedule, and
 * used counts the preemptions among them.
 */
#include "base/explore.h"

#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/explore_sched.h"
#include "base/rng.h"

#ifdef __has_feature
#if __has_feature(address_sanitizer)
#define __SANITIZE_ADDRESS__ 1
#endif
#endif
#ifdef __SANITIZE_ADDRESS__
#include <sanitizer/common_interface_defs.h>
#endif

struct choice {
	uint8_t picked;
	uint8_t nr;
	bool costly;
	uint8_t used; /* preemptions before it */
};

enum explore_mode { MODE_DEPTH_FIRST, MODE_RANDOM, MODE_REPLAY };

static struct {
	const char *name;
	struct explore_options o;
	enum explore_mode mode;
	struct choice *path;
	size_t at, fixed, cap; /* fixed: choices that are given */
	unsigned used;
	struct rng rng;
	unsigned rarity; /* random: one choice in so many preempts */
	const char *replay; /* what of the string is not yet reached */
	bool unlike; /* the test did not do what it did before */
} explore;

static unsigned choose_given(unsigned nr)
{
	const struct choice *c = &explore.path[explore.at];

	if (c->nr != nr || c->picked >= nr) {
		explore.unlike = true;
		sched_fail("choice %zu has %u options, before %u: the test "
			   "depends on more than the schedule",
			   explore.at, nr, c->nr);
	}
	return c->picked;
}

static unsigned choose_random(unsigned nr, bool costly)
{
	if (!costly)
		return (unsigned)rng_below(&explore.rng, nr);
	if (rng_below(&explore.rng, explore.rarity))
		return 0;
	return 1 + (unsigned)rng_below(&explore.rng, nr - 1);
}

static unsigned choose_replay(unsigned nr)
{
	unsigned long at, picked;
	char *end;

	at = strtoul(explore.replay, &end, 10);
	if (end == explore.replay || *end != '.' || at != explore.at)
		return 0;
	picked = strtoul(end + 1, &end, 10);
	explore.replay = *end == ',' ? end + 1 : end;
	if (picked >= nr)
		sched_fail("replay: choice %lu has no option %lu", at, picked);
	return (unsigned)picked;
}

static unsigned explore_choose(unsigned nr, bool costly)
{
	struct choice *c;
	unsigned picked = 0;

	if (explore.at == explore.cap) {
		explore.cap = explore.cap ? 2 * explore.cap : 1024;
		c = realloc(explore.path, explore.cap * sizeof(*c));
		if (!c)
			abort();
		explore.path = c;
	}
	if (explore.mode == MODE_RANDOM)
		picked = choose_random(nr, costly);
	else if (explore.mode == MODE_REPLAY)
		picked = choose_replay(nr);
	else if (explore.at < explore.fixed)
		picked = choose_given(nr);
	explore.path[explore.at++] = (struct choice){
		.picked = (uint8_t)picked,
		.nr = (uint8_t)nr,
		.costly = costly,
		.used = (uint8_t)min_of(explore.used, 255u),
	};
	explore.used += costly && picked;
	return picked;
}

/* Moves the path to the next schedule; false if there is none. */
static bool explore_next(void)
{
	struct choice *c;
	size_t i;

	for (i = explore.at; i > 0; i--) {
		c = &explore.path[i - 1];
		if (c->picked + 1u == c->nr)
			continue;
		if (c->costly && c->used >= explore.o.preemptions)
			continue;
		c->picked++;
		explore.fixed = i;
		return true;
	}
	return false;
}

static void explore_print(char *buf, size_t len)
{
	const char *sep = "";
	size_t i, n = 0;

	snprintf(buf, len, "-");
	for (i = 0; i < explore.at && n < len; i++) {
		if (!explore.path[i].picked)
			continue;
		n += (size_t)snprintf(buf + n, len - n, "%s%zu.%u", sep, i,
				      explore.path[i].picked);
		sep = ",";
	}
	/* Half a schedule would be another one. */
	if (n >= len)
		buf[0] = 0;
}

static void explore_say(const char *what, const char *schedule)
{
	fprintf(stderr, "%s: FAILED: %s\n", explore.name, what);
	if (schedule[0])
		fprintf(stderr, "replay: %s %s --replay %s\n",
			program_invocation_name, explore.name, schedule);
	if (explore.mode == MODE_RANDOM)
		fprintf(stderr, "seed: %s %s --seed %llu\n",
			program_invocation_name, explore.name,
			(unsigned long long)explore.o.seed);
}

/* The process dies; not safe in a handler in general, but all we can do. */
static void explore_dying(void)
{
	static bool dying;
	static char schedule[sizeof(((struct explore_result *)0)->schedule)];

	if (dying || !sched_active())
		return;
	dying = true;
	explore_print(schedule, sizeof(schedule));
	explore_say("the process died", schedule);
}

static void explore_signal(int sig)
{
	explore_dying();
	signal(sig, SIG_DFL);
	raise(sig);
}

static void explore_watch_death(void)
{
	/* Not on a task's stack: it may be what ran out. */
	static char stack[64 << 10];
	stack_t ss = { .ss_sp = stack, .ss_size = sizeof(stack) };
	struct sigaction sa = {
		.sa_handler = explore_signal,
		.sa_flags = SA_ONSTACK | SA_NODEFER | (int)SA_RESETHAND,
	};

	sigaltstack(&ss, NULL);
	sigaction(SIGABRT, &sa, NULL);
#ifdef __SANITIZE_ADDRESS__
	__sanitizer_set_death_callback(explore_dying);
#else
	sigaction(SIGSEGV, &sa, NULL);
	sigaction(SIGBUS, &sa, NULL);
#endif
}

/* Runs one schedule in the mode that is set. */
static const char *explore_once(void (*fn)(void *arg), void *arg, bool verbose)
{
	struct sched_params p = {
		.choose = explore_choose,
		.steps_max = explore.o.steps_max,
		.inner_rank = explore.o.inner_rank,
		.verbose = verbose,
	};

	explore.at = 0;
	explore.used = 0;
	return sched_run(&p, fn, arg);
}

static const char *explore_depth_first(void (*fn)(void *arg), void *arg,
				       struct explore_result *r)
{
	const char *what;

	explore.mode = MODE_DEPTH_FIRST;
	explore.fixed = 0;
	while (r->schedules < explore.o.schedules_max) {
		what = explore_once(fn, arg, false);
		r->schedules++;
		if (!what && explore.at < explore.fixed) {
			explore.unlike = true;
			what = "a schedule ended early: the test depends on "
			       "more than the schedule";
		}
		if (what)
			return what;
		if (!explore_next()) {
			r->complete = true;
			return NULL;
		}
	}
	return NULL;
}

static const char *explore_random(void (*fn)(void *arg), void *arg,
				  struct explore_result *r)
{
	uint64_t nr = explore.o.one_seed ? 1 : explore.o.random_nr;
	const char *what;

	explore.mode = MODE_RANDOM;
	for (; r->random < nr; explore.o.seed++) {
		rng_seed(&explore.rng, explore.o.seed);
		explore.rarity = 2u << rng_below(&explore.rng, 5);
		what = explore_once(fn, arg, false);
		r->random++;
		if (what)
			return what;
	}
	return NULL;
}

static void explore_defaults(const struct explore_options *options)
{
	struct explore_options *o = &explore.o;

	memset(o, 0, sizeof(*o));
	if (options)
		*o = *options;
	o->preemptions = o->preemptions ? min_of(o->preemptions, 255u) : 2;
	o->schedules_max = o->schedules_max ? o->schedules_max : 200000;
	o->random_nr = o->random_nr ? o->random_nr : 2000;
	o->seed = o->seed ? o->seed : 1;
	o->steps_max = o->steps_max ? o->steps_max : 20000;
}

static void explore_failed(void (*fn)(void *arg), void *arg, const char *what,
			   struct explore_result *r)
{
	r->failed = true;
	snprintf(r->what, sizeof(r->what), "%s", what);
	explore_print(r->schedule, sizeof(r->schedule));
	if (explore.o.quiet)
		return;
	explore_say(r->what, r->schedule);
	if (explore.mode == MODE_REPLAY || explore.unlike)
		return;
	explore.mode = MODE_DEPTH_FIRST;
	explore.fixed = explore.at;
	(void)explore_once(fn, arg, true);
}

int explore_run(const char *name, void (*fn)(void *arg), void *arg,
		const struct explore_options *options,
		struct explore_result *result)
{
	struct explore_result own, *r = result ? result : &own;
	const char *what = NULL;

	memset(r, 0, sizeof(*r));
	memset(&explore, 0, sizeof(explore));
	explore_defaults(options);
	explore.name = name;
	explore_watch_death();
	if (explore.o.replay) {
		explore.mode = MODE_REPLAY;
		explore.replay = explore.o.replay;
		what = explore_once(fn, arg, !explore.o.quiet);
		r->schedules = 1;
	} else {
		if (!explore.o.one_seed)
			what = explore_depth_first(fn, arg, r);
		if (!what)
			what = explore_random(fn, arg, r);
	}
	if (what)
		explore_failed(fn, arg, what, r);
	free(explore.path);
	explore.path = NULL;
	return what ? -EFAULT : 0;
}

/* Takes the option at argv[i], if it is one; returns how many words it is. */
static int explore_option(struct explore_options *o, char **argv, int i)
{
	const char *value = argv[i + 1];

	if (!value)
		return 0;
	if (!strcmp(argv[i], "--replay")) {
		o->replay = value;
	} else if (!strcmp(argv[i], "--seed")) {
		o->seed = strtoull(value, NULL, 0);
		o->one_seed = true;
	} else if (!strcmp(argv[i], "--preemptions")) {
		o->preemptions = (unsigned)strtoul(value, NULL, 0);
	} else if (!strcmp(argv[i], "--schedules")) {
		o->schedules_max = strtoull(value, NULL, 0);
	} else if (!strcmp(argv[i], "--random")) {
		o->random_nr = strtoull(value, NULL, 0);
	} else {
		return 0;
	}
	return 2;
}

static bool explore_wanted(const char *name, int argc, char **argv)
{
	bool named = false;
	int i;

	for (i = 1; i < argc; i++) {
		if (argv[i][0] == '-') {
			i++;
			continue;
		}
		if (!strcmp(argv[i], name))
			return true;
		named = true;
	}
	return !named;
}

int explore_main(int argc, char **argv, const struct explore_test *tests,
		 size_t nr)
{
	struct explore_options o;
	struct explore_result r;
	int i, words, run = 0, failed = 0;
	size_t t;

	for (t = 0; t < nr; t++) {
		if (!explore_wanted(tests[t].name, argc, argv))
			continue;
		run++;
		o = tests[t].options;
		for (i = 1; i < argc; i += words) {
			words = argv[i][0] != '-' ? 1
						  : explore_option(&o, argv, i);
			if (!words) {
				fprintf(stderr, "unknown option %s\n", argv[i]);
				return EXIT_FAILURE;
			}
		}
		if (explore_run(tests[t].name, tests[t].fn, tests[t].arg, &o,
				&r))
			failed++;
		printf("%s: %s, %llu schedules%s, %llu at random\n",
		       tests[t].name, r.failed ? "FAILED" : "ok",
		       (unsigned long long)r.schedules,
		       r.complete ? " (all)" : "",
		       (unsigned long long)r.random);
	}
	if (!run)
		fprintf(stderr, "no test of that name\n");
	return failed || !run ? EXIT_FAILURE : EXIT_SUCCESS;
}

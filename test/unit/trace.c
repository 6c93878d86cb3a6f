/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Goal: a point that is off costs nothing and leaves nothing, one that is on is
 * printed with its fields in order, several threads' events come in the order
 * of time, a full ring loses and counts. Method: simulated time stamps events
 * of tasks; two tasks trace while the test drains.
 */
#include "lib/test.h"

#include <errno.h>
#include <string.h>

#include "base/clock.h"
#include "base/task.h"
#include "base/trace.h"

#define EVENTS 5000

static unsigned evaluated;

static uint64_t evaluate(void)
{
	return ++evaluated;
}

struct seen {
	size_t nr;
	uint64_t last_ns;
	uint64_t sum;
	char line[512];
};

static void see(const struct trace_event *e, void *arg)
{
	struct seen *s = arg;

	assert_true(e->ns >= s->last_ns);
	assert_int_not_equal(e->tid, 0);
	s->last_ns = e->ns;
	s->nr++;
	s->sum += e->v[1];
	assert_true(trace_format(e, s->line, sizeof(s->line)) <
		    (int)sizeof(s->line));
}

static void off_is_nothing(void **state)
{
	struct seen s = { .nr = 0 };

	TRACE(edge_held, .ino = evaluate());
	assert_int_equal(evaluated, 0);
	assert_int_equal(trace_drain(see, &s), 0);
	assert_int_equal(trace_set("no_such_point", true), -ENOENT);
	assert_int_equal(trace_set("edge_held", true), 0);
	/* Twice is once. */
	assert_int_equal(trace_set("edge_held", true), 0);
	TRACE(edge_held, .ino = evaluate());
	TRACE(edge_aged, .ino = evaluate());
	assert_int_equal(evaluated, 1);
	assert_int_equal(trace_set("edge_held", false), 0);
	TRACE(edge_held, .ino = evaluate());
	assert_int_equal(evaluated, 1);
	assert_int_equal(trace_drain(see, &s), 1);
}

static void fields_in_order(void **state)
{
	struct seen s = { .nr = 0 };
	struct trace_event e = { .point = TRACE_POINT_edge_held };
	char little[8];

	assert_int_equal(trace_set("all", true), 0);
	TRACE(nfsd_write_dio_split, .xid = 0x12, .fh_hash = 0xdeadbeef,
	      .offset = 47008, .len = 1ull << 40, .offset_align = 512,
	      .mem_align = 4, .mem_offset = 132, .prefix = 1, .middle = 2,
	      .suffix = 3, .nsegs = 3, .disposition = "direct", .dontcache = 1);
	assert_int_equal(trace_drain(see, &s), 1);
	assert_string_equal(
		s.line,
		"nfsd_write_dio_split xid=0x00000012 fh_hash=0xdeadbeef "
		"offset=47008 len=1099511627776 offset_align=512 mem_align=4 "
		"mem_offset=132 prefix=1 middle=2 suffix=3 nsegs=3 "
		"disposition=direct dontcache=1");
	TRACE(flush_pass, .wb = 7);
	trace_drain(see, &s);
	assert_string_equal(s.line, "flush_pass reason=- wb=7 pages=0");
	assert_int_equal(trace_set("all", false), 0);

	assert_int_equal(trace_format(&e, little, sizeof(little)),
			 strlen("edge_held ino=0 offset=0"));
	assert_string_equal(little, "edge_he");
	assert_string_equal(trace_name(TRACE_POINT_drop_behind), "drop_behind");
	assert_null(trace_name(TRACE_POINT_NR));
}

static void one_event(void *arg)
{
	TRACE(edge_aged, .offset = *(uint64_t *)arg);
}

static void time_orders_threads(void **state)
{
	struct seen s = { .nr = 0 };
	uint64_t i, first = 1, sum = 0;
	struct task *t;

	trace_set("edge_aged", true);
	clock_sim_start(1000);
	/* Each task's ring is the last one's, or another; ours is between. */
	for (i = 0; i < 10; i++) {
		clock_sim_advance(1);
		one_event(&i);
		clock_sim_advance(1);
		assert_int_equal(task_create(&t, "t", one_event, &first), 0);
		task_join(t);
		sum += i + first;
	}
	assert_int_equal(trace_drain(see, &s), 20);
	assert_int_equal(s.sum, sum);
	clock_sim_stop();
	trace_set("edge_aged", false);
}

static void full_ring_loses(void **state)
{
	uint64_t lost = trace_lost(), i;
	struct seen s = { .nr = 0 };

	trace_set("edge_aged", true);
	for (i = 0; i < TRACE_RING_LEN + 5; i++)
		one_event(&i);
	assert_int_equal(trace_lost() - lost, 5);
	assert_int_equal(trace_drain(see, &s), TRACE_RING_LEN);
	/* The oldest are kept. */
	assert_int_equal(s.sum, TRACE_RING_LEN * (TRACE_RING_LEN - 1) / 2);
	trace_set("edge_aged", false);
}

static void many_events(void *arg)
{
	uint64_t i;

	for (i = 0; i < EVENTS; i++)
		TRACE(edge_completed, .ino = i);
}

static void see_count(const struct trace_event *e, void *arg)
{
	(*(size_t *)arg)++;
}

static void drains_beside_writers(void **state)
{
	uint64_t lost = trace_lost();
	struct task *a, *b;
	size_t nr = 0;

	trace_set("edge_completed", true);
	assert_int_equal(task_create(&a, "a", many_events, NULL), 0);
	assert_int_equal(task_create(&b, "b", many_events, NULL), 0);
	while (nr + trace_lost() - lost < 2 * EVENTS)
		if (!trace_drain(see_count, &nr))
			task_yield();
	task_join(a);
	task_join(b);
	assert_int_equal(trace_drain(see_count, &nr), 0);
	assert_int_equal(nr + trace_lost() - lost, 2 * EVENTS);
	trace_set("edge_completed", false);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(off_is_nothing),
		cmocka_unit_test(fields_in_order),
		cmocka_unit_test(time_orders_threads),
		cmocka_unit_test(full_ring_loses),
		cmocka_unit_test(drains_beside_writers),
	};

	return cmocka_run_group_tests(tests, leak_setup, leak_check);
}

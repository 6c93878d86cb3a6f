/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * Choosing traces and switching them. Invariant: a point is on exactly while
 * its number of users is not 0.
 */
#include "ctl/tracer.h"

#include "base/clock.h"

#include <assert.h>
#include <errno.h>
#include <string.h>

/* The largest event: 13 fields of at most 20 digits and their names. */
#define EVENT_MAX 768

int tracer_choose(struct tracer_set *set, const char *name)
{
	size_t len = strlen(name);
	bool found = false;

	if (!strcmp(name, "all"))
		name = "*", len = 1;
	for (unsigned i = 0; i < TRACE_POINT_NR; i++) {
		if (name[len - 1] == '*' ? strncmp(trace_name(i), name, len - 1)
					 : strcmp(trace_name(i), name))
			continue;
		set->on[i] = found = true;
	}
	return found ? 0 : -ENOENT;
}

static void forget(const struct trace_event *e, void *arg)
{
}

static void point_switch(unsigned point, bool on)
{
	int ret = trace_set(trace_name(point), on);

	assert(!ret);
}

void tracer_start(struct tracer *t, struct tracer_set *set)
{
	if (!t->nr++)
		trace_drain(forget, NULL);
	set->any = true;
	for (unsigned i = 0; i < TRACE_POINT_NR; i++)
		if (set->on[i] && !t->users[i]++)
			point_switch(i, true);
}

void tracer_stop(struct tracer *t, struct tracer_set *set)
{
	assert(t->nr);
	t->nr--;
	for (unsigned i = 0; i < TRACE_POINT_NR; i++)
		if (set->on[i] && !--t->users[i])
			point_switch(i, false);
	*set = (struct tracer_set){ 0 };
}

void tracer_put(const struct trace_event *e, struct text *out)
{
	char line[EVENT_MAX];
	int len = trace_format(e, line, sizeof(line));

	assert(len > 0);
	assert((size_t)len < sizeof(line));
	text_printf(out, "%ju.%09u %u %s\n", (uintmax_t)(e->ns / NS_PER_S),
		    (unsigned)(e->ns % NS_PER_S), e->tid, line);
}

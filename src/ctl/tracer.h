/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * Who looks at which traces. A point is on while somebody wants it. One thread:
 * the one that drains.
 */
#ifndef TR_CTL_TRACER_H
#define TR_CTL_TRACER_H

#include "base/trace.h"
#include "ctl/text.h"

/* One reader's choice. */
struct tracer_set {
	bool on[TRACE_POINT_NR];
	bool any;
};

struct tracer {
	unsigned users[TRACE_POINT_NR];
	unsigned nr; /* readers */
};

/* Adds a point by name, "all" for every one, a name before '*' for those that
 * begin with it. -ENOENT: there is none. */
int tracer_choose(struct tracer_set *set, const char *name) MUST_CHECK;

/* The set's points are on from now to tracer_stop(). What nobody looked at
 * before is forgotten. */
void tracer_start(struct tracer *t, struct tracer_set *set);
void tracer_stop(struct tracer *t, struct tracer_set *set);

/* Adds "SECONDS.NANOSECONDS TID NAME key=value ..." and a newline. */
void tracer_put(const struct trace_event *e, struct text *out);

#endif

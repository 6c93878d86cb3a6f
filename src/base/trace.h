/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * Traces: what happened, in order, while somebody looks.
 *
 *	TRACE(nfsd_write_start, .xid = xid, .offset = off, .len = len);
 *
 * One load and a branch while nobody does; the arguments are evaluated only
 * then. A point is on when it was switched on here, into a ring per thread that
 * trace_drain() empties, or when bpftrace, perf or SystemTap attached to the
 * USDT probe tailrace:NAME (they count themselves in the same word).
 *
 * Any thread may trace, under any lock. One thread at a time drains.
 */
#ifndef TR_BASE_TRACE_H
#define TR_BASE_TRACE_H

#include "base/compiler.h"
#include "base/trace_points.h"

#include <stdbool.h>

/* Records a thread's ring holds; later ones are lost, and counted. */
#define TRACE_RING_LEN 1024

#define TRACE_FIELD(type, field, format) type field;
#define TRACE_DECLARE(name, fields, nr, probe)                                 \
	struct trace_args_##name {                                             \
		fields(TRACE_FIELD)                                            \
	};                                                                     \
	extern unsigned short tailrace_##name##_semaphore;                     \
	void trace_emit_##name(const struct trace_args_##name *a);
TRACE_POINTS(TRACE_DECLARE)
#undef TRACE_DECLARE
#undef TRACE_FIELD

#define TRACE(name, ...)                                                       \
	do {                                                                   \
		if (unlikely(__atomic_load_n(&tailrace_##name##_semaphore,     \
					     __ATOMIC_RELAXED)))               \
			trace_emit_##name(                                     \
				&(struct trace_args_##name){ __VA_ARGS__ });   \
	} while (0)

#define TRACE_ENUM(name, fields, nr, probe) TRACE_POINT_##name,
enum trace_point { TRACE_POINTS(TRACE_ENUM) TRACE_POINT_NR };
#undef TRACE_ENUM

struct trace_event {
	uint64_t ns; /* clock_ns() */
	uint32_t tid;
	enum trace_point point;
	uint64_t v[TRACE_FIELDS_MAX]; /* a STR field's pointer */
};

/* A point's name; NULL past the last one. */
const char *trace_name(unsigned point);

/* Switches a point, or with "all" every one. Returns 0 or -ENOENT. */
int trace_set(const char *name, bool on);

/*
 * Hands everything traced so far to fn, all threads' in the order of time, and
 * returns how many events that was. Events of calls that run meanwhile may come
 * with the next.
 */
size_t trace_drain(void (*fn)(const struct trace_event *e, void *arg),
		   void *arg);

/* Events lost since start because a ring was full or could not be had. */
uint64_t trace_lost(void);

/*
 * Writes "NAME key=value ..." without newline; returns as snprintf(3) does.
 */
int trace_format(const struct trace_event *e, char *buf, size_t len);

#endif

/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * Trace rings and probes.
 *
 * The first event of a thread takes a ring, one that a thread which has ended
 * left or a new one, and the end of the thread gives it back. Rings are never
 * freed, so their number is that of the threads that traced at once. A ring has
 * one writer, its owner, and one reader; head and tail are counts that only
 * grow, each written by one side.
 *
 * A full ring loses the new event: the reader is behind, and what it has not
 * seen yet explains what it will see.
 *
 * The word that TRACE() tests is the semaphore of the USDT probe, in the
 * section where tracers look for it; being switched on here counts as one.
 */
#include "base/trace.h"

#include <errno.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/mem.h"

#if defined(__has_include)
#if __has_include(<sys/sdt.h>)
#define _SDT_HAS_SEMAPHORES 1
#include <sys/sdt.h>
#define TRACE_SECTION __attribute__((section(".probes"), used))
#define TRACE_PROBE(nr, ...) STAP_PROBE##nr(__VA_ARGS__)
#endif
#endif
#ifndef TRACE_SECTION
#define TRACE_SECTION
#define TRACE_PROBE(nr, ...) ((void)0)
#endif

struct trace_ring {
	struct trace_ring *next; /* (C) once in the list */
	atomic_bool owned;
	uint32_t tid; /* the owner's */
	atomic_uint head ALIGNED(CACHE_LINE); /* written so far */
	atomic_uint tail ALIGNED(CACHE_LINE); /* read so far */
	struct trace_event events[TRACE_RING_LEN];
};

static struct {
	_Atomic(struct trace_ring *) rings;
	atomic_uint_fast64_t lost;
	pthread_key_t key; /* gives the ring back when its thread ends */
	pthread_once_t once;
} trace_state = { .once = PTHREAD_ONCE_INIT };

static _Thread_local struct trace_ring *trace_ring;

static void trace_ring_put(void *arg)
{
	struct trace_ring *r = arg;

	trace_ring = NULL;
	atomic_store_explicit(&r->owned, false, memory_order_release);
}

static void trace_start(void)
{
	/* Without a key rings are not reused; nothing else is lost. */
	(void)pthread_key_create(&trace_state.key, trace_ring_put);
}

static struct trace_ring *trace_ring_get(void)
{
	struct trace_ring *r = atomic_load(&trace_state.rings);
	bool no;

	for (; r; r = r->next) {
		no = false;
		if (atomic_compare_exchange_strong(&r->owned, &no, true))
			break;
	}
	if (!r) {
		r = mem_zalloc_aligned(CACHE_LINE, sizeof(*r));
		if (!r)
			return NULL;
		atomic_init(&r->owned, true);
		r->next = atomic_load(&trace_state.rings);
		while (!atomic_compare_exchange_weak(&trace_state.rings,
						     &r->next, r))
			;
	}
	r->tid = (uint32_t)gettid();
	pthread_once(&trace_state.once, trace_start);
	(void)pthread_setspecific(trace_state.key, r);
	trace_ring = r;
	return r;
}

static void trace_put(enum trace_point point, const uint64_t *v, size_t nr)
{
	struct trace_ring *r = trace_ring ? trace_ring : trace_ring_get();
	struct trace_event *e;
	unsigned head;

	if (!r)
		goto out_lost;
	head = atomic_load_explicit(&r->head, memory_order_relaxed);
	if (head - atomic_load_explicit(&r->tail, memory_order_acquire) ==
	    TRACE_RING_LEN)
		goto out_lost;
	e = &r->events[head % TRACE_RING_LEN];
	e->ns = clock_ns();
	e->tid = r->tid;
	e->point = point;
	memcpy(e->v, v, nr * sizeof(*v));
	atomic_store_explicit(&r->head, head + 1, memory_order_release);
	return;
out_lost:
	atomic_fetch_add_explicit(&trace_state.lost, 1, memory_order_relaxed);
}

/* One function a point: the probe, then the ring. */
static atomic_bool trace_on[TRACE_POINT_NR];

#define TRACE_VALUE(type, field, format) (uint64_t)(a->field),
#define TRACE_ARG(type, field, format) , a->field
#define TRACE_ARG_EXPR(expr) , (expr)
#define TRACE_EMIT(name, fields, nr, probe)                                    \
	unsigned short tailrace_##name##_semaphore TRACE_SECTION;              \
	void trace_emit_##name(const struct trace_args_##name *a)              \
	{                                                                      \
		const uint64_t v[] = { fields(TRACE_VALUE) };                  \
                                                                               \
		/* In memory: a tracer may follow v. */                        \
		__asm__ volatile("" : : "r"(v) : "memory");                    \
		TRACE_PROBE(nr, tailrace,                                      \
			    name probe(TRACE_ARG, TRACE_ARG_EXPR));            \
		if (atomic_load_explicit(&trace_on[TRACE_POINT_##name],        \
					 memory_order_relaxed))                \
			trace_put(TRACE_POINT_##name, v, ARRAY_SIZE(v));       \
	}
TRACE_POINTS(TRACE_EMIT)

/* The table, for printing and switching. */
enum trace_format { TRACE_DEC, TRACE_HEX, TRACE_STR };

struct trace_field {
	const char *name;
	enum trace_format format;
};

#define TRACE_ROW_FIELD(type, field, format) { #field, TRACE_##format },
#define TRACE_FIELDS(name, fields, nr, probe)                                  \
	static const struct trace_field trace_fields_##name[] = { fields(      \
		TRACE_ROW_FIELD) };                                            \
	_Static_assert(ARRAY_SIZE(trace_fields_##name) <= TRACE_FIELDS_MAX,    \
		       "a point's fields fit a record");
TRACE_POINTS(TRACE_FIELDS)

#define TRACE_ROW(name, fields, nr, probe)                                     \
	{ #name, &tailrace_##name##_semaphore, trace_fields_##name,            \
	  ARRAY_SIZE(trace_fields_##name) },
static const struct {
	const char *name;
	unsigned short *semaphore;
	const struct trace_field *fields;
	size_t nr;
} trace_rows[TRACE_POINT_NR] = { TRACE_POINTS(TRACE_ROW) };

const char *trace_name(unsigned point)
{
	return point < TRACE_POINT_NR ? trace_rows[point].name : NULL;
}

int trace_set(const char *name, bool on)
{
	bool all = !strcmp(name, "all"), found = all;
	unsigned i;

	for (i = 0; i < TRACE_POINT_NR; i++) {
		if (!all && strcmp(name, trace_rows[i].name))
			continue;
		found = true;
		if (atomic_exchange(&trace_on[i], on) == on)
			continue;
		/* Adding -1 modulo 2^16 takes one away. */
		__atomic_fetch_add(trace_rows[i].semaphore, on ? 1 : -1,
				   __ATOMIC_RELAXED);
	}
	return found ? 0 : -ENOENT;
}

/* The ring with the oldest event written before horizon, or NULL. */
static struct trace_ring *trace_oldest(uint64_t horizon)
{
	struct trace_ring *r, *oldest = NULL;
	uint64_t ns, min = horizon;
	unsigned tail;

	for (r = atomic_load(&trace_state.rings); r; r = r->next) {
		tail = atomic_load_explicit(&r->tail, memory_order_relaxed);
		if (tail ==
		    atomic_load_explicit(&r->head, memory_order_acquire))
			continue;
		ns = r->events[tail % TRACE_RING_LEN].ns;
		if (ns > min || (oldest && ns == min))
			continue;
		min = ns;
		oldest = r;
	}
	return oldest;
}

size_t trace_drain(void (*fn)(const struct trace_event *e, void *arg),
		   void *arg)
{
	/* Later events wait, so that busy threads cannot keep us for ever. */
	uint64_t horizon = clock_ns();
	struct trace_event e;
	struct trace_ring *r;
	unsigned tail;
	size_t nr = 0;

	while ((r = trace_oldest(horizon))) {
		tail = atomic_load_explicit(&r->tail, memory_order_relaxed);
		e = r->events[tail % TRACE_RING_LEN];
		atomic_store_explicit(&r->tail, tail + 1, memory_order_release);
		fn(&e, arg);
		nr++;
	}
	return nr;
}

uint64_t trace_lost(void)
{
	return atomic_load(&trace_state.lost);
}

static int trace_format_field(const struct trace_field *f, uint64_t v,
			      char *buf, size_t len)
{
	const char *s;

	switch (f->format) {
	case TRACE_HEX:
		return snprintf(buf, len, " %s=0x%08x", f->name, (unsigned)v);
	case TRACE_STR:
		s = (const char *)(uintptr_t)v;
		return snprintf(buf, len, " %s=%s", f->name, s ? s : "-");
	case TRACE_DEC:
		break;
	}
	return snprintf(buf, len, " %s=%llu", f->name, (unsigned long long)v);
}

int trace_format(const struct trace_event *e, char *buf, size_t len)
{
	size_t i, at;

	at = (size_t)snprintf(buf, len, "%s", trace_rows[e->point].name);
	for (i = 0; i < trace_rows[e->point].nr; i++)
		at += (size_t)trace_format_field(
			&trace_rows[e->point].fields[i], e->v[i],
			at < len ? buf + at : NULL, at < len ? len - at : 0);
	return (int)at;
}

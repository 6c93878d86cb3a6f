/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * Counters kept as per-CPU batches.
 *
 * counter_add() touches the caller's CPU's cell, and the shared part only when
 * the cell holds COUNTER_BATCH that the shared part does not know of.
 * counter_read() is the shared part alone and may be off by batch times CPUs;
 * counter_sum() adds the cells. A sum has in it every add that ended before it
 * began, and any of those that ran meanwhile. Negative sums of counts that
 * cannot be negative are a bug of the caller and never clamped.
 */
#ifndef TR_BASE_COUNTER_H
#define TR_BASE_COUNTER_H

#include "base/compiler.h"

#include <stdatomic.h>

#define COUNTER_BATCH 64
#define COUNTER_CELLS_MAX 64

struct counter_cell {
	atomic_long v; /* all that was added here */
	atomic_long told; /* the part of it that is in shared */
} ALIGNED(CACHE_LINE);

struct counter {
	atomic_long shared;
	struct counter_cell *cells;
	unsigned cell_mask; /* (C) */
};

/* Returns 0 or -ENOMEM. */
int counter_init(struct counter *c) MUST_CHECK;
void counter_fini(struct counter *c);
/* nr of them behind each other, all or none. */
int counters_init(struct counter *c, size_t nr) MUST_CHECK;
void counters_fini(struct counter *c, size_t nr);
void counter_add(struct counter *c, long n);
long counter_read(const struct counter *c);
long counter_sum(const struct counter *c);

#endif

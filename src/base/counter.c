/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * Per-CPU counters.
 *
 * A cell holds all that was ever added on its CPU, and how much of that it has
 * told the shared part; it tells the rest when that reaches COUNTER_BATCH. So
 * counter_sum() needs the cells alone, and no amount is ever in transit where
 * a sum would miss it or see it twice.
 *
 * A thread may move to another CPU between choosing a cell and adding to it:
 * the cells are atomic, the CPU's number only makes it unlikely that two add
 * to the same at once. Relaxed order suffices: counters publish nothing.
 */
#include "base/counter.h"

#include <errno.h>
#include <sched.h>
#include <string.h>
#include <unistd.h>

#include "base/mem.h"

/* As many cells as CPUs the machine can have, a power of two. */
static unsigned counter_nr_cells(void)
{
#ifdef TR_EXPLORE
	return 1;
#else
	long cpus = sysconf(_SC_NPROCESSORS_CONF);
	unsigned nr = 1;

	while (nr < COUNTER_CELLS_MAX && (long)nr < cpus)
		nr *= 2;
	return nr;
#endif
}

int counter_init(struct counter *c)
{
	unsigned nr = counter_nr_cells();

	c->cells = mem_zalloc_aligned(CACHE_LINE, nr * sizeof(*c->cells));
	if (!c->cells)
		return -ENOMEM;
	c->cell_mask = nr - 1;
	atomic_init(&c->shared, 0);
	return 0;
}

void counter_fini(struct counter *c)
{
	mem_free(c->cells);
	c->cells = NULL;
}

int counters_init(struct counter *c, size_t nr)
{
	for (size_t i = 0; i < nr; i++) {
		if (!counter_init(&c[i]))
			continue;
		counters_fini(c, i);
		return -ENOMEM;
	}
	return 0;
}

void counters_fini(struct counter *c, size_t nr)
{
	while (nr--)
		counter_fini(&c[nr]);
}

static inline struct counter_cell *counter_cell(struct counter *c)
{
#ifdef TR_EXPLORE
	/* A schedule must not depend on the CPU it runs on. */
	return &c->cells[0];
#else
	/* -1, where the kernel cannot tell, is a cell as well. */
	return &c->cells[(unsigned)sched_getcpu() & c->cell_mask];
#endif
}

/* Whoever moves told to v owns the difference. */
static NOINLINE void counter_tell(struct counter *c, struct counter_cell *cell)
{
	long v = atomic_load_explicit(&cell->v, memory_order_relaxed);
	long told =
		atomic_exchange_explicit(&cell->told, v, memory_order_relaxed);

	atomic_fetch_add_explicit(&c->shared, v - told, memory_order_relaxed);
}

void counter_add(struct counter *c, long n)
{
	struct counter_cell *cell = counter_cell(c);
	long v = atomic_fetch_add_explicit(&cell->v, n, memory_order_relaxed);
	long rest =
		v + n - atomic_load_explicit(&cell->told, memory_order_relaxed);

	if (unlikely(rest >= COUNTER_BATCH || rest <= -COUNTER_BATCH))
		counter_tell(c, cell);
}

long counter_read(const struct counter *c)
{
	return atomic_load_explicit(&c->shared, memory_order_relaxed);
}

long counter_sum(const struct counter *c)
{
	long sum = 0;
	unsigned i;

	for (i = 0; i <= c->cell_mask; i++)
		sum += atomic_load_explicit(&c->cells[i].v,
					    memory_order_relaxed);
	return sum;
}

/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * What one call of the page allocator and of the index costs, in one task with
 * nobody else about. Each row is run ROUNDS times; the median and the extremes
 * are printed. The numbers on record are in index.md.
 */
#include "base/clock.h"
#include "base/rng.h"
#include "folio/arena.h"
#include "folio/index.h"
#include "folio/slab.h"

#include <assert.h>
#include <stdio.h>
#include <stdlib.h>

#define ROUNDS 9
#define PAIRS 300000u
#define BULK 32768u /* pages: 128 MiB */
#define PROBES 300000u

struct bench {
	struct arena *arena;
	struct slab nodes;
	struct index ix;
	struct folio *pages[BULK];
	struct folio *out[BULK];
	uint64_t probes[PROBES];
	uint64_t nr_file; /* pages in the index that is probed */
};

static int by_value(const void *a, const void *b)
{
	double x = *(const double *)a, y = *(const double *)b;

	return (x > y) - (x < y);
}

/* step does something some number of times and returns the ns of one. */
static void row(const char *name, double (*step)(struct bench *b, unsigned n),
		struct bench *b, unsigned n)
{
	double ns[ROUNDS];
	unsigned i;

	for (i = 0; i < ROUNDS; i++)
		ns[i] = step(b, n);
	qsort(ns, ROUNDS, sizeof(*ns), by_value);
	printf("%-40s %7.1f  (%.1f to %.1f)\n", name, ns[ROUNDS / 2], ns[0],
	       ns[ROUNDS - 1]);
}

static double each(uint64_t since, uint64_t nr)
{
	return (double)(clock_ns() - since) / (double)nr;
}

static void put(struct bench *b, struct folio *f)
{
	f->refs = 0;
	arena_free(b->arena, f);
}

static double pair(struct bench *b, unsigned order)
{
	uint64_t t = clock_ns();
	unsigned i;

	for (i = 0; i < PAIRS; i++)
		put(b, arena_alloc(b->arena, order, 0));
	return each(t, PAIRS);
}

static double bulk(struct bench *b, unsigned n)
{
	uint64_t t = clock_ns();
	unsigned i;

	for (i = 0; i < BULK; i++)
		b->pages[i] = arena_alloc(b->arena, 0, 0);
	for (i = 0; i < BULK; i++)
		put(b, b->pages[i]);
	return each(t, BULK);
}

static void insert_all(struct bench *b, uint64_t nr)
{
	uint64_t i;

	for (i = 0; i < nr; i++) {
		int err = index_insert(&b->ix, i, 0, b->pages[i % BULK]);

		assert(!err);
	}
}

static void remove_all(struct bench *b, uint64_t nr)
{
	uint64_t i;

	for (i = 0; i < nr; i++)
		index_remove(&b->ix, i, 0);
}

static double insert(struct bench *b, unsigned n)
{
	uint64_t t = clock_ns();
	double ns;

	insert_all(b, n);
	ns = each(t, n);
	remove_all(b, n);
	rcu_barrier();
	return ns;
}

static double erase(struct bench *b, unsigned n)
{
	uint64_t t;
	double ns;

	insert_all(b, n);
	t = clock_ns();
	remove_all(b, n);
	ns = each(t, n);
	rcu_barrier();
	return ns;
}

/* All 512 slots; per folio. */
static double insert_large(struct bench *b, unsigned n)
{
	uint64_t t = clock_ns(), i;
	double ns;

	for (i = 0; i < n; i++) {
		int err = index_insert(&b->ix, i << FOLIO_ORDER_MAX,
				       FOLIO_ORDER_MAX, b->pages[i]);

		assert(!err);
	}
	ns = each(t, n);
	for (i = 0; i < n; i++)
		index_remove(&b->ix, i << FOLIO_ORDER_MAX, FOLIO_ORDER_MAX);
	rcu_barrier();
	return ns;
}

static double load(struct bench *b, unsigned n)
{
	struct folio *volatile seen;
	uint64_t t = clock_ns();
	unsigned i;

	for (i = 0; i < PROBES; i++) {
		rcu_read_lock();
		seen = index_load(&b->ix, n ? b->probes[i] : i % b->nr_file);
		rcu_read_unlock();
	}
	(void)seen;
	return each(t, PROBES);
}

static double tag_pair(struct bench *b, unsigned n)
{
	uint64_t t = clock_ns();
	unsigned i;

	for (i = 0; i < n; i++)
		index_tag(&b->ix, i, TAG_DIRTY);
	for (i = 0; i < n; i++)
		index_untag(&b->ix, i, TAG_DIRTY);
	return each(t, n);
}

static double dense_walk(struct bench *b, unsigned n)
{
	uint64_t idx = 0, t;
	unsigned i, nr;
	double ns;

	for (i = 0; i < n; i++)
		index_tag(&b->ix, i, TAG_DIRTY);
	t = clock_ns();
	nr = index_next_tags(&b->ix, &idx, n - 1, TAG_DIRTY, b->out, BULK);
	ns = each(t, n);
	assert(nr == n);
	for (i = 0; i < n; i++)
		index_untag(&b->ix, i, TAG_DIRTY);
	return ns;
}

/* One tagged page at the end of the file, looked for from its start. */
static double sparse_walk(struct bench *b, unsigned n)
{
	uint64_t idx, t;
	unsigned i;
	double ns;

	index_tag(&b->ix, b->nr_file - 1, TAG_DIRTY);
	t = clock_ns();
	for (i = 0; i < PROBES; i++) {
		idx = i & 63;
		if (!index_next_tag(&b->ix, &idx, UINT64_MAX, TAG_DIRTY))
			abort();
	}
	ns = each(t, PROBES);
	index_untag(&b->ix, b->nr_file - 1, TAG_DIRTY);
	return ns;
}

static void files(struct bench *b)
{
	static const struct {
		const char *name;
		uint64_t nr;
	} sizes[] = {
		{ "1 MiB", 1 << 8 },
		{ "1 GiB", 1 << 18 },
		{ "16 GiB", 1 << 22 },
	};
	struct rng rng;
	char name[64];
	unsigned i, p;

	rng_seed(&rng, 1);
	for (i = 0; i < ARRAY_SIZE(sizes); i++) {
		b->nr_file = sizes[i].nr;
		for (p = 0; p < PROBES; p++)
			b->probes[p] = rng_below(&rng, b->nr_file);
		insert_all(b, b->nr_file);
		snprintf(name, sizeof(name), "load in order, %s",
			 sizes[i].name);
		row(name, load, b, 0);
		snprintf(name, sizeof(name), "load at random, %s",
			 sizes[i].name);
		row(name, load, b, 1);
		snprintf(name, sizeof(name), "the one tag at the end, %s",
			 sizes[i].name);
		row(name, sparse_walk, b, 0);
		if (b->nr_file >= BULK) {
			row("tag and untag", tag_pair, b, BULK);
			row("walk of tags, a folio", dense_walk, b, BULK);
		}
		remove_all(b, b->nr_file);
		rcu_barrier();
	}
}

int main(void)
{
	struct bench *b = calloc(1, sizeof(*b));
	unsigned i;
	int err;

	assert(b);
	err = arena_create(320ull << 20, true, NULL, NULL, &b->arena);
	assert(!err);
	err = slab_init(&b->nodes, b->arena, INDEX_NODE_SIZE, "nodes");
	assert(!err);
	index_init(&b->ix, &b->nodes);

	printf("%-40s %7s  (of %u runs)\n", "", "ns", ROUNDS);
	row("alloc and free, order 0", pair, b, 0);
	row("alloc and free, order 2", pair, b, 2);
	row("alloc and free, order 9", pair, b, 9);
	row("alloc and free of 128 MiB, a page", bulk, b, 0);
	for (i = 0; i < BULK; i++)
		b->pages[i] = arena_alloc(b->arena, 0, 0);
	row("insert order 0, 256 pages", insert, b, 1 << 8);
	row("insert order 0, 32768 pages", insert, b, BULK);
	row("remove order 0, 32768 pages", erase, b, BULK);
	row("insert order 9", insert_large, b, 512);
	files(b);

	for (i = 0; i < BULK; i++)
		put(b, b->pages[i]);
	slab_fini(&b->nodes);
	arena_destroy(b->arena);
	free(b);
	return 0;
}

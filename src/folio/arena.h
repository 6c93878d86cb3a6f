/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * The page allocator: all memory that grows with what is cached.
 *
 * An arena has a hard size, its descriptors included. Its address space is
 * reserved at creation and made of chunks of 64 MiB, each aligned to its size;
 * the first bytes of a chunk are the descriptors of its pages, so page and
 * descriptor are found from each other by arithmetic. The last chunk may be
 * smaller, with fewer descriptors. Chunks are made ready (touched) one at a
 * time by a task of the arena's own; until then they have no pages to give.
 *
 * Every call may be made by any task, but arena_create() and arena_destroy(),
 * which nothing may race with. Only arena_wait_ready() and arena_destroy()
 * sleep.
 */
#ifndef TR_FOLIO_ARENA_H
#define TR_FOLIO_ARENA_H

#include "base/compiler.h"
#include "folio/folio.h"

#include <stdbool.h>

#define ARENA_CHUNK_SHIFT 26
#define ARENA_CHUNK_LEN (1ull << ARENA_CHUNK_SHIFT)
#define ARENA_CHUNK_PAGES (ARENA_CHUNK_LEN >> PAGE_SHIFT)

/* The smallest arena. */
#define ARENA_SIZE_MIN (4ull << 20)
/* What a 64-bit process can address at all on the machines there are. */
#define ARENA_SIZE_MAX (1ull << 47)

struct arena;

enum {
	ARENA_RESERVE = 1 << 0, /* may dip into the reserve */
	ARENA_NOREF = 1 << 1, /* refs 0: a late lookup cannot hold it */
};

/*
 * Makes an arena of size bytes. With populate, or if it is one chunk or less,
 * everything is ready when this returns; otherwise a few MiB are, and a task
 * goes on. ready(arg, ...), if given, is called once for each chunk after its
 * pages can be given, by whoever makes it ready (that task, or the caller of
 * arena_create()), without locks held; addr and len are the whole chunk,
 * descriptors included.
 * Returns 0, -EINVAL (size below ARENA_SIZE_MIN), -ENOMEM or -EAGAIN.
 */
int arena_create(uint64_t size, bool populate,
		 void (*ready)(void *arg, void *addr, size_t len), void *arg,
		 struct arena **out) MUST_CHECK;

/* Everything must have been freed. Waits for the chunk in work, if any. */
void arena_destroy(struct arena *a);

/*
 * Gives 2^order pages, naturally aligned, contents undefined. The descriptor
 * has state 0, refs 1 (ARENA_NOREF: 0), all else zero but order; those of its
 * further pages have refs 0. Returns NULL if there are none now. Never sleeps.
 */
struct folio *arena_alloc(struct arena *a, unsigned order, unsigned flags);

/* Takes back what arena_alloc() or arena_split() gave; refs must be 0. */
void arena_free(struct arena *a, struct folio *f);

/*
 * Turns f, allocated, into parts of the smaller order, each to be freed on its
 * own. The descriptors of the new parts are zero (refs too) but for order;
 * that of f only gets the new order.
 */
void arena_split(struct folio *f, unsigned order);

/* Pages that can be given now, the reserve included. */
uint64_t arena_free_pages(const struct arena *a);

/* Pages there will be when all is ready: descriptors are not counted. */
uint64_t arena_total_pages(const struct arena *a);

/* Pages in what is ready, free or not. */
uint64_t arena_ready_pages(const struct arena *a);

/* Pages kept for ARENA_RESERVE. */
uint64_t arena_reserve_pages(const struct arena *a);

/* Whether chunks are still to come. */
bool arena_growing(const struct arena *a);

/* Sleeps until all chunks are ready and ready() has returned for each. */
void arena_wait_ready(struct arena *a);

/*
 * Aborts if a free list, a count or a descriptor is wrong. Others may go on
 * allocating meanwhile. Returns 0, so that it can stand in an assert.
 */
int arena_check(struct arena *a);

/* The memory of f's first page. */
static inline void *folio_data(const struct folio *f)
{
	uintptr_t at = (uintptr_t)f;
	uintptr_t base = at & ~(uintptr_t)(ARENA_CHUNK_LEN - 1);

	return (void *)(base + (at - base) / sizeof(*f) * PAGE_SIZE);
}

/* The descriptor of the page p points into. */
static inline struct folio *folio_of_data(const void *p)
{
	uintptr_t at = (uintptr_t)p;
	uintptr_t base = at & ~(uintptr_t)(ARENA_CHUNK_LEN - 1);

	return (struct folio *)(base +
				(at - base) / PAGE_SIZE * sizeof(struct folio));
}

#endif

/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * A buddy allocator over chunks that become ready one after the other.
 *
 * Happy path: an order-0 page comes from, and goes back to, a small stack of
 * pages that belongs to the CPU (a cell), without the mutex. An empty cell
 * takes CELL_BATCH pages from the free lists, a full one gives as many back.
 * Larger blocks come from the free lists directly.
 *
 * A cell is taken with one try of a flag; whoever finds it taken (its holder
 * was preempted, or two CPUs share it) uses the free lists instead, so nobody
 * ever spins. Cells only hold pages above the reserve; when the free lists
 * cannot serve, all cells are emptied into them before the answer is NULL.
 *
 * Failure: no pages. Populating memory that the kernel does not have ends in
 * its out-of-memory killer, as any touch would; it is not reported here.
 *
 * Invariants:
 *  1. A descriptor has PAGE_FREE exactly if it heads a block on the free list
 *     of its order, PAGE_CELL exactly if a cell holds it. Either has refs 0.
 *  2. Two free buddies of one order are never both on a list.
 *  3. The descriptor of a page that is allocated or inside a block has
 *     neither mark, so a block never joins with one in use.
 *  4. nr_free is the pages on the free lists.
 *
 * A lookup under RCU may read state, refs, mapping and idx of any descriptor
 * at any time, which is why they are written by atomic stores only. It cannot
 * take a reference while refs is 0, so nobody but the allocator writes to a
 * free descriptor.
 */
#include "folio/arena.h"

#include "base/lock.h"
#include "base/mem.h"
#include "base/task.h"
#include "base/wait.h"

#include <assert.h>
#include <errno.h>
#include <sched.h>
#include <sys/mman.h>

#ifndef MADV_POPULATE_WRITE
#define MADV_POPULATE_WRITE 23 /* Linux 5.14 */
#endif

#define ORDERS (FOLIO_ORDER_MAX + 1)

/* Bits of folio.state that no allocated folio has. */
#define PAGE_FREE (1u << 31)
#define PAGE_CELL (1u << 30)

/* A cell is then 8 lines and a half, and one in 32 calls takes the mutex. */
#define CELL_PAGES 64
#define CELL_BATCH 32

/*
 * How much is touched at a time: the delay of arena_destroy(), and how soon
 * the first pages come. 8 MiB take 1 to 20 ms.
 */
#define STEP_PAGES (8u << 20 >> PAGE_SHIFT)

/* What arena_create() makes ready itself of an arena of several chunks. */
#define HEAD_PAGES (4u << 20 >> PAGE_SHIFT)

/* More would keep from small caches what they need, or be no use. */
#define RESERVE_SHARE 64
#define RESERVE_MAX 1024

struct cell {
	atomic_bool busy;
	atomic_uint nr; /* by who made it busy; read by anybody */
	struct folio *pages[CELL_PAGES]; /* by who made it busy */
} ALIGNED(CACHE_LINE);

struct arena {
	char *base; /* (C) */
	uint64_t nr_frames; /* (C) pages with those of descriptors */
	uint64_t total; /* (C) pages without */
	uint64_t reserve; /* (C) */
	unsigned nr_cells; /* (C) */
	struct cell *cells; /* (C) */
	void (*ready)(void *arg, void *addr, size_t len); /* (C) */
	void *arg; /* (C) */

	struct mutex lock;
	struct cds_list_head free[ORDERS] GUARDED(lock); /* by folio.lru */
	/* Written under lock. Read without for hints: a stale value moves a
	 * page to the free lists or a cell too many. */
	_Atomic uint64_t nr_free;
	_Atomic uint64_t nr_ready; /* pages that were given to the lists */
	uint64_t next GUARDED(lock); /* frames below were made ready */

	struct task *task; /* (C) NULL: none was needed */
	struct waitq grown; /* growing became false */
	atomic_bool growing;
	atomic_bool stop;
};

static unsigned load_state(const struct folio *f)
{
	return atomic_load_explicit(&f->state, memory_order_relaxed);
}

static void store_state(struct folio *f, unsigned state)
{
	atomic_store_explicit(&f->state, state, memory_order_relaxed);
}

static int load_refs(const struct folio *f)
{
	return atomic_load_explicit(&f->refs, memory_order_relaxed);
}

static void store_order(struct folio *f, unsigned order)
{
	__atomic_store_n(&f->order, order, __ATOMIC_RELAXED);
}

/* Everything is zero but order and, last of all, refs. */
static void descriptor_init(struct folio *f, unsigned order, int refs)
{
	uint64_t *word = (uint64_t *)f;
	unsigned i;

	for (i = 1; i < sizeof(*f) / sizeof(*word); i++)
		__atomic_store_n(&word[i], 0, __ATOMIC_RELAXED);
	store_order(f, order);
	store_state(f, 0);
	atomic_store_explicit(&f->refs, refs, memory_order_release);
}

/* Frames are numbered through all chunks; a frame's descriptor. */
static struct folio *descriptor(const struct arena *a, uint64_t frame)
{
	uint64_t chunk = frame / ARENA_CHUNK_PAGES;
	struct folio *first;

	first = (struct folio *)(a->base + (chunk << ARENA_CHUNK_SHIFT));
	return first + frame % ARENA_CHUNK_PAGES;
}

static uint64_t frame_of(const struct arena *a, const struct folio *f)
{
	size_t at = (size_t)((char *)f - a->base);

	return at / ARENA_CHUNK_LEN * ARENA_CHUNK_PAGES +
	       at % ARENA_CHUNK_LEN / sizeof(*f);
}

static uint64_t chunk_end(const struct arena *a, uint64_t frame)
{
	uint64_t end = align_down(frame, ARENA_CHUNK_PAGES) + ARENA_CHUNK_PAGES;

	return min_of(end, a->nr_frames);
}

/* The first frame of frame's chunk that is no descriptors'. */
static uint64_t chunk_first(const struct arena *a, uint64_t frame)
{
	uint64_t start = align_down(frame, ARENA_CHUNK_PAGES);
	uint64_t len = (chunk_end(a, frame) - start) * sizeof(struct folio);

	return start + align_up(len, PAGE_SIZE) / PAGE_SIZE;
}

/*
 * The buddy, if it is free as a whole. The descriptors' own frames have
 * descriptors too, zero for ever; beyond the last frame there are none.
 */
static struct folio *buddy_of(struct arena *a, uint64_t frame, unsigned order)
{
	uint64_t at = frame ^ 1ull << order;
	struct folio *f;

	if (at >= chunk_end(a, frame))
		return NULL;
	f = descriptor(a, at);
	return load_state(f) & PAGE_FREE && f->order == order ? f : NULL;
}

static void put_block(struct arena *a, struct folio *f, unsigned order)
{
	uint64_t frame = frame_of(a, f);
	struct folio *buddy;

	atomic_fetch_add_explicit(&a->nr_free, 1ull << order,
				  memory_order_relaxed);
	while (order < FOLIO_ORDER_MAX) {
		buddy = buddy_of(a, frame, order);
		if (!buddy)
			break;
		cds_list_del(&buddy->lru);
		store_state(buddy, 0);
		frame &= ~(1ull << order);
		order++;
	}
	f = descriptor(a, frame);
	store_order(f, order);
	store_state(f, PAGE_FREE);
	cds_list_add(&f->lru, &a->free[order]);
}

static struct folio *take_block(struct arena *a, unsigned order)
{
	struct folio *f, *half;
	unsigned o = order;

	while (o < ORDERS && cds_list_empty(&a->free[o]))
		o++;
	if (o == ORDERS)
		return NULL;
	f = cds_list_first_entry(&a->free[o], struct folio, lru);
	cds_list_del(&f->lru);
	store_state(f, 0);
	while (o > order) {
		o--;
		half = f + (1ull << o);
		store_order(half, o);
		store_state(half, PAGE_FREE);
		cds_list_add(&half->lru, &a->free[o]);
	}
	atomic_fetch_sub_explicit(&a->nr_free, 1ull << order,
				  memory_order_relaxed);
	return f;
}

/* NULL if there are no cells or the CPU's is taken. */
static struct cell *cell_try_lock(struct arena *a)
{
	struct cell *c;

	if (!a->nr_cells)
		return NULL;
	c = &a->cells[(unsigned)sched_getcpu() & (a->nr_cells - 1)];
	if (atomic_exchange_explicit(&c->busy, true, memory_order_acquire))
		return NULL;
	return c;
}

static void cell_unlock(struct cell *c)
{
	atomic_store_explicit(&c->busy, false, memory_order_release);
}

static unsigned cell_nr(const struct cell *c)
{
	return atomic_load_explicit(&c->nr, memory_order_relaxed);
}

static void cell_push(struct cell *c, struct folio *f)
{
	unsigned nr = cell_nr(c);

	store_state(f, PAGE_CELL);
	c->pages[nr] = f;
	atomic_store_explicit(&c->nr, nr + 1, memory_order_relaxed);
}

static struct folio *cell_pop(struct cell *c)
{
	unsigned nr = cell_nr(c) - 1;

	atomic_store_explicit(&c->nr, nr, memory_order_relaxed);
	return c->pages[nr];
}

static void cell_fill(struct arena *a, struct cell *c)
{
	struct folio *f;

	mutex_lock(&a->lock);
	while (cell_nr(c) < CELL_BATCH && a->nr_free > a->reserve) {
		f = take_block(a, 0);
		assert(f);
		cell_push(c, f);
	}
	mutex_unlock(&a->lock);
}

static void cell_drain(struct arena *a, struct cell *c, unsigned to)
{
	struct folio *f;

	mutex_lock(&a->lock);
	while (cell_nr(c) > to) {
		f = cell_pop(c);
		store_state(f, 0);
		put_block(a, f, 0);
	}
	mutex_unlock(&a->lock);
}

/* Empties the cells; true if there was anything in one. */
static bool drain_all(struct arena *a)
{
	struct cell *c;
	bool any = false;

	for (c = a->cells; c < a->cells + a->nr_cells; c++) {
		if (!cell_nr(c) ||
		    atomic_exchange_explicit(&c->busy, true,
					     memory_order_acquire))
			continue;
		any |= cell_nr(c) > 0;
		cell_drain(a, c, 0);
		cell_unlock(c);
	}
	return any;
}

static struct folio *alloc_cell(struct arena *a)
{
	struct cell *c = cell_try_lock(a);
	struct folio *f = NULL;

	if (!c)
		return NULL;
	if (unlikely(!cell_nr(c)))
		cell_fill(a, c);
	if (cell_nr(c))
		f = cell_pop(c);
	cell_unlock(c);
	return f;
}

static struct folio *alloc_block(struct arena *a, unsigned order,
				 unsigned flags)
{
	uint64_t need = 1ull << order;
	struct folio *f = NULL;

	if (!(flags & ARENA_RESERVE))
		need += a->reserve;
	mutex_lock(&a->lock);
	if (a->nr_free >= need)
		f = take_block(a, order);
	mutex_unlock(&a->lock);
	return f;
}

struct folio *arena_alloc(struct arena *a, unsigned order, unsigned flags)
{
	struct folio *f = NULL;

	assert(order <= FOLIO_ORDER_MAX);
	if (mem_should_fail())
		return NULL;
	if (order == 0)
		f = alloc_cell(a);
	if (!f)
		f = alloc_block(a, order, flags);
	if (!f && drain_all(a))
		f = alloc_block(a, order, flags);
	if (!f)
		return NULL;
	descriptor_init(f, order, flags & ARENA_NOREF ? 0 : 1);
	return f;
}

void arena_free(struct arena *a, struct folio *f)
{
	struct cell *c = NULL;

	assert(load_refs(f) == 0);
	assert(!(load_state(f) & (PAGE_FREE | PAGE_CELL)));
	if (f->order == 0 && a->nr_free >= a->reserve)
		c = cell_try_lock(a);
	if (c) {
		if (unlikely(cell_nr(c) == CELL_PAGES))
			cell_drain(a, c, CELL_PAGES - CELL_BATCH);
		cell_push(c, f);
		cell_unlock(c);
		return;
	}
	mutex_lock(&a->lock);
	put_block(a, f, f->order);
	mutex_unlock(&a->lock);
}

void arena_split(struct folio *f, unsigned order)
{
	uint64_t i, nr = folio_nr_pages(f);

	assert(order <= f->order);
	assert(!(load_state(f) & (PAGE_FREE | PAGE_CELL)));
	store_order(f, order);
	for (i = 1ull << order; i < nr; i += 1ull << order)
		descriptor_init(f + i, order, 0);
}

uint64_t arena_free_pages(const struct arena *a)
{
	uint64_t nr = a->nr_free;
	unsigned i;

	for (i = 0; i < a->nr_cells; i++)
		nr += cell_nr(&a->cells[i]);
	return nr;
}

uint64_t arena_total_pages(const struct arena *a)
{
	return a->total;
}

uint64_t arena_ready_pages(const struct arena *a)
{
	return a->nr_ready;
}

uint64_t arena_reserve_pages(const struct arena *a)
{
	return a->reserve;
}

bool arena_growing(const struct arena *a)
{
	return a->growing;
}

void arena_wait_ready(struct arena *a)
{
	wait_event(&a->grown, !arena_growing(a));
}

/* Touches frames of one chunk, none of them in use. */
static void touch(struct arena *a, uint64_t frame, uint64_t nr)
{
	volatile char *at = a->base + frame * PAGE_SIZE;
	uint64_t i;

#ifdef TR_EXPLORE
	/* A schedule uses a few pages, and there are many schedules. */
	return;
#endif
	if (!madvise((char *)at, nr * PAGE_SIZE, MADV_POPULATE_WRITE))
		return;
	for (i = 0; i < nr; i++)
		at[i * PAGE_SIZE] = 0;
}

/*
 * Makes the next frames ready, up to nr of the chunk in work, and calls
 * ready() if they end it.
 */
static void grow(struct arena *a, uint64_t nr)
{
	uint64_t at = a->next, end, first, order;

	assert(at < a->nr_frames);
	first = chunk_first(a, at);
	if (at % ARENA_CHUNK_PAGES == 0)
		nr = max_of(nr, first + 1 - at);
	end = min_of(at + nr, chunk_end(a, at));
	touch(a, at, end - at);

	mutex_lock(&a->lock);
	a->next = end;
	at = max_of(at, first);
	a->nr_ready += end - at;
	while (at < end) {
		order = FOLIO_ORDER_MAX;
		while (at & ((1ull << order) - 1) || at + (1ull << order) > end)
			order--;
		put_block(a, descriptor(a, at), order);
		at += 1ull << order;
	}
	mutex_unlock(&a->lock);

	if (end == chunk_end(a, end - 1) && a->ready) {
		at = align_down(end - 1, ARENA_CHUNK_PAGES);
		a->ready(a->arg, a->base + at * PAGE_SIZE,
			 (end - at) * PAGE_SIZE);
	}
}

static void grow_all(void *arg)
{
	struct arena *a = arg;

	while (a->next < a->nr_frames && !a->stop)
		grow(a, STEP_PAGES);
	a->growing = false;
	waitq_wake_all(&a->grown);
}

/* Reserves the address space, aligned to a chunk. */
static int reserve(struct arena *a)
{
	size_t len = a->nr_frames * PAGE_SIZE;
	char *at, *end;

	at = mmap(NULL, len + ARENA_CHUNK_LEN, PROT_READ | PROT_WRITE,
		  MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
	if (at == MAP_FAILED)
		return -ENOMEM;
	end = at + len + ARENA_CHUNK_LEN;
	a->base = (char *)align_up((uintptr_t)at, ARENA_CHUNK_LEN);
	if (a->base > at)
		munmap(at, a->base - at);
	if (end > a->base + len)
		munmap(a->base + len, end - (a->base + len));
		/* A kernel without huge pages refuses; then pages are small. */
#ifndef TR_EXPLORE
	madvise(a->base, len, MADV_HUGEPAGE);
#endif
	return 0;
}

static int cells_init(struct arena *a)
{
#ifdef TR_EXPLORE
	/* A schedule must not depend on which CPU the explorer runs on. */
	return 0;
#else
	unsigned nr = 1;

	while (nr < task_nr_cpus())
		nr *= 2;
	a->cells = mem_zalloc_aligned(CACHE_LINE, nr * sizeof(*a->cells));
	if (!a->cells)
		return -ENOMEM;
	a->nr_cells = nr;
	return 0;
#endif
}

/* Sets what follows from the size. */
static void measure(struct arena *a, uint64_t size)
{
	uint64_t at;

	a->nr_frames = size / PAGE_SIZE;
	/* A last chunk too small for its descriptors and a block is left out. */
	if (a->nr_frames % ARENA_CHUNK_PAGES < 1 << FOLIO_ORDER_MAX)
		a->nr_frames = align_down(a->nr_frames, ARENA_CHUNK_PAGES);
	for (at = 0; at < a->nr_frames; at = chunk_end(a, at))
		a->total += chunk_end(a, at) - chunk_first(a, at);
	a->reserve = min_of(a->total / RESERVE_SHARE, (uint64_t)RESERVE_MAX);
}

int arena_create(uint64_t size, bool populate,
		 void (*ready)(void *arg, void *addr, size_t len), void *arg,
		 struct arena **out)
{
	struct arena *a;
	unsigned i;
	int err;

	if (size < ARENA_SIZE_MIN)
		return -EINVAL;
	if (size > ARENA_SIZE_MAX)
		return -ENOMEM;
	a = mem_zalloc(sizeof(*a));
	if (!a)
		return -ENOMEM;
	mutex_init(&a->lock, LOCK_ARENA);
	waitq_init(&a->grown);
	for (i = 0; i < ORDERS; i++)
		CDS_INIT_LIST_HEAD(&a->free[i]);
	a->ready = ready;
	a->arg = arg;
	a->growing = true;
	measure(a, size);
	err = cells_init(a);
	if (err)
		goto out_free;
	err = reserve(a);
	if (err)
		goto out_cells;

	if (populate || a->nr_frames <= ARENA_CHUNK_PAGES) {
		grow_all(a);
	} else {
		grow(a, HEAD_PAGES);
		err = task_create(&a->task, "arena-grow", grow_all, a);
		if (err)
			goto out_unmap;
	}
	*out = a;
	return 0;

out_unmap:
	munmap(a->base, a->nr_frames * PAGE_SIZE);
out_cells:
	mem_free(a->cells);
out_free:
	mutex_fini(&a->lock);
	mem_free(a);
	return err;
}

void arena_destroy(struct arena *a)
{
	a->stop = true;
	if (a->task)
		task_join(a->task);
	assert(arena_free_pages(a) == a->nr_ready);
	munmap(a->base, a->nr_frames * PAGE_SIZE);
	mem_free(a->cells);
	mutex_fini(&a->lock);
	mem_free(a);
}

static void check_lists(struct arena *a)
{
	struct folio *f;
	uint64_t nr = 0;
	unsigned order;

	for (order = 0; order < ORDERS; order++) {
		cds_list_for_each_entry (f, &a->free[order], lru) {
			assert(load_state(f) == PAGE_FREE);
			assert(load_refs(f) == 0);
			assert(f->order == order);
			assert(frame_of(a, f) % (1ull << order) == 0);
			nr += 1ull << order;
		}
	}
	assert(nr == a->nr_free);
}

/* Invariants 1 to 3, from the side of the descriptors. */
static void check_descriptors(struct arena *a)
{
	uint64_t at = 0, nr = 0, i;
	struct folio *f;

	while (at < a->next) {
		at = max_of(at, chunk_first(a, at));
		if (at >= a->next)
			break;
		f = descriptor(a, at);
		if (!(load_state(f) & PAGE_FREE)) {
			at++;
			continue;
		}
		assert(f->order == FOLIO_ORDER_MAX ||
		       !buddy_of(a, at, f->order));
		for (i = 1; i < folio_nr_pages(f); i++) {
			assert(!(load_state(f + i) & (PAGE_FREE | PAGE_CELL)));
			assert(load_refs(f + i) == 0);
		}
		nr += folio_nr_pages(f);
		at += folio_nr_pages(f);
	}
	assert(nr == a->nr_free);
}

int arena_check(struct arena *a)
{
	struct cell *c;
	unsigned i;

	for (c = a->cells; c < a->cells + a->nr_cells; c++) {
		if (atomic_exchange_explicit(&c->busy, true,
					     memory_order_acquire))
			continue;
		assert(cell_nr(c) <= CELL_PAGES);
		for (i = 0; i < cell_nr(c); i++) {
			assert(load_state(c->pages[i]) == PAGE_CELL);
			assert(load_refs(c->pages[i]) == 0);
		}
		cell_unlock(c);
	}
	mutex_lock(&a->lock);
	check_lists(a);
	check_descriptors(a);
	mutex_unlock(&a->lock);
	return 0;
}

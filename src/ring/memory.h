/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * Memory registered with io_uring: one table for the ring, a view of it in
 * each queue's io_uring.
 *
 * The table is changed under the ring's lock; a view is its queue's and
 * catches up (memory_view_refresh) before entries are made, so that an entry
 * never names memory that was dropped. What was dropped stays pinned by a
 * queue until that queue is used again or ends.
 */
#ifndef TR_RING_MEMORY_H
#define TR_RING_MEMORY_H

#include "base/compiler.h"

#include <liburing.h>
#include <stdbool.h>
#include <tailrace/store.h>

struct memory;
struct ring;

/* u is any io_uring: the kernel is asked through it what it can do. */
int memory_create(struct io_uring *u, struct memory **out) MUST_CHECK;
void memory_destroy(struct memory *memory);

/* With the ring's lock held. As ring_add_memory(). */
int memory_add(struct memory *memory, void *addr, size_t len);
void memory_drop(struct memory *memory, void *addr, size_t len);
/* Tests: as on a kernel that cannot clone tables. */
void memory_forbid_clone(struct memory *memory);
/* What ring_describe() says. */
const char *memory_describe(const struct memory *memory);

struct memory_piece {
	uintptr_t addr;
	size_t len;
	unsigned slot;
};

/* Zeroed: nothing is registered. */
struct memory_view {
	uint64_t generation; /* of the table, when it was copied */
	struct memory_piece *pieces; /* by address */
	unsigned nr;
	bool vectored; /* READV_FIXED and WRITEV_FIXED are to be had */
	bool table; /* the io_uring has a table of its own, not a clone */
	uint64_t *serials; /* of what is in that table, by slot */
};

void memory_view_refresh(struct memory_view *view, struct ring *ring,
			 struct io_uring *u);
void memory_view_fini(struct memory_view *view);
/* Turns a readv or writev entry into a registered one if it can be. */
void memory_view_apply(const struct memory_view *view, struct io_uring_sqe *sqe,
		       const struct tr_io *io);

#endif

/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * Between the parts of ring/: what an engine is, and what the two share.
 */
#ifndef TR_RING_ENGINE_H
#define TR_RING_ENGINE_H

#include "ring/ring.h"

#include "base/lock.h"

#include <urcu/list.h>

struct ring_engine {
	int (*create)(struct ring *ring);
	void (*destroy)(struct ring *ring);
	int (*queue_create)(struct ring *ring, struct ring_queue **out);
	void (*queue_destroy)(struct ring_queue *q);
	/* As the public calls; queues keep nr_flight themselves. */
	void (*start)(struct ring_queue *q, struct tr_io *io);
	void (*submit)(struct ring_queue *q);
	unsigned (*wait)(struct ring_queue *q, unsigned min);
	/* Called with ring->lock held; may be NULL. */
	int (*add_memory)(struct ring *ring, void *addr, size_t len);
	void (*drop_memory)(struct ring *ring, void *addr, size_t len);
};

struct ring {
	const struct ring_engine *engine; /* (C) */
	int lock_fd; /* (C) */
	struct mutex lock; /* LOCK_RING: the engine's shared part */
	const char *description; /* (A): a constant text */
	void *private; /* (C) the engine's */
};

struct ring_queue {
	struct ring *ring;
};

extern const struct ring_engine ring_uring;
extern const struct ring_engine ring_threads;

/* The ring's words of a tr_io. */
struct ring_request {
	struct cds_list_head node;
	struct ring_queue *queue;
	int fd;
};

static inline struct ring_request *ring_request_of(struct tr_io *io)
{
	return (struct ring_request *)io->store_word;
}

static inline struct tr_io *ring_io_of(struct ring_request *r)
{
	return (struct tr_io *)((char *)r - offsetof(struct tr_io, store_word));
}

/*
 * Does what is left of the request after done bytes (0: all of it) with plain
 * system calls, and returns its result: all bytes read up to end of file, or
 * those written by one call.
 */
ssize_t ring_transfer(struct tr_io *io, size_t done);

#endif

/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * Device I/O on file descriptors, many requests in flight: io_uring, or where
 * that is not permitted a few threads with the same calls.
 *
 * A ring belongs to a store; ring_queue is one submitter's context, as struct
 * tr_queue: one thread at a time, completions run only in ring_wait(), never
 * in ring_start(), each exactly once. Queues of one ring are independent. A
 * queue may go to another thread when nothing is in flight on it; with
 * something in flight too, but then completions may wait for the thread that
 * submitted to enter the kernel.
 *
 * Memory known to the ring (ring_add_memory) is registered with the kernel
 * where possible; requests whose vectors all lie in one such piece then skip
 * the mapping of pages. Nothing else changes.
 */
#ifndef TR_RING_RING_H
#define TR_RING_RING_H

#include "base/compiler.h"

#include <tailrace/store.h>

struct ring;
struct ring_queue;

/*
 * lock_fd, if >= 0, is kept open by the kernel until the last request of every
 * queue has ended, even if the process is killed; it stays the caller's.
 * -ENOSYS: TR_ENGINE_URING and not to be had; -ENOMEM, -EAGAIN.
 */
int ring_create(enum tr_engine engine, int lock_fd,
		struct ring **out) MUST_CHECK;
/* No queue may be left. */
void ring_destroy(struct ring *ring);
/* "io_uring, registered"; constant text. */
const char *ring_describe(const struct ring *ring);

/* Pieces at most 1 GiB, not overlapping. -ENOSPC: too many; -EINVAL;
 * -ENOMEM, -ENOSYS: the kernel will not register it. */
int ring_add_memory(struct ring *ring, void *addr, size_t len);
/* No request to it may be in flight. */
void ring_drop_memory(struct ring *ring, void *addr, size_t len);

int ring_queue_create(struct ring *ring, struct ring_queue **out) MUST_CHECK;
/* Nothing may be in flight. */
void ring_queue_destroy(struct ring_queue *q);

/* Uses io->store_word and io->next. Reads go on until full or end of file. */
void ring_start(struct ring_queue *q, int fd, struct tr_io *io);
void ring_submit(struct ring_queue *q);
unsigned ring_wait(struct ring_queue *q, unsigned min);

#endif

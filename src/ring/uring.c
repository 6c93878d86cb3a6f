/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * The io_uring engine: one io_uring per queue.
 *
 * Happy path: start puts the request on the queue's backlog, submit makes
 * submission entries of the backlog and enters the kernel once, wait enters it
 * once more if not enough has completed, and runs completions.
 *
 * Failure modes: the kernel refuses entries for want of memory or because its
 * completions have not been taken (-EAGAIN, -EBUSY): they stay where they are
 * and are offered again by the next wait, after a pause if nothing is in
 * flight that could end it. A request that was interrupted, cancelled because
 * the thread that submitted it exited, or read short is finished by plain
 * system calls in wait.
 *
 * Invariants: nr_flight = backlog + entries not taken by the kernel + requests
 * in the kernel, from start until the completion runs. The lock's descriptor
 * is a registered file of every io_uring from its creation.
 */
#include "ring/engine.h"
#include "ring/memory.h"

#include "base/clock.h"
#include "base/mem.h"

#include <assert.h>
#include <errno.h>
#include <liburing.h>

/* Submission entries of a queue: a full batch of a flusher (io_depth is 256 at
 * most) in one to two calls. */
#define ENTRIES 128

/* Before offering entries again that the kernel had no memory for. */
#define PAUSE_NS NS_PER_MS

#ifndef IORING_SETUP_SUBMIT_ALL
#define IORING_SETUP_SUBMIT_ALL (1U << 7)
#endif
#ifndef IORING_SETUP_COOP_TASKRUN
#define IORING_SETUP_COOP_TASKRUN (1U << 8)
#endif
#ifndef IORING_SETUP_TASKRUN_FLAG
#define IORING_SETUP_TASKRUN_FLAG (1U << 9)
#endif

struct uring_queue {
	struct ring_queue base;
	struct io_uring u;
	struct cds_list_head backlog;
	unsigned nr_backlog;
	unsigned nr_flight;
	struct memory_view view;
};

static int uring_open(struct io_uring *u, int lock_fd)
{
	/*
	 * No interrupt of the submitting thread for each completion (5.19):
	 * it looks when it enters the kernel. Not SINGLE_ISSUER and
	 * DEFER_TASKRUN: those bind the ring to one thread for ever.
	 */
	static const unsigned flags[] = {
		IORING_SETUP_COOP_TASKRUN | IORING_SETUP_TASKRUN_FLAG |
			IORING_SETUP_SUBMIT_ALL,
		IORING_SETUP_SUBMIT_ALL,
		0,
	};
	int err = -ENOSYS;
	size_t i;

	for (i = 0; i < ARRAY_SIZE(flags); i++) {
		err = io_uring_queue_init(ENTRIES, u, flags[i]);
		if (err != -EINVAL)
			break;
	}
	if (err)
		return err;
	/* Without NODROP (5.5) completions could be lost. */
	if (!(u->features & IORING_FEAT_NODROP))
		err = -ENOSYS;
	if (!err && lock_fd >= 0)
		err = io_uring_register_files(u, &lock_fd, 1);
	if (err)
		io_uring_queue_exit(u);
	return err;
}

static int uring_create(struct ring *ring)
{
	struct memory *memory;
	struct io_uring u;
	int err;

	err = uring_open(&u, ring->lock_fd);
	if (err)
		return err;
	err = memory_create(&u, &memory);
	io_uring_queue_exit(&u);
	if (err)
		return err;
	ring->private = memory;
	ring->description = "io_uring";
	return 0;
}

static void uring_destroy(struct ring *ring)
{
	memory_destroy(ring->private);
}

static int uring_add_memory(struct ring *ring, void *addr, size_t len)
{
	int err = memory_add(ring->private, addr, len);

	if (!err)
		__atomic_store_n(&ring->description,
				 memory_describe(ring->private),
				 __ATOMIC_RELEASE);
	return err;
}

static void uring_drop_memory(struct ring *ring, void *addr, size_t len)
{
	memory_drop(ring->private, addr, len);
}

static int uring_queue_create(struct ring *ring, struct ring_queue **out)
{
	struct uring_queue *q = mem_zalloc(sizeof(*q));
	int err;

	if (!q)
		return -ENOMEM;
	err = uring_open(&q->u, ring->lock_fd);
	if (err) {
		mem_free(q);
		return err;
	}
	q->base.ring = ring;
	CDS_INIT_LIST_HEAD(&q->backlog);
	*out = &q->base;
	return 0;
}

static void uring_queue_destroy(struct ring_queue *base)
{
	struct uring_queue *q = (struct uring_queue *)base;

	assert(q->nr_flight == 0);
	io_uring_queue_exit(&q->u);
	memory_view_fini(&q->view);
	mem_free(q);
}

static void uring_start(struct ring_queue *base, struct tr_io *io)
{
	struct uring_queue *q = (struct uring_queue *)base;

	cds_list_add_tail(&ring_request_of(io)->node, &q->backlog);
	q->nr_backlog++;
	q->nr_flight++;
}

static void fill_entry(struct uring_queue *q, struct io_uring_sqe *sqe,
		       struct tr_io *io)
{
	int fd = ring_request_of(io)->fd;

	if (io->op == TR_IO_READ)
		io_uring_prep_readv(sqe, fd, io->iov, io->nr_iov, io->off);
	else
		io_uring_prep_writev(sqe, fd, io->iov, io->nr_iov, io->off);
	memory_view_apply(&q->view, sqe, io);
	io_uring_sqe_set_data(sqe, io);
}

/* Makes entries of the backlog; enters the kernel only for room. */
static void fill(struct uring_queue *q)
{
	struct io_uring_sqe *sqe;
	struct ring_request *r;

	if (!q->nr_backlog)
		return;
	memory_view_refresh(&q->view, q->base.ring, &q->u);
	while (q->nr_backlog) {
		sqe = io_uring_get_sqe(&q->u);
		if (!sqe && io_uring_submit(&q->u) <= 0)
			return;
		if (!sqe)
			continue;
		r = cds_list_first_entry(&q->backlog, struct ring_request,
					 node);
		cds_list_del(&r->node);
		q->nr_backlog--;
		fill_entry(q, sqe, ring_io_of(r));
	}
}

static void uring_submit(struct ring_queue *base)
{
	struct uring_queue *q = (struct uring_queue *)base;

	fill(q);
	/* An error leaves the entries to the next call. */
	if (io_uring_sq_ready(&q->u))
		(void)io_uring_submit(&q->u);
}

static ssize_t settle(struct tr_io *io, int res)
{
	if (res == -EINTR || res == -EAGAIN || res == -ECANCELED)
		return ring_transfer(io, 0);
	if (res > 0 && (size_t)res < io->len && io->op == TR_IO_READ)
		return ring_transfer(io, res);
	return res;
}

/* Runs the completions that are there; at most as many as were in flight. */
static unsigned reap(struct uring_queue *q)
{
	struct io_uring_cqe *cqe;
	unsigned nr = 0, max = q->nr_flight;
	struct tr_io *io;
	int res;

	while (nr < max && !io_uring_peek_cqe(&q->u, &cqe)) {
		io = io_uring_cqe_get_data(cqe);
		res = cqe->res;
		io_uring_cqe_seen(&q->u, cqe);
		io->result = settle(io, res);
		q->nr_flight--;
		nr++;
		io->done(io);
	}
	return nr;
}

/* Submits what is there and sleeps until nr more have completed, or less if
 * the kernel will not take all of it. */
static void submit_and_sleep(struct uring_queue *q, unsigned nr)
{
	unsigned inside = q->nr_flight - q->nr_backlog;
	struct io_uring_cqe *cqe;
	int err = -EAGAIN;

	if (inside)
		err = io_uring_submit_and_wait(&q->u, min_of(nr, inside));
	if (err >= 0 || err == -EINTR)
		return;
	/* What is in the kernel will make room; without that time may. */
	if (io_uring_sq_ready(&q->u) < inside)
		(void)io_uring_wait_cqe(&q->u, &cqe);
	else
		clock_sleep(PAUSE_NS);
}

static unsigned uring_wait(struct ring_queue *base, unsigned min)
{
	struct uring_queue *q = (struct uring_queue *)base;
	unsigned nr = 0;

	min = min_of(min, q->nr_flight);
	fill(q);
	if (io_uring_cq_ready(&q->u) >= min)
		uring_submit(base);
	for (;;) {
		nr += reap(q);
		if (nr >= min)
			return nr;
		fill(q);
		submit_and_sleep(q, min - nr);
	}
}

const struct ring_engine ring_uring = {
	.create = uring_create,
	.destroy = uring_destroy,
	.queue_create = uring_queue_create,
	.queue_destroy = uring_queue_destroy,
	.start = uring_start,
	.submit = uring_submit,
	.wait = uring_wait,
	.add_memory = uring_add_memory,
	.drop_memory = uring_drop_memory,
};

/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * A layer that adds a latency to each read, write and sync.
 *
 * Happy path: requests are passed on at once; what comes back is held for the
 * time of its kind and completed by the wait that is there then. A wait that
 * sleeps for one held request sees later what the store below has finished
 * meanwhile: the latency is a least, not an exact one.
 */
#include "store/layer.h"

#include "base/clock.h"
#include "base/mem.h"
#include "base/wait.h"

#include <errno.h>

struct delay_store {
	struct layer_store layer;
	uint64_t read_ns, write_ns, sync_ns;
};

struct delay_queue {
	struct layer_queue layer;
	struct tr_io *held; /* by the time in store_word[0], earliest first */
	struct waitq wq; /* slept on for time only */
};

static void delay_start(struct tr_queue *queue, struct tr_io *io)
{
	struct layer_queue *q = (struct layer_queue *)queue;

	q->nr_flight++;
	layer_pass(q, io, io->len);
}

static void delay_completed(struct layer_queue *queue, struct tr_io *io)
{
	struct delay_store *store = (struct delay_store *)queue->base.store;
	struct delay_queue *q = (struct delay_queue *)queue;
	struct tr_io **link = &q->held;

	io->store_word[0] =
		clock_ns() +
		(io->op == TR_IO_READ ? store->read_ns : store->write_ns);
	while (*link && (*link)->store_word[0] <= io->store_word[0])
		link = &(*link)->next;
	io->next = *link;
	*link = io;
}

static void run_due(struct delay_queue *q)
{
	uint64_t now = q->held ? clock_ns() : 0;
	struct tr_io *io;

	while ((io = q->held) && io->store_word[0] <= now) {
		q->held = io->next;
		layer_complete(&q->layer, io);
	}
}

static unsigned delay_wait(struct tr_queue *queue, unsigned min)
{
	struct delay_queue *q = (struct delay_queue *)queue;
	unsigned before = q->layer.nr_ran;

	min = min_of(min, q->layer.nr_flight);
	for (;;) {
		layer_poll(&q->layer, false);
		run_due(q);
		if (q->layer.nr_ran - before >= min)
			return q->layer.nr_ran - before;
		if (q->held)
			(void)wait_event_until(&q->wq, false,
					       q->held->store_word[0]);
		else if (q->layer.nr_lower)
			layer_poll(&q->layer, true);
	}
}

static void delay_queue_init(struct layer_queue *q)
{
	waitq_init(&((struct delay_queue *)q)->wq);
}

static int delay_sync(struct tr_store_file *file, bool datasync)
{
	struct delay_store *store = (struct delay_store *)file->store;

	if (store->sync_ns)
		clock_sleep(store->sync_ns);
	return layer_sync(file, datasync);
}

static void delay_destroy(struct tr_store *base)
{
	tr_store_destroy(((struct layer_store *)base)->lower);
	mem_free(base);
}

static const struct tr_store_ops delay_ops = {
	.name = "delay",
	.destroy = delay_destroy,
	.start = delay_start,
	.wait = delay_wait,
	.prepare = layer_prepare,
	.write_tail = layer_write_tail,
	.sync = delay_sync,
	LAYER_OPS,
};

int tr_store_delay_create(struct tr_store *lower, uint64_t read_ns,
			  uint64_t write_ns, uint64_t sync_ns,
			  struct tr_store **out)
{
	struct delay_store *store;

	if (!lower || !out)
		return -EINVAL;
	store = mem_zalloc(sizeof(*store));
	if (!store)
		return -ENOMEM;
	store->layer.base.ops = &delay_ops;
	store->layer.lower = lower;
	store->layer.queue_size = sizeof(struct delay_queue);
	store->layer.queue_init = delay_queue_init;
	store->layer.completed = delay_completed;
	store->read_ns = read_ns;
	store->write_ns = write_ns;
	store->sync_ns = sync_ns;
	*out = &store->layer.base;
	return 0;
}

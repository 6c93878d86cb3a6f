/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * A layer that fails requests on demand, for tests.
 *
 * Happy path: each request is counted under its kinds and passed on. The one
 * whose turn it is fails without reaching the store below, is written half, or
 * hangs: it is held until tr_store_fault_set() releases it, and then passed on
 * by the thread that waits on its queue.
 *
 * Invariants: what hangs is counted in nr_flight and on its queue's list, that
 * only the queue's thread touches; a release is seen by the number it raises.
 */
#include "store/layer.h"

#include "base/lock.h"
#include "base/mem.h"
#include "base/wait.h"

#include <errno.h>

struct fault {
	uint64_t nth; /* 0: off */
	uint64_t seen; /* since set */
	bool lasting;
	int error;
};

struct fault_store {
	struct layer_store layer;
	struct mutex lock;
	struct fault faults[TR_FAULT_KINDS] GUARDED(lock);
	atomic_uint releases;
	struct waitq released_wq;
};

struct fault_queue {
	struct layer_queue layer;
	struct layer_list hung;
	unsigned releases_seen;
};

/* Counts a request; -errno if it is to fail, else 0. */
static int hit(struct fault_store *store, enum tr_fault_kind kind)
{
	struct fault *f = &store->faults[kind];
	int err = 0;

	mutex_lock(&store->lock);
	f->seen++;
	if (f->nth && (f->seen == f->nth || (f->lasting && f->seen > f->nth)))
		err = -f->error;
	mutex_unlock(&store->lock);
	return err;
}

/* Half of the request in whole units of the store; 0 if it has but one. */
static size_t half_of(const struct tr_io *io)
{
	struct tr_store_attr attr;
	uint32_t unit = 1;

	if (!io->file->store->ops->getattr(io->file, &attr) &&
	    attr.offset_align)
		unit = attr.offset_align;
	return align_down(io->len / 2, unit);
}

static void fault_write(struct fault_store *store, struct fault_queue *q,
			struct tr_io *io)
{
	size_t half = half_of(io), len = io->len;
	int err;

	err = hit(store, TR_FAULT_WRITE);
	if (err) {
		layer_finish(&q->layer, io, err);
		return;
	}
	if (half && hit(store, TR_FAULT_SHORT_WRITE))
		len = half;
	if (hit(store, TR_FAULT_HANG))
		layer_list_add(&q->hung, io);
	else
		layer_pass(&q->layer, io, len);
}

static void fault_start(struct tr_queue *queue, struct tr_io *io)
{
	struct fault_store *store = (struct fault_store *)queue->store;
	struct fault_queue *q = (struct fault_queue *)queue;
	int err;

	q->layer.nr_flight++;
	if (io->op == TR_IO_WRITE) {
		fault_write(store, q, io);
		return;
	}
	err = hit(store, TR_FAULT_READ);
	if (err)
		layer_finish(&q->layer, io, err);
	else
		layer_pass(&q->layer, io, io->len);
}

static void pass_released(struct fault_store *store, struct fault_queue *q)
{
	unsigned releases = atomic_load(&store->releases);
	struct tr_io *io;

	if (releases == q->releases_seen)
		return;
	q->releases_seen = releases;
	while ((io = layer_list_take(&q->hung)))
		layer_pass(&q->layer, io, io->len);
}

static unsigned fault_wait(struct tr_queue *queue, unsigned min)
{
	struct fault_store *store = (struct fault_store *)queue->store;
	struct fault_queue *q = (struct fault_queue *)queue;
	unsigned before = q->layer.nr_ran;

	min = min_of(min, q->layer.nr_flight);
	for (;;) {
		pass_released(store, q);
		layer_poll(&q->layer, false);
		if (q->layer.nr_ran - before >= min)
			return q->layer.nr_ran - before;
		if (q->layer.nr_lower)
			layer_poll(&q->layer, true);
		else if (q->hung.nr && !q->layer.ready.nr)
			wait_event(&store->released_wq,
				   atomic_load(&store->releases) !=
					   q->releases_seen);
	}
}

static void fault_queue_init(struct layer_queue *q)
{
	struct fault_store *store = (struct fault_store *)q->base.store;

	((struct fault_queue *)q)->releases_seen =
		atomic_load(&store->releases);
}

static int fault_prepare(struct tr_store_file *file, int64_t off, size_t len,
			 int64_t floor, bool dense)
{
	int err = hit((struct fault_store *)file->store, TR_FAULT_PREPARE);

	return err ? err : layer_prepare(file, off, len, floor, dense);
}

static int fault_write_tail(struct tr_store_file *file, const void *buf,
			    size_t len, int64_t off)
{
	int err = hit((struct fault_store *)file->store, TR_FAULT_TAIL);

	return err ? err : layer_write_tail(file, buf, len, off);
}

static int fault_sync(struct tr_store_file *file, bool datasync)
{
	int err = hit((struct fault_store *)file->store, TR_FAULT_SYNC);

	return err ? err : layer_sync(file, datasync);
}

static void fault_destroy(struct tr_store *base)
{
	struct fault_store *store = (struct fault_store *)base;

	tr_store_destroy(store->layer.lower);
	mutex_fini(&store->lock);
	mem_free(store);
}

static const struct tr_store_ops fault_ops = {
	.name = "fault",
	.destroy = fault_destroy,
	.start = fault_start,
	.wait = fault_wait,
	.prepare = fault_prepare,
	.write_tail = fault_write_tail,
	.sync = fault_sync,
	LAYER_OPS,
};

int tr_store_fault_create(struct tr_store *lower, struct tr_store **out)
{
	struct fault_store *store;

	if (!lower || !out)
		return -EINVAL;
	store = mem_zalloc(sizeof(*store));
	if (!store)
		return -ENOMEM;
	store->layer.base.ops = &fault_ops;
	store->layer.lower = lower;
	store->layer.queue_size = sizeof(struct fault_queue);
	store->layer.queue_init = fault_queue_init;
	mutex_init(&store->lock, LOCK_STORE);
	waitq_init(&store->released_wq);
	*out = &store->layer.base;
	return 0;
}

void tr_store_fault_set(struct tr_store *base, enum tr_fault_kind kind,
			uint64_t nth, bool lasting, int error)
{
	struct fault_store *store = (struct fault_store *)base;

	mutex_lock(&store->lock);
	store->faults[kind] = (struct fault){
		.nth = nth,
		.lasting = lasting,
		/* Some kinds ignore it, none may take it for success. */
		.error = error ? error : EIO,
	};
	mutex_unlock(&store->lock);
	if (kind == TR_FAULT_HANG && nth == 0) {
		atomic_fetch_add(&store->releases, 1);
		waitq_wake_all(&store->released_wq);
	}
}

uint64_t tr_store_fault_count(struct tr_store *base, enum tr_fault_kind kind)
{
	struct fault_store *store = (struct fault_store *)base;
	uint64_t seen;

	mutex_lock(&store->lock);
	seen = store->faults[kind].seen;
	mutex_unlock(&store->lock);
	return seen;
}

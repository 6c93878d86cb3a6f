/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * What layers share: passing on.
 *
 * Happy path: layer_pass() makes a request for the store below of the one from
 * above and starts it; when it completes below, during the layer's wait, its
 * result goes into the one above, which the layer completes now or later.
 *
 * Failure modes: no memory for the copy, which is the request's result.
 *
 * Invariants: nr_flight = nr_lower + ready.nr + what the layer holds.
 */
#include "store/layer.h"

#include "base/mem.h"

#include <assert.h>
#include <errno.h>
#include <string.h>

/* A request from above, as the store below sees it. */
struct layer_io {
	struct tr_io io;
	struct tr_io *upper;
	struct layer_queue *queue;
	struct iovec iov[];
};

static struct tr_store *lower_of(struct tr_store *store)
{
	return ((struct layer_store *)store)->lower;
}

static struct tr_store_file *lower_file(struct tr_store_file *file)
{
	return ((struct layer_file *)file)->lower;
}

void layer_list_add(struct layer_list *list, struct tr_io *io)
{
	io->next = NULL;
	if (list->first)
		list->last->next = io;
	else
		list->first = io;
	list->last = io;
	list->nr++;
}

struct tr_io *layer_list_take(struct layer_list *list)
{
	struct tr_io *io = list->first;

	if (io) {
		list->first = io->next;
		list->nr--;
	}
	return io;
}

/* ---- requests ---- */

void layer_finish(struct layer_queue *q, struct tr_io *io, ssize_t result)
{
	io->result = result;
	layer_list_add(&q->ready, io);
}

void layer_complete(struct layer_queue *q, struct tr_io *io)
{
	q->nr_flight--;
	q->nr_ran++;
	io->done(io);
}

static void lower_done(struct tr_io *io)
{
	struct layer_io *one = (struct layer_io *)io;
	struct layer_queue *q = one->queue;
	struct layer_store *store = (struct layer_store *)q->base.store;
	struct tr_io *upper = one->upper;

	upper->result = io->result;
	mem_free(one);
	q->nr_lower--;
	if (store->completed)
		store->completed(q, upper);
	else
		layer_complete(q, upper);
}

void layer_pass(struct layer_queue *q, struct tr_io *io, size_t len)
{
	struct tr_store *lower = q->lower->store;
	struct layer_io *one;
	int i;

	one = mem_alloc(sizeof(*one) + io->nr_iov * sizeof(struct iovec));
	if (!one) {
		layer_finish(q, io, -ENOMEM);
		return;
	}
	memset(one, 0, sizeof(*one));
	one->io.op = io->op;
	one->io.file = lower_file(io->file);
	one->io.off = io->off;
	one->io.iov = one->iov;
	one->io.done = lower_done;
	one->upper = io;
	one->queue = q;
	for (i = 0; i < io->nr_iov && one->io.len < len; i++) {
		one->iov[i] = io->iov[i];
		one->iov[i].iov_len =
			min_of(io->iov[i].iov_len, len - one->io.len);
		one->io.len += one->iov[i].iov_len;
	}
	one->io.nr_iov = i;
	q->nr_lower++;
	lower->ops->start(q->lower, &one->io);
}

void layer_submit(struct tr_queue *queue)
{
	struct layer_queue *q = (struct layer_queue *)queue;

	q->lower->store->ops->submit(q->lower);
}

void layer_poll(struct layer_queue *q, bool sleep)
{
	struct tr_io *io;

	while ((io = layer_list_take(&q->ready)))
		layer_complete(q, io);
	(void)q->lower->store->ops->wait(q->lower, sleep ? 1 : 0);
}

int layer_queue_create(struct tr_store *base, struct tr_queue **out)
{
	struct layer_store *store = (struct layer_store *)base;
	struct layer_queue *q = mem_zalloc(store->queue_size);
	int err;

	if (!q)
		return -ENOMEM;
	err = store->lower->ops->queue_create(store->lower, &q->lower);
	if (err) {
		mem_free(q);
		return err;
	}
	q->base.store = base;
	if (store->queue_init)
		store->queue_init(q);
	*out = &q->base;
	return 0;
}

void layer_queue_destroy(struct tr_queue *queue)
{
	struct layer_queue *q = (struct layer_queue *)queue;

	assert(q->nr_flight == 0);
	q->lower->store->ops->queue_destroy(q->lower);
	mem_free(q);
}

/* ---- files ---- */

int layer_open(struct tr_store *store, const char *name, int flags, mode_t mode,
	       struct tr_store_file **out)
{
	struct tr_store *lower = lower_of(store);
	struct layer_file *file = mem_zalloc(sizeof(*file));
	int err;

	if (!file)
		return -ENOMEM;
	err = lower->ops->open(lower, name, flags, mode, &file->lower);
	if (err) {
		mem_free(file);
		return err;
	}
	file->base.store = store;
	*out = &file->base;
	return 0;
}

void layer_close(struct tr_store_file *file)
{
	struct tr_store_file *lower = lower_file(file);

	lower->store->ops->close(lower);
	mem_free(file);
}

int layer_getattr(struct tr_store_file *file, struct tr_store_attr *out)
{
	struct tr_store_file *lower = lower_file(file);

	return lower->store->ops->getattr(lower, out);
}

int layer_prepare(struct tr_store_file *file, int64_t off, size_t len,
		  int64_t floor, bool dense)
{
	struct tr_store_file *lower = lower_file(file);

	return lower->store->ops->prepare(lower, off, len, floor, dense);
}

int layer_write_tail(struct tr_store_file *file, const void *buf, size_t len,
		     int64_t off)
{
	struct tr_store_file *lower = lower_file(file);

	return lower->store->ops->write_tail(lower, buf, len, off);
}

int layer_sync(struct tr_store_file *file, bool datasync)
{
	struct tr_store_file *lower = lower_file(file);

	return lower->store->ops->sync(lower, datasync);
}

int layer_truncate(struct tr_store_file *file, int64_t size)
{
	struct tr_store_file *lower = lower_file(file);

	return lower->store->ops->truncate(lower, size);
}

int layer_punch(struct tr_store_file *file, int64_t off, int64_t len)
{
	struct tr_store_file *lower = lower_file(file);

	return lower->store->ops->punch(lower, off, len);
}

int layer_allocate(struct tr_store_file *file, int64_t off, int64_t len,
		   bool keep_size)
{
	struct tr_store_file *lower = lower_file(file);

	return lower->store->ops->allocate(lower, off, len, keep_size);
}

int layer_seek(struct tr_store_file *file, int64_t off, int whence,
	       int64_t *out)
{
	struct tr_store_file *lower = lower_file(file);

	return lower->store->ops->seek(lower, off, whence, out);
}

int layer_set_mtime(struct tr_store_file *file, struct timespec mtime)
{
	struct tr_store_file *lower = lower_file(file);

	if (!lower->store->ops->set_mtime)
		return 0;
	return lower->store->ops->set_mtime(lower, mtime);
}

/* ---- the store ---- */

int layer_space(struct tr_store *store, struct tr_store_space *out)
{
	return lower_of(store)->ops->space(lower_of(store), out);
}

int layer_add_memory(struct tr_store *store, void *addr, size_t len)
{
	struct tr_store *lower = lower_of(store);

	if (!lower->ops->add_memory)
		return -ENOSYS;
	return lower->ops->add_memory(lower, addr, len);
}

void layer_drop_memory(struct tr_store *store, void *addr, size_t len)
{
	struct tr_store *lower = lower_of(store);

	if (lower->ops->drop_memory)
		lower->ops->drop_memory(lower, addr, len);
}

const char *layer_describe(struct tr_store *store)
{
	struct tr_store *lower = lower_of(store);

	if (!lower->ops->describe)
		return lower->ops->name;
	return lower->ops->describe(lower);
}

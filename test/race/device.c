/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * The device of a scene.
 *
 * A request is in flight from start() on; its data moves when its submitter
 * waits, with a scheduling point before and after, so that everything may come
 * between. A sync makes durable what was there when it began, the harsher of
 * what a device may do.
 */
#include "device.h"

#include "base/explore.h"
#include "scene.h"

#include <stdlib.h>
#include <string.h>

struct device {
	struct tr_store base;
	struct tr_store_file file;
	uint32_t block;
	int64_t size, durable_size;
	struct cds_list_head queues;
	char data[SCENE_LEN], durable[SCENE_LEN];
};

struct queue {
	struct tr_queue base;
	struct cds_list_head node;
	struct tr_io *first; /* in flight, by next, oldest first */
};

static struct device *device_of(struct tr_store *store)
{
	return (struct device *)store;
}

static int device_open(struct tr_store *store, const char *name, int flags,
		       mode_t mode, struct tr_store_file **out)
{
	*out = &device_of(store)->file;
	return 0;
}

static void device_close(struct tr_store_file *file)
{
}

static int device_getattr(struct tr_store_file *file, struct tr_store_attr *out)
{
	struct device *d = device_of(file->store);

	*out = (struct tr_store_attr){ .id = { .ino = 1 },
				       .size = d->size,
				       .block = d->block,
				       .offset_align = d->block,
				       .mem_align = 512,
				       .read_align = d->block,
				       .nlink = 1 };
	return 0;
}

static int queue_create(struct tr_store *store, struct tr_queue **out)
{
	struct queue *q = calloc(1, sizeof(*q));

	q->base.store = store;
	cds_list_add(&q->node, &device_of(store)->queues);
	*out = &q->base;
	return 0;
}

static void queue_destroy(struct tr_queue *queue)
{
	struct queue *q = (struct queue *)queue;

	explore_assert(!q->first);
	cds_list_del(&q->node);
	free(q);
}

static void check_write(struct device *d, const struct tr_io *io)
{
	struct queue *q;
	struct tr_io *other;

	/* "A device write extends the file." */
	explore_assert(io->off + (int64_t)io->len <= d->size);
	cds_list_for_each_entry (q, &d->queues, node)
		for (other = q->first; other; other = other->next)
			/* "Two writes of one block are in flight." */
			explore_assert(
				other->op != TR_IO_WRITE ||
				other->off + other->len <= (uint64_t)io->off ||
				io->off + io->len <= (uint64_t)other->off);
}

static void queue_start(struct tr_queue *queue, struct tr_io *io)
{
	struct queue *q = (struct queue *)queue;
	struct tr_io **link = &q->first;

	if (io->op == TR_IO_WRITE)
		check_write(device_of(queue->store), io);
	while (*link)
		link = &(*link)->next;
	io->next = NULL;
	*link = io;
}

static void queue_submit(struct tr_queue *queue)
{
}

static void move_data(struct device *d, struct tr_io *io)
{
	int64_t left = d->size - io->off;
	char *at = d->data + io->off;

	explore_assert(io->off + io->len <= SCENE_LEN);
	io->result = io->op == TR_IO_WRITE
			     ? (int64_t)io->len
			     : max_of(min_of(left, (int64_t)io->len), 0l);
	if (io->op == TR_IO_WRITE)
		explore_assert(left >= (int64_t)io->len);
	left = io->result;
	for (int i = 0; i < io->nr_iov && left; i++) {
		size_t n = min_of(io->iov[i].iov_len, (size_t)left);

		if (io->op == TR_IO_WRITE)
			memcpy(at, io->iov[i].iov_base, n);
		else
			memcpy(io->iov[i].iov_base, at, n);
		at += n;
		left -= n;
	}
}

static unsigned queue_wait(struct tr_queue *queue, unsigned min)
{
	struct queue *q = (struct queue *)queue;
	unsigned nr = 0;

	while (nr < min && q->first) {
		struct tr_io *io = q->first;

		explore_point(&io->result);
		move_data(device_of(queue->store), io);
		explore_point(&io->result);
		q->first = io->next;
		io->done(io);
		nr++;
	}
	return nr;
}

static int device_prepare(struct tr_store_file *file, int64_t off, size_t len,
			  int64_t floor, bool dense)
{
	struct device *d = device_of(file->store);

	explore_point(&d->size);
	d->size = max_of(d->size, floor);
	explore_point(&d->size);
	return 0;
}

static int device_write_tail(struct tr_store_file *file, const void *buf,
			     size_t len, int64_t off)
{
	struct device *d = device_of(file->store);

	explore_point(&d->size);
	memcpy(d->data + off, buf, len);
	d->size = max_of(d->size, off + (int64_t)len);
	explore_point(&d->size);
	return 0;
}

static int device_sync(struct tr_store_file *file, bool datasync)
{
	struct device *d = device_of(file->store);

	explore_point(&d->durable_size);
	memcpy(d->durable, d->data, d->size);
	d->durable_size = d->size;
	explore_point(&d->durable_size);
	return 0;
}

static int device_truncate(struct tr_store_file *file, int64_t size)
{
	struct device *d = device_of(file->store);

	explore_point(&d->size);
	if (size < d->size)
		memset(d->data + size, 0, d->size - size);
	d->size = size;
	explore_point(&d->size);
	return 0;
}

static int device_punch(struct tr_store_file *file, int64_t off, int64_t len)
{
	struct device *d = device_of(file->store);

	explore_point(&d->size);
	memset(d->data + off, 0, max_of(min_of(len, d->size - off), 0l));
	explore_point(&d->size);
	return 0;
}

static void device_destroy(struct tr_store *store)
{
	explore_assert(cds_list_empty(&device_of(store)->queues));
	free(store);
}

static const struct tr_store_ops device_ops = {
	.name = "scene",
	.destroy = device_destroy,
	.open = device_open,
	.close = device_close,
	.getattr = device_getattr,
	.queue_create = queue_create,
	.queue_destroy = queue_destroy,
	.start = queue_start,
	.submit = queue_submit,
	.wait = queue_wait,
	.prepare = device_prepare,
	.write_tail = device_write_tail,
	.sync = device_sync,
	.truncate = device_truncate,
	.punch = device_punch,
};

struct tr_store *device_create(uint32_t block, int64_t size)
{
	struct device *d = calloc(1, sizeof(*d));

	d->base.ops = &device_ops;
	d->file.store = &d->base;
	d->block = block;
	d->size = d->durable_size = size;
	CDS_INIT_LIST_HEAD(&d->queues);
	memset(d->data, 'o', size);
	memset(d->durable, 'o', size);
	return &d->base;
}

const char *device_data(struct tr_store *store)
{
	return device_of(store)->data;
}

int64_t device_size(struct tr_store *store)
{
	return device_of(store)->size;
}

const char *device_durable(struct tr_store *store)
{
	return device_of(store)->durable;
}

bool device_all_durable(struct tr_store *store)
{
	struct device *d = device_of(store);

	return d->size == d->durable_size &&
	       !memcmp(d->data, d->durable, d->size);
}

/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Stores by the name of their kind, and requests without ceremony. Directories
 * for host stores are made below TR_TEST_DIR (else /var/tmp) and unlinked at
 * once when the store has them open where that suffices, else at exit.
 */
#include "lib/storetest.h"
#include "lib/test.h"

#include <fcntl.h>
#include <stdlib.h>
#include <string.h>

#define VECTOR_UNIT 4096

struct tr_store *storetest_open(const char *kind)
{
	struct tr_store *store = NULL;

	assert_string_equal(kind, "ram");
	assert_int_equal(tr_store_ram_create(NULL, &store), 0);
	return store;
}

struct tr_store_file *storetest_file(struct tr_store *store, const char *name)
{
	struct tr_store_file *file = NULL;

	assert_int_equal(store->ops->open(store, name,
					  O_RDWR | O_CREAT | O_TRUNC, 0600,
					  &file),
			 0);
	return file;
}

void *storetest_memory(size_t len)
{
	void *p = NULL;

	assert_int_equal(posix_memalign(&p, VECTOR_UNIT, len), 0);
	memset(p, 0, len);
	return p;
}

void storetest_prepare(struct tr_store_file *file, int64_t off, size_t len,
		       int64_t floor, bool dense)
{
	assert_int_equal(
		file->store->ops->prepare(file, off, len, floor, dense), 0);
}

static void count_done(struct tr_io *io)
{
	struct storetest_io *one = (struct storetest_io *)io;

	one->batch->nr_done++;
	io->done = NULL;
}

void storetest_batch_init(struct storetest_batch *batch, struct tr_store *store)
{
	memset(batch, 0, sizeof(*batch));
	assert_int_equal(store->ops->queue_create(store, &batch->queue), 0);
}

void storetest_start(struct storetest_batch *batch, enum tr_io_op op,
		     struct tr_store_file *file, void *buf, size_t len,
		     int64_t off, int nr_iov)
{
	struct storetest_io *one = &batch->ios[batch->nr++];
	size_t part = len / nr_iov / VECTOR_UNIT * VECTOR_UNIT, done = 0;
	int i;

	assert_true(batch->nr <= STORETEST_IOS && nr_iov <= STORETEST_VECTORS);
	for (i = 0; i < nr_iov; i++) {
		one->iov[i].iov_base = (char *)buf + done;
		one->iov[i].iov_len = i == nr_iov - 1 ? len - done : part;
		done += part;
	}
	one->batch = batch;
	one->io = (struct tr_io){
		.op = op,
		.file = file,
		.off = off,
		.iov = one->iov,
		.nr_iov = nr_iov,
		.len = len,
		.done = count_done,
	};
	batch->queue->store->ops->start(batch->queue, &one->io);
}

void storetest_finish(struct storetest_batch *batch)
{
	const struct tr_store_ops *ops = batch->queue->store->ops;

	ops->wait(batch->queue, batch->nr);
	assert_int_equal(batch->nr_done, batch->nr);
	assert_int_equal(ops->wait(batch->queue, 1), 0);
	ops->queue_destroy(batch->queue);
}

ssize_t storetest_io(struct tr_store_file *file, enum tr_io_op op, void *buf,
		     size_t len, int64_t off)
{
	struct storetest_batch batch;

	storetest_batch_init(&batch, file->store);
	storetest_start(&batch, op, file, buf, len, off, 1);
	storetest_finish(&batch);
	return batch.ios[0].io.result;
}

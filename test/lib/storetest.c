/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Stores by the name of their kind, and requests without ceremony. Directories
 * for host stores are made below TR_TEST_DIR (else /var/tmp).
 */
#include "lib/storetest.h"
#include "lib/test.h"

#include <errno.h>
#include <fcntl.h>
#include <ftw.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define VECTOR_UNIT 4096

static int remove_entry(const char *path, const struct stat *st, int type,
			struct FTW *ftw)
{
	return remove(path);
}

/*
 * A directory for a host store. It is gone from the tree once the next one is
 * asked for or the program exits; the store goes on with what it has open.
 */
static char dir[256];

static void remove_dir(void)
{
	if (dir[0])
		(void)nftw(dir, remove_entry, 8, FTW_DEPTH | FTW_PHYS);
	dir[0] = '\0';
}

const char *storetest_dir(void)
{
	static bool at_exit;
	const char *top = getenv("TR_TEST_DIR");

	if (!at_exit)
		atexit(remove_dir);
	at_exit = true;
	remove_dir();
	snprintf(dir, sizeof(dir), "%s/tailrace-XXXXXX",
		 top ? top : "/var/tmp");
	assert_non_null(mkdtemp(dir));
	return dir;
}

struct tr_store *storetest_host(const char *path, enum tr_engine engine)
{
	struct tr_host_options options = {
		.struct_size = sizeof(options),
		.engine = engine,
	};
	struct tr_store *store = NULL;
	int err = tr_store_host_open(path, &options, &store);

	if (err == -ENOSYS && engine == TR_ENGINE_URING)
		skip();
	assert_int_equal(err, 0);
	return store;
}

struct tr_store *storetest_open(const char *kind)
{
	struct tr_store *store = NULL, *lower;

	if (!strcmp(kind, "layers")) {
		lower = storetest_open("ram");
		assert_int_equal(tr_store_delay_create(lower, 1, 2, 3, &lower),
				 0);
		assert_int_equal(tr_store_fault_create(lower, &store), 0);
		return store;
	}
	if (!strcmp(kind, "uring"))
		return storetest_host(storetest_dir(), TR_ENGINE_URING);
	if (!strcmp(kind, "threads"))
		return storetest_host(storetest_dir(), TR_ENGINE_THREADS);
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

/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Goal: every store does what store.h says. Method: the same cases over each
 * kind of store, through its operations alone.
 */
#include "base/mem.h"
#include "lib/storetest.h"
#include "lib/test.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define MIB (1024 * 1024)

/* What the cases run over now. */
static const char *kind;

static struct tr_store_attr attr_of(struct tr_store_file *file)
{
	struct tr_store_attr attr;

	assert_int_equal(file->store->ops->getattr(file, &attr), 0);
	return attr;
}

static void open_flags(void **state)
{
	struct tr_store *store = storetest_open(kind);
	struct tr_store_file *a, *b;

	assert_int_equal(store->ops->open(store, "new", O_RDWR, 0600, &a),
			 -ENOENT);
	a = storetest_file(store, "new");
	assert_int_equal(store->ops->open(store, "new",
					  O_RDWR | O_CREAT | O_EXCL, 0600, &b),
			 -EEXIST);
	assert_int_equal(store->ops->truncate(a, 5), 0);
	assert_int_equal(store->ops->open(store, "new", O_RDONLY, 0, &b), 0);
	assert_int_equal(attr_of(b).size, 5);
	assert_int_equal(attr_of(a).id.dev, attr_of(b).id.dev);
	assert_int_equal(attr_of(a).id.ino, attr_of(b).id.ino);
	assert_int_equal(attr_of(a).id.generation, attr_of(b).id.generation);
	store->ops->close(b);
	assert_int_equal(
		store->ops->open(store, "new", O_RDWR | O_TRUNC, 0, &b), 0);
	assert_int_equal(attr_of(b).size, 0);
	store->ops->close(b);
	store->ops->close(a);
	tr_store_destroy(store);
}

static void attr_makes_sense(void **state)
{
	struct tr_store *store = storetest_open(kind);
	struct tr_store_file *file = storetest_file(store, "f");
	struct tr_store_attr attr = attr_of(file);
	struct tr_store_space space;

	assert_true(attr.block >= 512 && !(attr.block & (attr.block - 1)));
	assert_true(attr.offset_align <= attr.block);
	assert_int_equal(attr.size, 0);
	assert_int_equal(store->ops->space(store, &space), 0);
	assert_true(space.available <= space.total);
	assert_true(!store->ops->describe || store->ops->describe(store)[0]);
	store->ops->close(file);
	tr_store_destroy(store);
}

/* Many requests at once, of many vectors, back as they were written. */
static void write_then_read(void **state)
{
	struct tr_store *store = storetest_open(kind);
	struct tr_store_file *file = storetest_file(store, "f");
	unsigned char *out = storetest_memory(4 * MIB);
	unsigned char *in = storetest_memory(4 * MIB);
	struct storetest_batch batch;
	size_t i;

	for (i = 0; i < 4 * MIB; i++)
		out[i] = (i * 2654435761u) >> 13;
	storetest_prepare(file, 0, 4 * MIB, 4 * MIB, true);
	storetest_batch_init(&batch, store);
	for (i = 0; i < 16; i++)
		storetest_start(&batch, TR_IO_WRITE, file, out + i * (MIB / 4),
				MIB / 4, i * (MIB / 4), 1 + i * 4);
	storetest_finish(&batch);
	for (i = 0; i < 16; i++)
		assert_int_equal(batch.ios[i].io.result, MIB / 4);
	storetest_batch_init(&batch, store);
	for (i = 0; i < 16; i++)
		storetest_start(&batch, TR_IO_READ, file, in + i * (MIB / 4),
				MIB / 4, i * (MIB / 4), 64 - i * 4);
	storetest_finish(&batch);
	assert_memory_equal(in, out, 4 * MIB);
	assert_int_equal(attr_of(file).size, 4 * MIB);
	assert_int_equal(store->ops->sync(file, false), 0);
	free(in);
	free(out);
	store->ops->close(file);
	tr_store_destroy(store);
}

static void read_is_short_at_end_only(void **state)
{
	struct tr_store *store = storetest_open(kind);
	struct tr_store_file *file = storetest_file(store, "f");
	uint32_t block = attr_of(file).block;
	unsigned char *buf = storetest_memory(4 * block);

	memset(buf, 7, 4 * block);
	storetest_prepare(file, 0, block, block, false);
	assert_int_equal(storetest_io(file, TR_IO_WRITE, buf, block, 0), block);
	memset(buf, 9, block);
	assert_int_equal(store->ops->write_tail(file, buf, 100, block), 0);
	assert_int_equal(attr_of(file).size, block + 100);
	assert_int_equal(storetest_io(file, TR_IO_READ, buf, 4 * block, 0),
			 block + 100);
	assert_int_equal(buf[block - 1], 7);
	assert_int_equal(buf[block], 9);
	assert_int_equal(storetest_io(file, TR_IO_READ, buf, block, 4 * block),
			 0);
	free(buf);
	store->ops->close(file);
	tr_store_destroy(store);
}

/* A tail that grows by and by, then is full and written as a block. */
static void tail_becomes_a_block(void **state)
{
	struct tr_store *store = storetest_open(kind);
	struct tr_store_file *file = storetest_file(store, "f");
	uint32_t block = attr_of(file).block, n;
	unsigned char *buf = storetest_memory(2 * block);

	memset(buf, 3, 2 * block);
	for (n = 1; n < block; n += 100) {
		assert_int_equal(store->ops->write_tail(file, buf, n, 0), 0);
		assert_int_equal(attr_of(file).size, n);
	}
	memset(buf, 4, block);
	storetest_prepare(file, 0, block, block, true);
	assert_int_equal(storetest_io(file, TR_IO_WRITE, buf, block, 0), block);
	assert_int_equal(store->ops->write_tail(file, buf + block, 1, block),
			 0);
	assert_int_equal(attr_of(file).size, block + 1);
	assert_int_equal(store->ops->sync(file, true), 0);
	memset(buf, 0, 2 * block);
	assert_int_equal(storetest_io(file, TR_IO_READ, buf, 2 * block, 0),
			 block + 1);
	assert_int_equal(buf[0], 4);
	assert_int_equal(buf[block - 1], 4);
	assert_int_equal(buf[block], 3);
	free(buf);
	store->ops->close(file);
	tr_store_destroy(store);
}

static void prepare_never_exceeds_floor(void **state)
{
	struct tr_store *store = storetest_open(kind);
	struct tr_store_file *file = storetest_file(store, "f");
	uint32_t block = attr_of(file).block;

	storetest_prepare(file, 0, 8 * block, 4 * block, true);
	assert_int_equal(attr_of(file).size, 4 * block);
	storetest_prepare(file, 0, block, 2 * block, false);
	assert_int_equal(attr_of(file).size, 4 * block);
	assert_int_equal(store->ops->truncate(file, block + 1), 0);
	assert_int_equal(attr_of(file).size, block + 1);
	storetest_prepare(file, block, block, 2 * block, true);
	assert_int_equal(attr_of(file).size, 2 * block);
	store->ops->close(file);
	tr_store_destroy(store);
}

static void truncated_bytes_are_zeros(void **state)
{
	struct tr_store *store = storetest_open(kind);
	struct tr_store_file *file = storetest_file(store, "f");
	uint32_t block = attr_of(file).block;
	unsigned char *buf = storetest_memory(4 * block);
	size_t i;

	memset(buf, 5, 4 * block);
	storetest_prepare(file, 0, 4 * block, 4 * block, false);
	assert_int_equal(storetest_io(file, TR_IO_WRITE, buf, 4 * block, 0),
			 4 * block);
	assert_int_equal(store->ops->truncate(file, block + 10), 0);
	assert_int_equal(store->ops->truncate(file, 3 * block), 0);
	assert_int_equal(storetest_io(file, TR_IO_READ, buf, 4 * block, 0),
			 3 * block);
	for (i = 0; i < 3 * block; i++)
		assert_int_equal(buf[i], i < block + 10 ? 5 : 0);
	free(buf);
	store->ops->close(file);
	tr_store_destroy(store);
}

static void holes(void **state)
{
	struct tr_store *store = storetest_open(kind);
	struct tr_store_file *file = storetest_file(store, "f");
	uint32_t unit = 65536;
	unsigned char *buf = storetest_memory(unit);
	int64_t where = -1;

	memset(buf, 6, unit);
	storetest_prepare(file, 4 * unit, unit, 8 * unit, false);
	assert_int_equal(storetest_io(file, TR_IO_WRITE, buf, unit, 4 * unit),
			 unit);
	assert_int_equal(store->ops->sync(file, false), 0);
	assert_int_equal(store->ops->seek(file, 0, SEEK_DATA, &where), 0);
	assert_int_equal(where, 4 * unit);
	assert_int_equal(store->ops->seek(file, where, SEEK_HOLE, &where), 0);
	assert_int_equal(where, 5 * unit);
	assert_int_equal(store->ops->seek(file, 8 * unit, SEEK_HOLE, &where),
			 -ENXIO);
	assert_int_equal(store->ops->seek(file, 5 * unit, SEEK_DATA, &where),
			 -ENXIO);
	assert_int_equal(store->ops->punch(file, 4 * unit, unit), 0);
	assert_int_equal(store->ops->seek(file, 0, SEEK_DATA, &where), -ENXIO);
	assert_int_equal(storetest_io(file, TR_IO_READ, buf, unit, 4 * unit),
			 unit);
	assert_int_equal(buf[0] | buf[unit - 1], 0);
	assert_int_equal(attr_of(file).size, 8 * unit);
	free(buf);
	store->ops->close(file);
	tr_store_destroy(store);
}

static void allocate_and_mtime(void **state)
{
	struct tr_store *store = storetest_open(kind);
	struct tr_store_file *file = storetest_file(store, "f");
	struct timespec t = { 1000000000, 123456789 };

	assert_int_equal(store->ops->allocate(file, 0, 100000, true), 0);
	assert_int_equal(attr_of(file).size, 0);
	assert_int_equal(store->ops->allocate(file, 0, 100001, false), 0);
	assert_int_equal(attr_of(file).size, 100001);
	assert_int_equal(store->ops->allocate(file, -1, 1, false), -EINVAL);
	if (store->ops->set_mtime) {
		assert_int_equal(store->ops->set_mtime(file, t), 0);
		assert_int_equal(attr_of(file).mtime.tv_sec, t.tv_sec);
		assert_int_equal(attr_of(file).mtime.tv_nsec, t.tv_nsec);
	}
	store->ops->close(file);
	tr_store_destroy(store);
}

/* min 0 never sleeps; more than are in flight is all of them. */
static void wait_counts(void **state)
{
	struct tr_store *store = storetest_open(kind);
	struct tr_store_file *file = storetest_file(store, "f");
	unsigned char *buf = storetest_memory(MIB);
	struct storetest_batch batch;
	unsigned i, nr = 0;

	memset(buf, 1, MIB);
	storetest_prepare(file, 0, MIB, MIB, true);
	storetest_batch_init(&batch, store);
	assert_int_equal(store->ops->wait(batch.queue, 0), 0);
	assert_int_equal(store->ops->wait(batch.queue, 9), 0);
	for (i = 0; i < 16; i++)
		storetest_start(&batch, TR_IO_WRITE, file, buf + i * 65536,
				65536, i * 65536, 1);
	store->ops->submit(batch.queue);
	nr = store->ops->wait(batch.queue, 1);
	assert_true(nr >= 1);
	nr += store->ops->wait(batch.queue, 0);
	nr += store->ops->wait(batch.queue, 100);
	assert_int_equal(nr, 16);
	storetest_finish(&batch);
	free(buf);
	store->ops->close(file);
	tr_store_destroy(store);
}

static void count_up(struct tr_io *io)
{
	io->next = NULL;
	++*(unsigned *)(io + 1);
}

/* A file made, written, read and truncated; the first error met. */
static int small_workload(struct tr_store *store, void *buf)
{
	const struct tr_store_ops *ops = store->ops;
	struct iovec iov = { buf, 65536 };
	struct {
		struct tr_io io;
		unsigned nr_done;
	} one = { 0 };
	struct tr_store_file *file;
	struct tr_queue *queue;
	int err, op;

	err = ops->open(store, "f", O_RDWR | O_CREAT, 0600, &file);
	if (err)
		return err;
	err = ops->queue_create(store, &queue);
	if (err)
		goto close;
	err = ops->prepare(file, 0, 65536, 65536, true);
	for (op = TR_IO_READ; !err && op <= TR_IO_WRITE; op++) {
		one.io = (struct tr_io){ .op = op,
					 .file = file,
					 .iov = &iov,
					 .nr_iov = 1,
					 .len = 65536,
					 .done = count_up };
		one.nr_done = 0;
		ops->start(queue, &one.io);
		assert_int_equal(ops->wait(queue, 1), 1);
		assert_int_equal(one.nr_done, 1);
		if (one.io.result < 0)
			err = one.io.result;
		/* Short for want of memory in the middle. */
		else if (one.io.result != 65536)
			err = -ENOMEM;
	}
	ops->queue_destroy(queue);
	if (!err)
		err = ops->write_tail(file, buf, 100, 65536);
	if (!err)
		err = ops->sync(file, true);
	if (!err)
		err = ops->truncate(file, 10);
close:
	ops->close(file);
	return err;
}

/* Every allocation fails once, then all from it on. */
static void memory_fails(void **state)
{
	struct tr_store *store = storetest_open(kind);
	void *buf = storetest_memory(65536);
	int lasting, err = 0;
	uint64_t n;

	for (lasting = 0; lasting <= 1; lasting++) {
		for (n = 1;; n++) {
			assert_true(n < 1000);
			mem_fail_at(n, lasting);
			err = small_workload(store, buf);
			if (mem_fail_at(0, false) < n)
				break;
			assert_true(err == 0 || err == -ENOMEM);
		}
		assert_int_equal(err, 0);
	}
	free(buf);
	tr_store_destroy(store);
}

static int create_kind(const char *dir, struct tr_store **out)
{
	struct tr_host_options options = {
		.struct_size = sizeof(options),
		.engine = strcmp(kind, "uring") ? TR_ENGINE_THREADS
						: TR_ENGINE_URING,
	};
	struct tr_store *lower;
	int err;

	if (!strcmp(kind, "uring") || !strcmp(kind, "threads"))
		return tr_store_host_open(dir, &options, out);
	err = tr_store_ram_create(NULL, out);
	if (err || strcmp(kind, "layers"))
		return err;
	lower = *out;
	err = tr_store_delay_create(lower, 1, 1, 1, out);
	if (!err) {
		lower = *out;
		err = tr_store_fault_create(lower, out);
	}
	if (err)
		tr_store_destroy(lower);
	return err;
}

/* So does making the store; nothing is left of one that was not made. */
static void creation_fails(void **state)
{
	const char *dir = storetest_dir();
	struct tr_store *store;
	uint64_t n;
	int err;

	for (n = 1;; n++) {
		assert_true(n < 100);
		mem_fail_at(n, false);
		err = create_kind(dir, &store);
		if (mem_fail_at(0, false) < n)
			break;
		assert_true(err == -ENOMEM || err == -EAGAIN);
	}
	if (err == -ENOSYS)
		skip();
	assert_int_equal(err, 0);
	tr_store_destroy(store);
}

int main(void)
{
	static const char *const kinds[] = { "ram", "layers", "uring",
					     "threads" };
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(open_flags),
		cmocka_unit_test(attr_makes_sense),
		cmocka_unit_test(write_then_read),
		cmocka_unit_test(read_is_short_at_end_only),
		cmocka_unit_test(tail_becomes_a_block),
		cmocka_unit_test(prepare_never_exceeds_floor),
		cmocka_unit_test(truncated_bytes_are_zeros),
		cmocka_unit_test(holes),
		cmocka_unit_test(allocate_and_mtime),
		cmocka_unit_test(wait_counts),
		cmocka_unit_test(memory_fails),
		cmocka_unit_test(creation_fails),
	};
	int failed = 0;
	size_t i;

	for (i = 0; i < sizeof(kinds) / sizeof(kinds[0]); i++) {
		kind = kinds[i];
		failed += _cmocka_run_group_tests(
			kind, tests, sizeof(tests) / sizeof(tests[0]),
			leak_setup, leak_check);
	}
	return failed;
}

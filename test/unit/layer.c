/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Goal: the layers fail, hang and delay what they were told and nothing else.
 * Method: each kind set once and lastingly over a ram store; a hung write
 * released from another task; times compared with the clock.
 */
#include "base/clock.h"
#include "base/task.h"
#include "lib/storetest.h"
#include "lib/test.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#define BLOCK 4096

struct fixture {
	struct tr_store *store;
	struct tr_store_file *file;
	unsigned char *buf;
};

static struct fixture over_ram(void)
{
	struct tr_store *ram = storetest_open("ram");
	struct fixture f;

	assert_int_equal(tr_store_fault_create(ram, &f.store), 0);
	f.file = storetest_file(f.store, "f");
	f.buf = storetest_memory(4 * BLOCK);
	storetest_prepare(f.file, 0, 4 * BLOCK, 4 * BLOCK, true);
	return f;
}

static void end(struct fixture *f)
{
	free(f->buf);
	f->store->ops->close(f->file);
	tr_store_destroy(f->store);
}

static void nth_fails(void **state)
{
	struct fixture f = over_ram();

	tr_store_fault_set(f.store, TR_FAULT_WRITE, 2, false, ENOSPC);
	assert_int_equal(storetest_io(f.file, TR_IO_WRITE, f.buf, BLOCK, 0),
			 BLOCK);
	assert_int_equal(storetest_io(f.file, TR_IO_WRITE, f.buf, BLOCK, 0),
			 -ENOSPC);
	assert_int_equal(storetest_io(f.file, TR_IO_WRITE, f.buf, BLOCK, 0),
			 BLOCK);
	assert_int_equal(tr_store_fault_count(f.store, TR_FAULT_WRITE), 3);
	tr_store_fault_set(f.store, TR_FAULT_READ, 1, true, EIO);
	assert_int_equal(storetest_io(f.file, TR_IO_READ, f.buf, BLOCK, 0),
			 -EIO);
	assert_int_equal(storetest_io(f.file, TR_IO_READ, f.buf, BLOCK, 0),
			 -EIO);
	tr_store_fault_set(f.store, TR_FAULT_READ, 0, false, 0);
	assert_int_equal(storetest_io(f.file, TR_IO_READ, f.buf, BLOCK, 0),
			 BLOCK);
	end(&f);
}

static void calls_fail(void **state)
{
	struct fixture f = over_ram();
	const struct tr_store_ops *ops = f.store->ops;

	tr_store_fault_set(f.store, TR_FAULT_SYNC, 1, false, EIO);
	tr_store_fault_set(f.store, TR_FAULT_PREPARE, 1, false, EDQUOT);
	tr_store_fault_set(f.store, TR_FAULT_TAIL, 1, false, ENOSPC);
	assert_int_equal(ops->sync(f.file, true), -EIO);
	assert_int_equal(ops->sync(f.file, true), 0);
	assert_int_equal(ops->prepare(f.file, 0, BLOCK, BLOCK, false), -EDQUOT);
	assert_int_equal(ops->prepare(f.file, 0, BLOCK, BLOCK, false), 0);
	assert_int_equal(ops->write_tail(f.file, f.buf, 1, 4 * BLOCK), -ENOSPC);
	assert_int_equal(ops->write_tail(f.file, f.buf, 1, 4 * BLOCK), 0);
	end(&f);
}

static void half_is_written(void **state)
{
	struct fixture f = over_ram();
	unsigned char got[3 * BLOCK];
	struct storetest_batch batch;

	memset(f.buf, 1, 4 * BLOCK);
	tr_store_fault_set(f.store, TR_FAULT_SHORT_WRITE, 1, false, 0);
	/* One block has no half: it does not count. */
	assert_int_equal(storetest_io(f.file, TR_IO_WRITE, f.buf, BLOCK,
				      3 * BLOCK),
			 BLOCK);
	storetest_batch_init(&batch, f.store);
	storetest_start(&batch, TR_IO_WRITE, f.file, f.buf, 3 * BLOCK, 0, 3);
	storetest_finish(&batch);
	assert_int_equal(batch.ios[0].io.result, BLOCK);
	assert_int_equal(storetest_io(f.file, TR_IO_READ, f.buf, 3 * BLOCK, 0),
			 3 * BLOCK);
	memcpy(got, f.buf, sizeof(got));
	assert_int_equal(got[BLOCK - 1], 1);
	assert_int_equal(got[BLOCK], 0);
	end(&f);
}

static void release(void *arg)
{
	struct tr_store *store = arg;

	tr_store_fault_set(store, TR_FAULT_HANG, 0, false, 0);
}

static void hang_is_released(void **state)
{
	struct fixture f = over_ram();
	struct storetest_batch batch;
	struct task *task;

	tr_store_fault_set(f.store, TR_FAULT_HANG, 2, false, 0);
	storetest_batch_init(&batch, f.store);
	storetest_start(&batch, TR_IO_WRITE, f.file, f.buf, BLOCK, 0, 1);
	storetest_start(&batch, TR_IO_WRITE, f.file, f.buf, BLOCK, BLOCK, 1);
	assert_int_equal(f.store->ops->wait(batch.queue, 1), 1);
	assert_int_equal(f.store->ops->wait(batch.queue, 0), 0);
	assert_int_equal(batch.nr_done, 1);
	assert_int_equal(task_create(&task, "release", release, f.store), 0);
	storetest_finish(&batch);
	task_join(task);
	assert_int_equal(batch.ios[1].io.result, BLOCK);
	end(&f);
}

static void delay_is_kept(void **state)
{
	struct tr_store *store = storetest_open("ram");
	struct tr_store_file *file;
	uint64_t start;
	void *buf = storetest_memory(BLOCK);

	assert_int_equal(tr_store_delay_create(store, 2 * NS_PER_MS,
					       4 * NS_PER_MS, 6 * NS_PER_MS,
					       &store),
			 0);
	file = storetest_file(store, "f");
	storetest_prepare(file, 0, BLOCK, BLOCK, false);
	start = clock_ns();
	assert_int_equal(storetest_io(file, TR_IO_WRITE, buf, BLOCK, 0), BLOCK);
	assert_true(clock_ns() - start >= 4 * NS_PER_MS);
	start = clock_ns();
	assert_int_equal(storetest_io(file, TR_IO_READ, buf, BLOCK, 0), BLOCK);
	assert_true(clock_ns() - start >= 2 * NS_PER_MS);
	start = clock_ns();
	assert_int_equal(store->ops->sync(file, true), 0);
	assert_true(clock_ns() - start >= 6 * NS_PER_MS);
	free(buf);
	store->ops->close(file);
	tr_store_destroy(store);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(nth_fails),
		cmocka_unit_test(calls_fail),
		cmocka_unit_test(half_is_written),
		cmocka_unit_test(hang_is_released),
		cmocka_unit_test(delay_is_kept),
	};

	return cmocka_run_group_tests(tests, leak_setup, leak_check);
}

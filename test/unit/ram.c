/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Goal: the emulated device loses only what it may, counts what it must see,
 * and does the same again with the same seed. Method: crashes with many seeds
 * compared with what was synced; deliberate misuse counted.
 */
#include "lib/storetest.h"
#include "lib/test.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define BLOCK 4096
#define NR 16

static struct tr_store *device(struct tr_ram_options options)
{
	struct tr_store *store = NULL;

	options.struct_size = sizeof(options);
	assert_int_equal(tr_store_ram_create(&options, &store), 0);
	return store;
}

static void fill(struct tr_store_file *file, unsigned char *buf, int value)
{
	memset(buf, value, NR * BLOCK);
	storetest_prepare(file, 0, NR * BLOCK, NR * BLOCK, false);
	assert_int_equal(storetest_io(file, TR_IO_WRITE, buf, NR * BLOCK, 0),
			 NR * BLOCK);
}

/* How a block looks after a crash between 1 (synced) and 2 (not). */
enum { OLD, NEW, TORN, KINDS };
static int kind_of(const unsigned char *block)
{
	int seen[3] = { 0 }, i;

	for (i = 0; i < BLOCK; i++) {
		assert_true(block[i] == 1 || block[i] == 2);
		assert_int_equal(block[i], block[i / 512 * 512]);
		seen[block[i]]++;
	}
	return !seen[2] ? OLD : !seen[1] ? NEW : TORN;
}

static void crash_with_seed(uint64_t seed, unsigned char *buf, int *count)
{
	struct tr_store *store = device((struct tr_ram_options){
		.volatile_cache = true, .seed = seed });
	struct tr_store_file *file = storetest_file(store, "f");
	int i;

	fill(file, buf, 1);
	assert_int_equal(store->ops->sync(file, true), 0);
	fill(file, buf, 2);
	tr_store_ram_crash(store);
	assert_int_equal(tr_store_ram_peek(store, "f", buf, NR * BLOCK, 0),
			 NR * BLOCK);
	for (i = 0; i < NR; i++)
		count[kind_of(buf + i * BLOCK)]++;
	store->ops->close(file);
	tr_store_destroy(store);
}

static void crash_keeps_what_was_synced(void **state)
{
	unsigned char *buf = storetest_memory(NR * BLOCK);
	unsigned char *again = storetest_memory(NR * BLOCK);
	int count[KINDS] = { 0 };
	uint64_t seed;

	for (seed = 0; seed < 20; seed++) {
		crash_with_seed(seed, buf, count);
		crash_with_seed(seed, again, count);
		assert_memory_equal(buf, again, NR * BLOCK);
	}
	assert_true(count[OLD] && count[NEW] && count[TORN]);
	free(buf);
	free(again);
}

/* Size changes and holes come undone as well, in whole. */
static void crash_undoes_truncate(void **state)
{
	unsigned char *buf = storetest_memory(NR * BLOCK);
	struct tr_store_attr attr;
	int undone = 0, kept = 0, i;
	uint64_t seed;

	for (seed = 0; seed < 20; seed++) {
		struct tr_store *store = device((struct tr_ram_options){
			.volatile_cache = true, .seed = seed });
		struct tr_store_file *file = storetest_file(store, "f");

		fill(file, buf, 7);
		assert_int_equal(store->ops->sync(file, false), 0);
		assert_int_equal(store->ops->truncate(file, 100), 0);
		assert_int_equal(store->ops->punch(file, 0, 50), 0);
		tr_store_ram_crash(store);
		assert_int_equal(store->ops->getattr(file, &attr), 0);
		assert_true(attr.size == 100 || attr.size == NR * BLOCK);
		kept += attr.size == 100;
		undone += attr.size != 100;
		assert_int_equal(tr_store_ram_peek(store, "f", buf, NR * BLOCK,
						   0),
				 attr.size);
		for (i = 0; i < attr.size; i++)
			assert_true(buf[i] == 7 || buf[i] == 0);
		store->ops->close(file);
		tr_store_destroy(store);
	}
	assert_true(undone && kept);
	free(buf);
}

/* In flight at a crash: -EIO, and the data is there, in parts, or not. */
static void crash_ends_requests(void **state)
{
	struct tr_store *store = device(
		(struct tr_ram_options){ .latency_ns = 3600ull * 1000000000 });
	struct tr_store_file *file = storetest_file(store, "f");
	unsigned char *buf = storetest_memory(NR * BLOCK);
	struct storetest_batch batch;
	int i;

	memset(buf, 1, NR * BLOCK);
	storetest_prepare(file, 0, 0, NR * BLOCK, false);
	storetest_batch_init(&batch, store);
	for (i = 0; i < NR; i++)
		storetest_start(&batch, TR_IO_WRITE, file, buf + i * BLOCK,
				BLOCK, i * BLOCK, 1);
	store->ops->submit(batch.queue);
	assert_int_equal(store->ops->wait(batch.queue, 0), 0);
	tr_store_ram_crash(store);
	storetest_finish(&batch);
	for (i = 0; i < NR; i++)
		assert_int_equal(batch.ios[i].io.result, -EIO);
	free(buf);
	store->ops->close(file);
	tr_store_destroy(store);
}

static void misuse_is_counted(void **state)
{
	struct tr_store *store = device((struct tr_ram_options){ 0 });
	struct tr_store_file *file = storetest_file(store, "f");
	unsigned char *buf = storetest_memory(NR * BLOCK);
	struct tr_ram_counters c;
	struct storetest_batch batch;

	fill(file, buf, 1);
	tr_store_ram_counters(store, &c);
	assert_int_equal(c.extending_writes, 0);
	assert_int_equal(c.overlapping_writes, 0);
	assert_int_equal(c.writes, 1);
	assert_int_equal(c.write_bytes, NR * BLOCK);
	storetest_batch_init(&batch, store);
	storetest_start(&batch, TR_IO_WRITE, file, buf, 2 * BLOCK, 0, 1);
	storetest_start(&batch, TR_IO_WRITE, file, buf, BLOCK, BLOCK, 1);
	storetest_start(&batch, TR_IO_WRITE, file, buf, BLOCK, NR * BLOCK, 1);
	storetest_finish(&batch);
	tr_store_ram_counters(store, &c);
	assert_int_equal(c.extending_writes, 1);
	assert_int_equal(c.overlapping_writes, 1);
	assert_int_equal(storetest_io(file, TR_IO_WRITE, buf, BLOCK, 512),
			 -EINVAL);
	assert_int_equal(storetest_io(file, TR_IO_READ, buf + 1, BLOCK, 0),
			 -EINVAL);
	free(buf);
	store->ops->close(file);
	tr_store_destroy(store);
}

static unsigned char order[NR];
static unsigned nr_ordered;

static void note_order(struct tr_io *io)
{
	order[nr_ordered++] = io->off / BLOCK;
}

/* The order in which a batch submitted at once completes. */
static void order_of(uint64_t seed)
{
	struct tr_store *store =
		device((struct tr_ram_options){ .seed = seed });
	struct tr_store_file *file = storetest_file(store, "f");
	unsigned char *buf = storetest_memory(NR * BLOCK);
	struct storetest_batch batch;
	unsigned i;

	storetest_prepare(file, 0, NR * BLOCK, NR * BLOCK, true);
	storetest_batch_init(&batch, store);
	nr_ordered = 0;
	for (i = 0; i < NR; i++) {
		storetest_start(&batch, TR_IO_WRITE, file, buf, BLOCK,
				i * BLOCK, 1);
		batch.ios[i].io.done = note_order;
	}
	assert_int_equal(store->ops->wait(batch.queue, NR), NR);
	store->ops->queue_destroy(batch.queue);
	free(buf);
	store->ops->close(file);
	tr_store_destroy(store);
}

static void order_is_the_seeds(void **state)
{
	unsigned char first[NR], i, moved = 0;

	order_of(1);
	memcpy(first, order, NR);
	for (i = 0; i < NR; i++)
		moved += first[i] != i;
	assert_true(moved);
	order_of(1);
	assert_memory_equal(first, order, NR);
	order_of(2);
	assert_memory_not_equal(first, order, NR);
}

static void capacity_ends(void **state)
{
	struct tr_store *store =
		device((struct tr_ram_options){ .capacity = 3 * BLOCK });
	struct tr_store_file *file = storetest_file(store, "f");
	unsigned char *buf = storetest_memory(NR * BLOCK);
	struct tr_store_space space;

	storetest_prepare(file, 0, NR * BLOCK, NR * BLOCK, true);
	assert_int_equal(storetest_io(file, TR_IO_WRITE, buf, NR * BLOCK, 0),
			 3 * BLOCK);
	assert_int_equal(storetest_io(file, TR_IO_WRITE, buf, BLOCK, 3 * BLOCK),
			 -ENOSPC);
	assert_int_equal(store->ops->space(store, &space), 0);
	assert_int_equal(space.available, 0);
	assert_int_equal(store->ops->allocate(file, 4 * BLOCK, 1, true),
			 -ENOSPC);
	assert_int_equal(store->ops->punch(file, 0, BLOCK), 0);
	assert_int_equal(storetest_io(file, TR_IO_WRITE, buf, BLOCK, 3 * BLOCK),
			 BLOCK);
	free(buf);
	store->ops->close(file);
	tr_store_destroy(store);
}

/* The largest offsets a file can have. */
static void ends_at_offset_max(void **state)
{
	struct tr_store *store =
		device((struct tr_ram_options){ .volatile_cache = true });
	struct tr_store_file *file = storetest_file(store, "f");
	int64_t last = INT64_MAX / BLOCK * BLOCK, where;
	unsigned char *buf = storetest_memory(BLOCK);

	buf[BLOCK - 2] = 5;
	assert_int_equal(store->ops->write_tail(file, buf, BLOCK - 1, last), 0);
	assert_int_equal(store->ops->seek(file, 0, SEEK_DATA, &where), 0);
	assert_int_equal(where, last);
	assert_int_equal(store->ops->punch(file, last, INT64_MAX), 0);
	assert_int_equal(tr_store_ram_peek(store, "f", buf, BLOCK, last),
			 BLOCK - 1);
	assert_int_equal(buf[BLOCK - 2], 0);
	assert_int_equal(store->ops->truncate(file, last - 1), 0);
	free(buf);
	store->ops->close(file);
	tr_store_destroy(store);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(crash_keeps_what_was_synced),
		cmocka_unit_test(crash_undoes_truncate),
		cmocka_unit_test(crash_ends_requests),
		cmocka_unit_test(misuse_is_counted),
		cmocka_unit_test(order_is_the_seeds),
		cmocka_unit_test(capacity_ends),
		cmocka_unit_test(ends_at_offset_max),
	};

	return cmocka_run_group_tests(tests, leak_setup, leak_check);
}

/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Goal: whatever fails, once or for good, the cache stays consistent, nothing
 * hangs, every error is told once to every opening, and what is lost is
 * announced.
 *
 * Method: a small workload of every kind of call is run with each request of
 * each kind to the device failing in turn, then with each allocation failing in
 * turn, until it runs without meeting the fault; and scenes of single faults.
 */
#include "lib/test.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/mem.h"
#include "cache/reclaim.h"
#include "folio/state.h"
#include "lib/cachetest.h"

#define RECORD 47008
#define NR_RECORDS 6

/* Bytes of the workload's file. */
#define END (NR_RECORDS * RECORD)

/* Steps of the workload that may fail. */
static void workload(struct rig *r, struct tr_file *second)
{
	unsigned char *buf = aligned_alloc(4096, 65536);
	struct tr_map *map;
	void *addr;
	size_t len;

	for (int i = 0; i < NR_RECORDS; i++) {
		rig_pattern(buf, RECORD, i * RECORD, 0);
		(void)tr_write(r->file, buf, RECORD, i * RECORD,
			       i % 3 == 2 ? 0
			       : i % 2	  ? TR_DONTCACHE
					  : TR_DONTCACHE | TR_DSYNC);
	}
	(void)tr_fsync(r->file);
	(void)tr_invalidate(r->file, 0, 0);
	rig_pattern(buf, 65536, 8192, 0);
	(void)tr_write(r->file, buf, 65536, 8192, TR_DIRECT);
	/* Over what is there: fills and reads of blocks. */
	rig_pattern(buf, 3000, 100000, 0);
	(void)tr_write(r->file, buf, 3000, 100000, TR_DONTCACHE);
	rig_pattern(buf, 100, 150100, 0);
	(void)tr_write(r->file, buf, 100, 150100, 0);
	/* Wherever the file ends now. */
	rig_pattern(buf, 5000, rig_attr(second).size, 0);
	(void)tr_write(second, buf, 5000, 0, TR_APPEND | TR_DONTCACHE);
	(void)tr_read(second, buf, 65536, 20000, 0);
	(void)tr_read(second, buf, 65536, 90000, TR_DONTCACHE);
	(void)tr_read(second, buf, 65536, 8192, TR_DIRECT);
	if (!tr_map(r->file, 5000, &map, &addr, &len)) {
		rig_pattern(addr, len, 5000, 0);
		tr_map_dirty(map);
		tr_unmap(map);
	}
	(void)tr_punch(r->file, 3000, 9000);
	rig_pattern(buf, 9000, 3000, 0);
	(void)tr_write(r->file, buf, 9000, 3000, TR_DONTCACHE);
	(void)tr_truncate(r->file, END - 1000);
	(void)tr_allocate(r->file, 0, END, false);
	free(buf);
}

/* Every byte is as written, or as it was before: zero. */
static void bytes_are_plausible(struct rig *r)
{
	unsigned char *buf = malloc(END + 5000);
	ssize_t n = tr_read(r->file, buf, END + 5000, 0, 0);

	assert_true(n >= 0);
	for (ssize_t i = 0; i < n; i++)
		if (buf[i] != rig_byte(i, 0) && buf[i]) {
			fprintf(stderr, "byte %zd is %02x\n", i, buf[i]);
			fail();
		}
	free(buf);
}

/* After the fault is gone everything can be written, read and counted. */
static void recover(struct rig *r, struct tr_file *second)
{
	for (int i = 0; i < 3; i++) {
		(void)tr_fsync(r->file);
		(void)tr_fsync(second);
	}
	assert_int_equal(tr_fsync(r->file), 0);
	assert_int_equal(tr_fsync(second), 0);
	rig_check(r);
	rig_is_clean(r);
	bytes_are_plausible(r);
	rig_write(r->file, END, 0, 0, TR_DONTCACHE);
	assert_int_equal(tr_fsync(r->file), 0);
	rig_verify(r->file, END, 0, 0, 0);
	rig_is_clean(r);
	assert_int_equal(tr_file_close(second), 0);
}

static const struct rig_options faulty = {
	.block = 4096, .offset_align = 512, .fault = true, .cache_size = 4 << 20
};

/* Returns whether the fault was met. */
static bool run_with_fault(enum tr_fault_kind kind, unsigned nth, bool lasting,
			   int error, bool no_flushers)
{
	struct rig_options o = faulty;
	struct tr_file *second;
	struct rig r;
	bool met;

	o.no_flushers = no_flushers;
	rig_init(&r, &o);
	second = rig_open(&r, RIG_FILE, O_RDWR);
	tr_store_fault_set(r.store, kind, nth, lasting, error);
	workload(&r, second);
	(void)tr_fsync(r.file);
	met = tr_store_fault_count(r.store, kind) >= nth;
	tr_store_fault_set(r.store, kind, 0, false, 0);
	rig_check(&r);
	recover(&r, second);
	rig_fini(&r);
	return met;
}

static void requests_fail(enum tr_fault_kind kind, int error)
{
	for (int mode = 0; mode < 4; mode++)
		for (unsigned nth = 1;
		     run_with_fault(kind, nth, mode & 1, error, mode & 2) &&
		     nth < 200;
		     nth++)
			;
}

static void reads_fail(void **state)
{
	requests_fail(TR_FAULT_READ, EIO);
}

static void writes_fail(void **state)
{
	requests_fail(TR_FAULT_WRITE, EIO);
}

static void writes_find_no_space(void **state)
{
	requests_fail(TR_FAULT_WRITE, ENOSPC);
	requests_fail(TR_FAULT_PREPARE, EDQUOT);
}

static void writes_are_short(void **state)
{
	requests_fail(TR_FAULT_SHORT_WRITE, 0);
}

static void syncs_fail(void **state)
{
	requests_fail(TR_FAULT_SYNC, EIO);
}

static void prepares_and_tails_fail(void **state)
{
	requests_fail(TR_FAULT_PREPARE, EIO);
	requests_fail(TR_FAULT_TAIL, EIO);
}

/* ---- allocations ---- */

static bool run_with_allocation(unsigned nth, bool lasting, bool flushers)
{
	struct rig_options o = faulty;
	struct tr_file *second;
	struct rig r;
	uint64_t asked;

	o.no_flushers = !flushers;
	rig_init(&r, &o);
	second = rig_open(&r, RIG_FILE, O_RDWR);
	mem_fail_at(nth, lasting);
	workload(&r, second);
	(void)tr_fsync(r.file);
	asked = mem_fail_at(0, false);
	rig_check(&r);
	recover(&r, second);
	rig_fini(&r);
	return asked >= nth;
}

static void allocations_fail(void **state)
{
	for (int mode = 0; mode < 4; mode++) {
		unsigned nth = 1;

		/* Each of the first, then ever fewer. */
		while (run_with_allocation(nth, mode & 1, mode & 2))
			nth += 1 + nth / 40;
	}
}

static void creation_fails(void **state)
{
	struct tr_cache_options o = { .struct_size = sizeof(o),
				      .size = 4 << 20 };
	struct tr_cache *cache;
	unsigned nth = 0;
	int err;

	do {
		mem_fail_at(++nth, false);
		err = tr_cache_create(&o, &cache);
		mem_fail_at(0, false);
		assert_true(!err || err == -ENOMEM || err == -EAGAIN);
	} while (err);
	assert_int_equal(tr_cache_destroy(cache), 0);
}

/* ---- scenes ---- */

/* An error is told once to each opening that was there, and to none that comes
 * after somebody was told. */
static void errors_are_told_once(void **state)
{
	struct tr_file *a, *b, *late;
	struct rig r;

	rig_init(&r, &faulty);
	a = rig_open(&r, RIG_FILE, O_RDWR);
	b = rig_open(&r, RIG_FILE, O_RDWR);
	rig_write(r.file, 8192, 0, 0, 0);
	tr_store_fault_set(r.store, TR_FAULT_WRITE, 1, false, EIO);
	assert_int_equal(tr_fsync(r.file), -EIO);
	assert_int_equal(tr_fsync(r.file), 0);
	assert_int_equal(tr_fsync(a), -EIO);
	assert_int_equal(tr_fsync(a), 0);
	late = rig_open(&r, RIG_FILE, O_RDWR);
	assert_int_equal(tr_fsync(late), 0);
	assert_int_equal(tr_file_close(b), -EIO);
	assert_int_equal(tr_file_close(a), 0);
	assert_int_equal(tr_file_close(late), 0);
	rig_verify(r.file, 8192, 0, 0, 0);
	rig_fini(&r);
}

/* A stable write that meets an error like one that nobody was told of yet. */
static void like_errors_are_told_apart(void **state)
{
	struct tr_file *a;
	struct rig r;
	char block[4096] = { 1 };

	rig_init(&r, &faulty);
	a = rig_open(&r, RIG_FILE, O_RDWR);
	rig_write(r.file, 4096, 0, 0, 0);
	tr_store_fault_set(r.store, TR_FAULT_WRITE, 1, true, EIO);
	/* Writes out, and tells nobody. */
	assert_int_equal(tr_seek(r.file, 0, SEEK_DATA), -ENXIO);
	assert_int_equal(tr_write(r.file, block, sizeof(block), 8192, TR_DSYNC),
			 -EIO);
	tr_store_fault_set(r.store, TR_FAULT_WRITE, 0, false, 0);
	assert_int_equal(tr_fsync(a), -EIO);
	assert_int_equal(tr_file_close(a), 0);
	rig_fini(&r);
}

/* What cannot be written is given up after a few tries, and announced. */
static void loss_is_announced(void **state)
{
	struct tr_statistics s;
	uint64_t before;
	struct rig r;

	rig_init(&r, &faulty);
	before = tr_file_loss_generation(r.file);
	rig_write(r.file, 8192, 0, 0, 0);
	tr_store_fault_set(r.store, TR_FAULT_WRITE, 1, true, EIO);
	for (int i = 0; i < 4; i++) {
		assert_int_equal(tr_file_loss_generation(r.file), before);
		assert_int_equal(tr_fsync(r.file), -EIO);
	}
	assert_true(tr_file_loss_generation(r.file) != before);
	assert_int_equal(tr_fsync(r.file), 0);
	s = rig_statistics(&r);
	assert_int_equal(s.lost_pages, 2);
	assert_true(s.writeback_errors >= 4);
	rig_is_clean(&r);
	rig_check(&r);
	tr_store_fault_set(r.store, TR_FAULT_WRITE, 0, false, 0);
	rig_fini(&r);
}

/* A failed device sync loses what was written, whoever asked. */
static void failed_sync_is_a_loss(void **state)
{
	struct tr_file *a;
	uint64_t before;
	struct rig r;

	rig_init(&r, &faulty);
	a = rig_open(&r, RIG_FILE, O_RDWR);
	before = tr_file_loss_generation(r.file);
	rig_write(r.file, 8192, 0, 0, TR_DONTCACHE);
	tr_store_fault_set(r.store, TR_FAULT_SYNC, 1, false, EIO);
	assert_int_equal(tr_fdatasync(r.file), -EIO);
	assert_true(tr_file_loss_generation(r.file) != before);
	assert_int_equal(tr_fsync(a), -EIO);
	assert_int_equal(tr_fsync(r.file), 0);
	assert_int_equal(tr_file_close(a), 0);
	rig_fini(&r);
}

/* A full device: the write that finds it so is told at the sync, again and
 * again as long as the data is kept; room made meanwhile saves it. */
static void full_device_keeps_data(void **state)
{
	struct rig_options o = { .block = 4096, .capacity = 32768 };
	struct rig r;

	rig_init(&r, &o);
	rig_write(r.file, 49152, 0, 0, 0);
	for (int i = 0; i < 6; i++)
		assert_int_equal(tr_fsync(r.file), -ENOSPC);
	rig_verify(r.file, 49152, 0, 0, 0);
	rig_check(&r);
	assert_int_equal(tr_truncate(r.file, 32768), 0);
	assert_int_equal(tr_fsync(r.file), 0);
	rig_verify(r.file, 32768, 0, 0, 0);
	rig_is_clean(&r);
	rig_fini(&r);
}

/* A direct write that fails or is short leaves the file no longer than what it
 * wrote. */
static void failed_direct_writes_add_nothing(void **state)
{
	struct rig_options o = faulty;
	unsigned char *buf = aligned_alloc(4096, 65536);
	struct rig r;

	o.capacity = 32768;
	rig_init(&r, &o);
	rig_pattern(buf, 65536, 0, 0);
	rig_write(r.file, 100, 0, 0, 0);
	tr_store_fault_set(r.store, TR_FAULT_WRITE, 1, true, EIO);
	assert_int_equal(tr_write(r.file, buf + 4096, 8192, 4096, TR_DIRECT),
			 -EIO);
	tr_store_fault_set(r.store, TR_FAULT_WRITE, 0, false, 0);
	assert_int_equal(rig_attr(r.file).size, 100);
	assert_int_equal(tr_fsync(r.file), 0);
	assert_true(rig_device_is(&r, buf, 100));
	assert_int_equal(tr_write(r.file, buf, 65536, 0, TR_DIRECT), 32768);
	assert_int_equal(rig_attr(r.file).size, 32768);
	assert_true(rig_device_is(&r, buf, 32768));
	rig_check(&r);
	rig_fini(&r);
	free(buf);
}

/* What of an extending direct write lies in a last, partial block is written as
 * a tail is, and if that fails the write is short by it; within the file all of
 * it is direct. */
static void direct_writes_end_as_tails(void **state)
{
	struct rig_options o = faulty;
	unsigned char *buf = aligned_alloc(4096, 12288);
	struct rig r;

	o.offset_align = 512;
	rig_init(&r, &o);
	rig_pattern(buf, 12288, 0, 0);
	tr_store_fault_set(r.store, TR_FAULT_TAIL, 1, true, EIO);
	assert_int_equal(tr_write(r.file, buf, 8704, 0, TR_DIRECT), 8192);
	assert_int_equal(rig_attr(r.file).size, 8192);
	assert_true(rig_device_is(&r, buf, 8192));
	assert_int_equal(tr_store_fault_count(r.store, TR_FAULT_TAIL), 1);
	tr_store_fault_set(r.store, TR_FAULT_TAIL, 0, false, 0);
	assert_int_equal(tr_write(r.file, buf, 8704, 0, TR_DIRECT), 8704);
	assert_true(rig_device_is(&r, buf, 8704));
	tr_store_fault_set(r.store, TR_FAULT_TAIL, 1, true, EIO);
	assert_int_equal(tr_write(r.file, buf, 8704, 0, TR_DIRECT), 8704);
	tr_store_fault_set(r.store, TR_FAULT_TAIL, 0, false, 0);
	assert_int_equal(tr_write(r.file, buf + 8704, 3584, 8704, TR_DIRECT),
			 3584);
	assert_true(rig_device_is(&r, buf, 12288));
	rig_check(&r);
	rig_fini(&r);
	free(buf);
}

/* More than the cache holds onto a full device: writers get on. */
static void full_device_holds_nobody(void **state)
{
	static const unsigned flags[] = { 0, TR_DONTCACHE };
	struct rig_options o = { .block = 4096,
				 .capacity = 32768,
				 .cache_size = 4 << 20 };

	for (unsigned i = 0; i < 2; i++) {
		struct rig r;
		uint64_t before;

		rig_init(&r, &o);
		before = tr_file_loss_generation(r.file);
		for (int k = 0; k < 200; k++)
			rig_write(r.file, RECORD, (int64_t)k * RECORD, 0,
				  flags[i]);
		assert_int_equal(tr_fsync(r.file), -ENOSPC);
		assert_true(tr_file_loss_generation(r.file) != before);
		rig_check(&r);
		rig_fini(&r);
	}
}

/* Edges whose rest cannot be read do not hold their places for ever. */
static void unreadable_edges_go(void **state)
{
	struct rig_options o = faulty;
	struct rig r;

	rig_init(&r, &o);
	rig_write(r.file, 4 << 20, 0, 0, TR_DONTCACHE);
	assert_int_equal(tr_fsync(r.file), 0);
	assert_int_equal(tr_cache_set(r.cache, "edge_max_pages", 4), 0);
	tr_store_fault_set(r.store, TR_FAULT_READ, 1, true, EIO);
	for (int i = 0; i < 12; i++)
		rig_write(r.file, 100, i * 8192 + 50, 0, TR_DONTCACHE);
	tr_store_fault_set(r.store, TR_FAULT_READ, 0, false, 0);
	rig_check(&r);
	rig_fini(&r);
}

/* A page that was refused just before others came free is there on the next
 * try; it is an error only if that goes on. */
static void refused_pages_are_asked_for_again(void **state)
{
	static const struct rig_options plain = { 0 };
	struct folio *f;
	struct rig r;

	rig_init(&r, &plain);
	mem_fail_at(1, false);
	f = cache_alloc_folio(r.cache, 0, 0, false);
	mem_fail_at(0, false);
	assert_non_null(f);
	folio_put(f, r.cache);
	mem_fail_at(1, true);
	assert_null(cache_alloc_folio(r.cache, 0, 0, false));
	mem_fail_at(0, false);
	rig_fini(&r);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(errors_are_told_once),
		cmocka_unit_test(like_errors_are_told_apart),
		cmocka_unit_test(loss_is_announced),
		cmocka_unit_test(failed_sync_is_a_loss),
		cmocka_unit_test(full_device_keeps_data),
		cmocka_unit_test(full_device_holds_nobody),
		cmocka_unit_test(failed_direct_writes_add_nothing),
		cmocka_unit_test(direct_writes_end_as_tails),
		cmocka_unit_test(unreadable_edges_go),
		cmocka_unit_test(creation_fails),
		cmocka_unit_test(reads_fail),
		cmocka_unit_test(writes_fail),
		cmocka_unit_test(writes_find_no_space),
		cmocka_unit_test(writes_are_short),
		cmocka_unit_test(syncs_fail),
		cmocka_unit_test(prepares_and_tails_fail),
		cmocka_unit_test(allocations_fail),
		cmocka_unit_test(refused_pages_are_asked_for_again),
	};

	return cmocka_run_group_tests(tests, leak_setup, leak_check);
}

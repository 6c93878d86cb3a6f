/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Goal: the figures that shared units have to reach: how often the device is
 * read and how much is written, what stays cached, and that nobody is kicked
 * who need not be; that edges are bounded by age, number and close; that small
 * writes get on in a small cache.
 *
 * Method: records of several sizes by several writers, whose turn comes by a
 * seed, over new and existing files, on devices of several block sizes. One
 * thread makes all calls, so what is counted depends on the seed alone.
 */
#include "lib/test.h"

#include <errno.h>
#include <fcntl.h>
#include <sched.h>
#include <stdlib.h>

#include "base/clock.h"
#include "lib/cachetest.h"

#define WRITERS 8
#define AHEAD 4 /* records that a writer may be ahead of the last */
#define BYTES (2 << 20)
#define RECORDS_MAX 3000

static const struct rig_options kinds[] = {
	{ .block = 4096, .offset_align = 512 },
	{ .block = 16384, .offset_align = 4096 },
	{ .block = 1024, .offset_align = 512 },
};
static const size_t records[] = { 47008, 6000, 49152, 12288, 1000, 100 };

#define NR(a) (sizeof(a) / sizeof((a)[0]))

static unsigned nr_records(size_t record)
{
	size_t nr = BYTES / record;

	return nr < RECORDS_MAX ? nr : RECORDS_MAX;
}

/* Writer w writes records w, w + WRITERS, ...; who is next is drawn. */
static void write_records(struct rig *r, size_t record, unsigned version,
			  unsigned flags, uint64_t seed)
{
	unsigned nr = nr_records(record), next[WRITERS], done = 0;
	struct rng rng;

	rng_seed(&rng, seed);
	for (unsigned w = 0; w < WRITERS; w++)
		next[w] = w;
	while (done < nr) {
		unsigned w = rng_below(&rng, WRITERS), least = nr;

		for (unsigned k = 0; k < WRITERS; k++)
			least = next[k] < least ? next[k] : least;
		if (next[w] >= nr || next[w] > least + AHEAD * WRITERS)
			continue;
		rig_write(r->file, record, (int64_t)next[w] * record, version,
			  flags);
		next[w] += WRITERS;
		done++;
	}
}

/* Units that hold a boundary between two records, or the end of the last. */
static unsigned nr_edges(struct rig *r, size_t record)
{
	uint32_t unit = rig_attr(r->file).unit;
	unsigned edges = 0;
	int64_t last = -1;

	for (unsigned i = 1; i <= nr_records(record); i++) {
		int64_t at = (int64_t)i * record;

		if (at % unit && at / unit != last) {
			edges++;
			last = at / unit;
		}
	}
	return edges;
}

static void ends_clean(struct rig *r)
{
	struct tr_statistics s;

	rig_settle(r);
	assert_int_equal(tr_file_close(r->file), 0);
	r->file = NULL;
	rig_settle(r);
	rig_check(r);
	rig_is_clean(r);
	s = rig_statistics(r);
	assert_int_equal(s.edges_held, 0);
	assert_int_equal(s.lazy_fills, 0);
}

static void verify_device(struct rig *r, size_t record, unsigned version)
{
	size_t len = record * nr_records(record);
	unsigned char *want = malloc(len);

	rig_pattern(want, len, 0, version);
	assert_true(rig_device_is(r, want, len));
	free(want);
}

/* ---- new files ---- */

static void new_file(const struct rig_options *o, size_t record, unsigned flags,
		     uint64_t seed)
{
	size_t payload = record * nr_records(record);
	struct tr_ram_counters c;
	struct tr_statistics s;
	unsigned nr;
	struct rig r;

	rig_init(&r, o);
	write_records(&r, record, 1, flags, seed);
	nr = nr_edges(&r, record);
	ends_clean(&r);
	c = rig_counters(&r);
	s = rig_statistics(&r);
	assert_int_equal(s.cached_pages, 0);
	if (flags & TR_DSYNC) {
		/* Of holes, where a record beyond was first: no device has
		 * work with those, this one counts them. */
		assert_true(c.reads <= nr);
		assert_int_equal(s.kicks, 0);
		assert_int_equal(s.passes_dontcache, 0);
	} else {
		assert_int_equal(c.reads, 0);
		assert_int_equal(s.device_reads, 0);
		assert_true(c.write_bytes <= payload + payload / 50);
	}
	verify_device(&r, record, 1);
	rig_fini(&r);
}

static void new_files_are_not_read(void **state)
{
	uint64_t seed = seed_draw();

	for (unsigned k = 0; k < NR(kinds); k++)
		for (unsigned n = 0; n < NR(records); n++) {
			new_file(&kinds[k], records[n], TR_DONTCACHE, seed);
			new_file(&kinds[k], records[n], TR_DONTCACHE | TR_DSYNC,
				 seed);
		}
}

/* ---- existing files ---- */

static void rewrite(const struct rig_options *o, size_t record, unsigned flags,
		    uint64_t seed)
{
	size_t payload = record * nr_records(record);
	struct tr_ram_counters before, c;
	struct rig r;

	rig_init(&r, o);
	rig_write(r.file, payload, 0, 1, TR_DONTCACHE);
	assert_int_equal(tr_fsync(r.file), 0);
	assert_int_equal(tr_file_close(r.file), 0);
	rig_settle(&r);
	assert_int_equal(rig_statistics(&r).cached_pages, 0);
	r.file = rig_open(&r, RIG_FILE, O_RDWR);
	before = rig_counters(&r);
	write_records(&r, record, 2, flags, seed);
	c = rig_counters(&r);
	if (flags & TR_DSYNC)
		assert_true(c.reads - before.reads <= nr_edges(&r, record));
	else
		assert_int_equal(c.reads - before.reads, 0);
	ends_clean(&r);
	c = rig_counters(&r);
	assert_int_equal(rig_statistics(&r).cached_pages, 0);
	if (!(flags & TR_DSYNC))
		assert_true(c.write_bytes - before.write_bytes <=
			    payload + payload / 50);
	verify_device(&r, record, 2);
	rig_fini(&r);
}

static void existing_files_are_read_for_syncs_only(void **state)
{
	uint64_t seed = seed_draw();

	for (unsigned k = 0; k < NR(kinds); k++)
		for (unsigned n = 0; n < NR(records); n++) {
			rewrite(&kinds[k], records[n], TR_DONTCACHE, seed);
			rewrite(&kinds[k], records[n], TR_DONTCACHE | TR_DSYNC,
				seed);
		}
}

/* ---- what a reader left ---- */

static void over_readahead(const struct rig_options *o, size_t record,
			   unsigned flags, uint64_t seed)
{
	size_t payload = record * nr_records(record);
	struct tr_ram_counters before, c;
	unsigned edges, unit_pages;
	struct rig r;

	rig_init(&r, o);
	rig_write(r.file, payload, 0, 1, TR_DONTCACHE);
	assert_int_equal(tr_fsync(r.file), 0);
	rig_settle(&r);
	assert_int_equal(tr_invalidate(r.file, 0, 0), 0);
	for (size_t at = 0; at + 65536 <= payload; at += 65536)
		rig_verify(r.file, 65536, at, 1, 0);
	rig_verify(r.file, payload % 65536, payload / 65536 * 65536, 1, 0);
	edges = nr_edges(&r, record);
	unit_pages = rig_attr(r.file).unit / 4096;
	before = rig_counters(&r);
	write_records(&r, record, 2, flags, seed);
	c = rig_counters(&r);
	assert_int_equal(c.reads, before.reads);
	if (!(flags & TR_DSYNC))
		rig_settle(&r);
	assert_int_equal(tr_fsync(r.file), 0);
	ends_clean(&r);
	assert_int_equal(rig_statistics(&r).cached_pages,
			 (payload + 4096 * unit_pages - 1) /
					 (4096 * unit_pages) * unit_pages -
				 edges * unit_pages);
	verify_device(&r, record, 2);
	rig_fini(&r);
}

static void edges_leave_what_a_reader_cached(void **state)
{
	uint64_t seed = seed_draw();

	for (unsigned k = 0; k < NR(kinds); k++) {
		over_readahead(&kinds[k], 47008, TR_DONTCACHE, seed);
		over_readahead(&kinds[k], 47008, TR_DONTCACHE | TR_DSYNC, seed);
		over_readahead(&kinds[k], 6000, TR_DONTCACHE, seed);
	}
}

/* ---- appending ---- */

static void append(const struct rig_options *o, unsigned flags)
{
	struct rig r;

	rig_init(&r, o);
	for (int i = 0; i < 40; i++)
		rig_write(r.file, 47008, (int64_t)i * 47008, 1, flags);
	assert_int_equal(rig_attr(r.file).edges, 40 * 47008 % 4096 ? 1 : 0);
	ends_clean(&r);
	assert_int_equal(rig_counters(&r).reads, 0);
	assert_int_equal(rig_statistics(&r).cached_pages, 0);
	rig_fini(&r);
}

static void appending_reads_nothing(void **state)
{
	for (unsigned k = 0; k < NR(kinds); k++) {
		append(&kinds[k], TR_DONTCACHE);
		append(&kinds[k], TR_DONTCACHE | TR_DSYNC);
	}
}

/* ---- bounds ---- */

/* Random writes of 100 bytes, far apart: every one a new edge. */
static void small_writes_get_on(void **state)
{
	struct rig r;
	struct rng rng;

	rng_seed(&rng, seed_draw());
	rig_init(&r, &kinds[0]);
	for (int i = 0; i < 3000; i++)
		rig_write(r.file, 100, rng_below(&rng, 1 << 28), 1,
			  TR_DONTCACHE);
	assert_true(rig_statistics(&r).edges_evicted > 0);
	ends_clean(&r);
	rig_fini(&r);
}

static void edges_are_bounded_by_number(void **state)
{
	struct tr_statistics s;
	struct rig r;

	rig_init(&r, &kinds[0]);
	assert_int_equal(tr_cache_set(r.cache, "edge_max_pages", 5), 0);
	for (int i = 0; i < 100; i++) {
		rig_write(r.file, 100, i * 40960, 1, TR_DONTCACHE);
		s = rig_statistics(&r);
		assert_true(s.edges_held <= 5);
	}
	ends_clean(&r);
	for (int i = 0; i < 100; i++) {
		char byte = 0;

		assert_int_equal(tr_store_ram_peek(r.ram, RIG_FILE, &byte, 1,
						   i * 40960 + 99),
				 1);
		assert_int_equal(byte, (char)rig_byte(i * 40960 + 99, 1));
	}
	rig_fini(&r);
}

static void edges_are_bounded_by_age(void **state)
{
	struct tr_statistics s;
	struct rig r;

	clock_sim_start(1000 * NS_PER_S);
	rig_init(&r, &kinds[0]);
	rig_write(r.file, 100, 40960, 1, TR_DONTCACHE);
	rig_write(r.file, 100, 81920, 1, TR_DONTCACHE);
	clock_sim_advance(20 * NS_PER_S);
	rig_write(r.file, 100, 122880, 1, TR_DONTCACHE);
	clock_sim_advance(11 * NS_PER_S);
	do {
		sched_yield();
		s = rig_statistics(&r);
	} while (s.edges_held > 1 || s.edges_aged < 2);
	assert_int_equal(s.edges_aged, 2);
	clock_sim_advance(20 * NS_PER_S);
	do {
		sched_yield();
		s = rig_statistics(&r);
	} while (s.edges_held || s.edges_aged < 3);
	clock_sim_stop();
	ends_clean(&r);
	assert_int_equal(rig_statistics(&r).cached_pages, 0);
	rig_fini(&r);
}

/* ---- cached callers ---- */

static void cached_data_stays(void **state)
{
	struct tr_file_attr a;
	struct rig r;

	rig_init(&r, &kinds[0]);
	rig_write(r.file, 1 << 20, 0, 1, 0);
	assert_int_equal(tr_fsync(r.file), 0);
	rig_settle(&r);
	assert_int_equal(rig_attr(r.file).cached_pages, 256);
	/* A cached caller touches an edge: it is an ordinary page from then
	 * on. */
	rig_write(r.file, 100, 2 << 20, 1, TR_DONTCACHE);
	assert_int_equal(rig_attr(r.file).edges, 1);
	rig_verify(r.file, 50, (2 << 20) + 10, 1, 0);
	a = rig_attr(r.file);
	assert_int_equal(a.edges, 0);
	assert_int_equal(a.cached_pages, 257);
	assert_int_equal(rig_statistics(&r).edges_detached, 1);
	rig_write(r.file, 3996, (2 << 20) + 100, 1, 0);
	assert_int_equal(tr_fsync(r.file), 0);
	rig_settle(&r);
	assert_int_equal(rig_attr(r.file).cached_pages, 257);
	rig_check(&r);
	rig_fini(&r);
}

/* The arena is the hard limit, whatever is written or read. */
static void memory_is_bounded(void **state)
{
	struct rig_options o = { .block = 4096, .cache_size = 4 << 20 };
	struct tr_statistics s;
	struct rig r;

	rig_init(&r, &o);
	for (int i = 0; i < 16; i++) {
		rig_write(r.file, 1 << 20, (int64_t)i << 20, 1, 0);
		s = rig_statistics(&r);
		assert_true((s.cached_pages + s.meta_pages) * 4096 <= 4 << 20);
	}
	for (int i = 0; i < 16; i++)
		rig_verify(r.file, 1 << 20, (int64_t)i << 20, 1, 0);
	ends_clean(&r);
	rig_fini(&r);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(new_files_are_not_read),
		cmocka_unit_test(existing_files_are_read_for_syncs_only),
		cmocka_unit_test(edges_leave_what_a_reader_cached),
		cmocka_unit_test(appending_reads_nothing),
		cmocka_unit_test(small_writes_get_on),
		cmocka_unit_test(edges_are_bounded_by_number),
		cmocka_unit_test(edges_are_bounded_by_age),
		cmocka_unit_test(cached_data_stays),
		cmocka_unit_test(memory_is_bounded),
	};

	return cmocka_run_group_tests(tests, leak_setup, leak_check);
}

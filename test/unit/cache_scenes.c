/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Goal: what belongs to no single call: several devices and many files in one
 * cache, group commit, kicks, mapped pages in everybody's way, the end of a
 * cache whose device fails.
 *
 * Method: a scene for each, on emulated devices.
 */
#include "lib/test.h"

#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <sched.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "base/task.h"
#include "cache/cache.h"
#include "folio/wb.h"
#include "lib/cachetest.h"

static const struct rig_options plain = { .block = 4096, .offset_align = 512 };

/* ---- writers that must get on ---- */

/* Nothing is dirty but partial last blocks, which passes leave alone. */
static void tails_hold_nobody(void **state)
{
	struct rig_options o = { .block = 4096, .cache_size = 4 << 20 };
	struct rig r;
	char name[16];

	rig_init(&r, &o);
	for (int i = 0; i < 500; i++) {
		struct tr_file *f;

		snprintf(name, sizeof(name), "t%d", i);
		f = rig_open(&r, name, O_RDWR | O_CREAT);
		rig_write(f, 100, 0, 1, 0);
		assert_int_equal(tr_file_close(f), 0);
	}
	assert_int_equal(tr_cache_sync(r.cache), 0);
	rig_check(&r);
	rig_is_clean(&r);
	rig_fini(&r);
}

/* A limit below what makes flushers start. */
static void limit_below_background(void **state)
{
	struct rig r;

	rig_init(&r, &plain);
	assert_int_equal(tr_cache_set(r.cache, "dirty_limit", 131072), 0);
	for (int i = 0; i < 100; i++)
		rig_write(r.file, 47008, i * 47008, 1,
			  i % 3 ? 0 : TR_DONTCACHE);
	rig_verify(r.file, 47008 * 100, 0, 1, 0);
	rig_fini(&r);
}

/* Edges of one device do not hold writers of another. */
static void devices_share_the_edges(void **state)
{
	struct tr_store *second;
	struct tr_file *f;
	struct rig r;

	rig_init(&r, &plain);
	assert_int_equal(tr_store_ram_create(NULL, &second), 0);
	assert_int_equal(tr_file_open(r.cache, second, "s", O_RDWR | O_CREAT,
				      0600, &f),
			 0);
	assert_int_equal(tr_cache_set(r.cache, "edge_max_pages", 4), 0);
	for (int i = 0; i < 4; i++)
		rig_write(r.file, 100, i * 8192, 1, TR_DONTCACHE);
	assert_int_equal(rig_statistics(&r).edges_held, 4);
	for (int i = 0; i < 10; i++)
		rig_write(f, 100, i * 8192, 1, TR_DONTCACHE);
	assert_int_equal(tr_file_close(f), 0);
	rig_fini(&r);
	tr_store_destroy(second);
}

/* ---- kicks ---- */

static void wait_for_drop(struct rig *r)
{
	while (rig_statistics(r).dontcache_dirty || rig_statistics(r).writeback)
		sched_yield();
}

static void appends_kick(void **state)
{
	struct rig r;

	rig_init(&r, &plain);
	for (int i = 0; i < 8; i++)
		rig_write(r.file, 65536, 0, 1, TR_APPEND | TR_DONTCACHE);
	wait_for_drop(&r);
	assert_true(rig_statistics(&r).kicks > 0);
	rig_settle(&r);
	assert_int_equal(rig_attr(r.file).cached_pages, 0);
	rig_fini(&r);
}

static void segments_kick_once(void **state)
{
	unsigned char *buf = aligned_alloc(4096, 65536);
	struct iovec iov[3] = { { buf, 1000 },
				{ buf, 49152 },
				{ buf + 8, 10000 } };
	struct tr_segment s[3];
	struct tr_statistics st;
	struct rig r;

	memset(buf, 1, 65536);
	for (int i = 0; i < 3; i++)
		s[i] = (struct tr_segment){
			.iov = &iov[i],
			.nr_iov = 1,
			.flags = TR_DONTCACHE | (i == 1 ? TR_DIRECT : 0),
		};
	rig_init(&r, &plain);
	assert_int_equal(tr_write_segments(r.file, s, 3, 4096 - 1000, 0),
			 60152);
	assert_false(s[1].fell_back);
	st = rig_statistics(&r);
	assert_int_equal(st.kicks, 1);
	wait_for_drop(&r);
	/* All direct: nothing is left, nobody is woken. */
	st = rig_statistics(&r);
	assert_int_equal(tr_write_segments(r.file, s + 1, 1, 1 << 20, 0),
			 49152);
	assert_int_equal(rig_statistics(&r).kicks, st.kicks);
	/* One that fits the store's alignment no longer ends the write before
	 * anything of it is done. */
	assert_int_equal(tr_write_segments(r.file, s, 3, 100, 0), -EINVAL);
	rig_fini(&r);
	free(buf);
}

#define MIB (1 << 20)
#define WRITERS 8

struct writer {
	struct rig *r;
	int64_t off;
	atomic_int *at_start;
	unsigned flags;
};

static void *write_together(void *arg)
{
	struct writer *w = arg;

	/* All find the room that there is for one. */
	atomic_fetch_sub(w->at_start, 1);
	while (atomic_load(w->at_start) > 0)
		sched_yield();
	for (int i = 0; i < 4; i++)
		rig_write(w->r->file, MIB, w->off + i * MIB, 1, w->flags);
	return NULL;
}

/* Room is kept for who is on its way: of all that come at once, no more pass
 * than fit, but for one more on each processor. */
static void limits_hold_for_many_writers(void **state)
{
	struct rig_options o = { .block = 4096, .latency_ns = 1000 * 1000 };
	atomic_int at_start = WRITERS;
	struct writer w[WRITERS];
	pthread_t thread[WRITERS];
	struct rig r;

	o.cache_size = 64 * MIB;
	rig_init(&r, &o);
	assert_int_equal(tr_cache_set(r.cache, "dirty_limit", 4 * MIB), 0);
	for (int i = 0; i < WRITERS; i++) {
		w[i] = (struct writer){ &r, i * 4 * MIB, &at_start,
					i % 2 ? TR_DONTCACHE : 0 };
		assert_int_equal(pthread_create(&thread[i], NULL,
						write_together, &w[i]),
				 0);
	}
	for (int i = 0; i < WRITERS; i++)
		assert_int_equal(pthread_join(thread[i], NULL), 0);
	assert_int_equal(tr_fsync(r.file), 0);
	assert_true(rig_statistics(&r).peak_dirty <=
		    (4 + 1 + task_nr_cpus()) * (MIB / 4096 + 1));
	rig_fini(&r);
}

/* Known by times that are short each, so that writers are paced. Seen to fail:
 * when one time had to be 20 ms. */
static void fast_devices_are_measured(void **state)
{
	struct rig_options o = { .block = 4096, .latency_ns = 3 * NS_PER_MS };
	struct rig r;

	rig_init(&r, &o);
	for (int i = 0; i < 3; i++) {
		rig_write(r.file, 2 * MIB, i * 2 * MIB, 1, 0);
		assert_int_equal(tr_fsync(r.file), 0);
	}
	assert_true(atomic_load(&r.file->m->bdi->root->bandwidth) > 0);
	rig_fini(&r);
}

static void write_part(struct rig *r, int64_t off)
{
	rig_write(r->file, 100, off, 1, TR_DONTCACHE);
}

static void *write_far(void *r)
{
	write_part(r, 8 * MIB);
	return NULL;
}

/*
 * A writer far ahead of the nr edges at the beginning of its file sleeps until
 * they are complete: not by the clock, which stands still here. Of other edges,
 * near to it, there are three or none.
 */
static void run_ahead(int64_t edge_max, int nr, bool others)
{
	pthread_t thread;
	struct rig r;

	clock_sim_start(1000 * NS_PER_S);
	rig_init(&r, &plain);
	assert_int_equal(tr_cache_set(r.cache, "edge_max_pages", edge_max), 0);
	for (int i = 0; others && i < 3; i++)
		write_part(&r, 7 * MIB + i * 8192);
	for (int i = 0; i < nr; i++)
		write_part(&r, i * 8192);
	assert_int_equal(pthread_create(&thread, NULL, write_far, &r), 0);
	while (!rig_statistics(&r).throttled)
		sched_yield();
	for (int i = 0; i < nr; i++)
		rig_write(r.file, 3996, i * 8192 + 100, 1, TR_DONTCACHE);
	assert_int_equal(pthread_join(thread, NULL), 0);
	assert_int_equal(rig_statistics(&r).edges_held, others ? 4 : 1);
	clock_sim_stop();
	rig_fini(&r);
}

/* Seen to fail: when only every so many completions are looked at. */
static void goes_when_edges_are_few(void **state)
{
	run_ahead(8, 4, false);
}

/* Too many edges are left, but the lowest is near. Seen to fail: when only few
 * edges let go. */
static void goes_when_neighbours_come(void **state)
{
	run_ahead(16, 5, true);
}

/* ---- group commit ---- */

#define SYNCERS 8
#define SYNCS 40

struct syncer {
	struct rig *r;
	unsigned nr;
	pthread_t id;
};

static void *sync_on(void *arg)
{
	struct syncer *s = arg;
	unsigned char buf[1000];

	for (int i = 0; i < SYNCS; i++) {
		int64_t off = (int64_t)(i * SYNCERS + s->nr) * sizeof(buf);

		rig_pattern(buf, sizeof(buf), off, 1);
		if (tr_write(s->r->file, buf, sizeof(buf), off,
			     TR_DONTCACHE | TR_DSYNC) != sizeof(buf))
			abort();
	}
	return NULL;
}

static void syncs_are_shared(void **state)
{
	struct rig_options o = plain;
	struct syncer s[SYNCERS];
	struct tr_statistics st;
	struct rig r;
	size_t len = SYNCERS * SYNCS * 1000;
	unsigned char *want = malloc(len);

	o.volatile_cache = true;
	rig_init(&r, &o);
	for (unsigned i = 0; i < SYNCERS; i++) {
		s[i] = (struct syncer){ .r = &r, .nr = i };
		assert_int_equal(pthread_create(&s[i].id, NULL, sync_on, &s[i]),
				 0);
	}
	for (unsigned i = 0; i < SYNCERS; i++)
		pthread_join(s[i].id, NULL);
	st = rig_statistics(&r);
	assert_int_equal(st.sync_calls, SYNCERS * SYNCS);
	assert_true(st.device_syncs <= st.sync_calls);
	assert_int_equal(st.kicks, 0);
	/* All of it survives: each was told so. */
	tr_store_ram_crash(r.ram);
	rig_pattern(want, len, 0, 1);
	assert_true(rig_device_is(&r, want, len));
	free(want);
	rig_check(&r);
	rig_fini(&r);
}

/* ---- mapped pages ---- */

static void mapped_pages_are_in_the_way(void **state)
{
	unsigned char *buf = aligned_alloc(4096, 8192);
	struct iovec iov = { buf, 8192 };
	struct tr_segment s = { .iov = &iov, .nr_iov = 1, .flags = TR_DIRECT };
	struct tr_map *map;
	struct rig r;
	unsigned char *at;
	void *addr;
	size_t len;

	rig_init(&r, &plain);
	rig_write(r.file, 65536, 0, 1, 0);
	assert_int_equal(tr_map(r.file, 4096, &map, &addr, &len), 0);
	assert_true(len >= 4096);
	assert_int_equal(tr_fsync(r.file), 0);
	assert_int_equal(tr_invalidate(r.file, 0, 0), -EBUSY);
	/* A direct write meets it, and is seen in it. */
	rig_pattern(buf, 8192, 4096, 2);
	assert_int_equal(tr_write_segments(r.file, &s, 1, 4096, 0), 8192);
	assert_true(s.fell_back);
	assert_int_equal(rig_statistics(&r).direct_fallbacks, 1);
	at = addr;
	assert_int_equal(at[0], rig_byte(4096, 2));
	/* An uncached write leaves it cached. */
	rig_write(r.file, 8192, 4096, 3, TR_DONTCACHE | TR_DSYNC);
	assert_int_equal(at[0], rig_byte(4096, 3));
	assert_true(rig_attr(r.file).cached_pages > 0);
	/* Punched and cut off under the mapping: the memory stays. */
	assert_int_equal(tr_punch(r.file, 0, 32768), 0);
	assert_int_equal(tr_truncate(r.file, 0), 0);
	at[0] = 1;
	tr_map_dirty(map);
	rig_check(&r);
	assert_int_equal(tr_truncate(r.file, 65536), 0);
	assert_int_equal(tr_read(r.file, buf, 4096, 4096, 0), 4096);
	assert_int_equal(buf[0], 0);
	tr_unmap(map);
	assert_int_equal(tr_fsync(r.file), 0);
	rig_is_clean(&r);
	rig_check(&r);
	rig_fini(&r);
	free(buf);
}

/* A map outlives the opening it was made with. */
static void maps_outlive_openings(void **state)
{
	unsigned char byte = 0;
	struct tr_map *map;
	struct rig r;
	size_t len;
	void *addr;

	rig_init(&r, &plain);
	rig_write(r.file, 4096, 0, 1, 0);
	assert_int_equal(tr_map(r.file, 0, &map, &addr, &len), 0);
	assert_int_equal(tr_file_close(r.file), 0);
	*(unsigned char *)addr = 77;
	tr_map_dirty(map);
	tr_unmap(map);
	r.file = rig_open(&r, RIG_FILE, O_RDWR);
	assert_int_equal(tr_read(r.file, &byte, 1, 0, 0), 1);
	assert_int_equal(byte, 77);
	assert_int_equal(tr_fsync(r.file), 0);
	assert_int_equal(tr_store_ram_peek(r.ram, RIG_FILE, &byte, 1, 0), 1);
	assert_int_equal(byte, 77);
	rig_fini(&r);
}

/* ---- reading ---- */

static void uncached_reads_leave_nothing(void **state)
{
	struct rig r;

	rig_init(&r, &plain);
	rig_write(r.file, 1 << 20, 0, 1, TR_DONTCACHE);
	assert_int_equal(tr_fsync(r.file), 0);
	rig_settle(&r);
	assert_int_equal(rig_attr(r.file).cached_pages, 0);
	for (int i = 0; i < 16; i++)
		rig_verify(r.file, 65536, i * 65536, 1, TR_DONTCACHE);
	rig_settle(&r);
	assert_int_equal(rig_attr(r.file).cached_pages, 0);
	/* What a cached reader has read stays. */
	rig_verify(r.file, 65536, 0, 1, 0);
	assert_true(rig_attr(r.file).cached_pages >= 16);
	rig_verify(r.file, 65536, 0, 1, TR_DONTCACHE);
	assert_true(rig_attr(r.file).cached_pages >= 16);
	rig_check(&r);
	rig_fini(&r);
}

/* Vectors of all sizes: nothing is cut where the store would not have it. */
static void direct_vectors_are_not_cut(void **state)
{
	struct rig_options o = { .block = 4096, .offset_align = 4096 };
	enum { NR = 1000, BIG = 4096 };
	unsigned char *buf = aligned_alloc(4096, (NR + 1) * BIG);
	struct iovec iov[NR];
	struct rig r;
	size_t len = 0;

	rig_init(&r, &o);
	for (int i = 0; i < NR; i++) {
		iov[i].iov_base = buf + len;
		iov[i].iov_len = i == 0 ? 512 : i == NR - 1 ? 3584 : BIG;
		len += iov[i].iov_len;
	}
	rig_pattern(buf, len, 0, 1);
	assert_int_equal(tr_writev(r.file, iov, NR, 0, TR_DIRECT), len);
	assert_true(rig_device_is(&r, buf, len));
	memset(buf, 0, len);
	assert_int_equal(tr_readv(r.file, iov, NR, 0, TR_DIRECT), len);
	for (size_t i = 0; i < len; i++)
		assert_int_equal(buf[i], rig_byte(i, 1));
	rig_fini(&r);
	free(buf);
}

/* Punching away what was to make the store's file longer. */
static void punching_keeps_the_size(void **state)
{
	unsigned char zeros[3 * 4096 + 100] = { 0 };
	struct rig_options o = plain;
	struct rig r;

	o.no_flushers = true;
	rig_init(&r, &o);
	rig_write(r.file, sizeof(zeros), 0, 1, 0);
	assert_int_equal(tr_punch(r.file, 0, 1 << 20), 0);
	assert_int_equal(rig_attr(r.file).size, sizeof(zeros));
	assert_int_equal(tr_fsync(r.file), 0);
	assert_true(rig_device_is(&r, zeros, sizeof(zeros)));
	rig_fini(&r);
}

/* ---- many files ---- */

#define OPENERS 4
#define OPENS 150

static void *open_and_close(void *arg)
{
	struct syncer *s = arg;
	unsigned char buf[5000], got[5000];
	char name[16];

	for (int i = 0; i < OPENS; i++) {
		struct tr_file *f;

		/* Half of the names are everybody's. */
		snprintf(name, sizeof(name), "n%d",
			 i % 2 ? i % 5 : (int)(100 * s->nr) + i % 7);
		rig_pattern(buf, sizeof(buf), 0, 1);
		if (tr_file_open(s->r->cache, s->r->store, name,
				 O_RDWR | O_CREAT, 0600, &f))
			abort();
		if (tr_write(f, buf, sizeof(buf), 0,
			     i % 3 ? TR_DONTCACHE : 0) != sizeof(buf))
			abort();
		if (tr_read(f, got, sizeof(got), 0, 0) != sizeof(got) ||
		    memcmp(buf, got, sizeof(buf)))
			abort();
		if (i % 11 == 0 && tr_cache_sync(s->r->cache))
			abort();
		if (tr_file_close(f))
			abort();
	}
	return NULL;
}

static void files_come_and_go(void **state)
{
	struct syncer s[OPENERS];
	struct rig r;

	rig_init(&r, &plain);
	for (unsigned i = 0; i < OPENERS; i++) {
		s[i] = (struct syncer){ .r = &r, .nr = i };
		assert_int_equal(pthread_create(&s[i].id, NULL, open_and_close,
						&s[i]),
				 0);
	}
	for (unsigned i = 0; i < OPENERS; i++)
		pthread_join(s[i].id, NULL);
	assert_int_equal(tr_cache_sync(r.cache), 0);
	rig_check(&r);
	rig_is_clean(&r);
	rig_fini(&r);
}

/* A file that is opened again while the last of it is still written. */
static void reopening_sees_the_size(void **state)
{
	struct rig r;

	rig_init(&r, &plain);
	for (int i = 0; i < 400; i++) {
		rig_write(r.file, 5000, i * 5000, 1, TR_DONTCACHE);
		assert_int_equal(tr_file_close(r.file), 0);
		for (int k = 0; k < i % 7; k++)
			sched_yield();
		r.file = rig_open(&r, RIG_FILE, O_RDWR);
		assert_int_equal(rig_attr(r.file).size, (i + 1) * 5000);
	}
	rig_verify(r.file, 400 * 5000, 0, 1, 0);
	rig_fini(&r);
}

/* A device write is cut only where blocks are. */
static void io_max_need_not_fit_blocks(void **state)
{
	struct rig r;

	rig_init(&r, &plain);
	assert_int_equal(tr_cache_set(r.cache, "io_max", 65537), 0);
	rig_write(r.file, 1 << 20, 0, 1, TR_DONTCACHE);
	assert_int_equal(tr_fsync(r.file), 0);
	rig_verify(r.file, 1 << 20, 0, 1, 0);
	rig_fini(&r);
}

/* A lone writer whose every edge is one too many does not wait for others: not
 * by the clock, which stands still here. */
static void few_edges_hold_nobody(void **state)
{
	struct rig r;

	clock_sim_start(1000 * NS_PER_S);
	rig_init(&r, &plain);
	assert_int_equal(tr_cache_set(r.cache, "edge_max_pages", 1), 0);
	for (int i = 0; i < 200; i++)
		rig_write(r.file, 5000, i * 5000, 1, TR_DONTCACHE);
	assert_int_equal(tr_fsync(r.file), 0);
	rig_verify(r.file, 200 * 5000, 0, 1, 0);
	clock_sim_stop();
	rig_fini(&r);
}

/* ---- group commit ---- */

struct low_syncer {
	struct rig *r;
	int64_t off;
	atomic_bool *done;
};

static void *sync_until_done(void *arg)
{
	struct low_syncer *y = arg;

	while (!atomic_load(y->done))
		rig_write(y->r->file, 6000, y->off, 1, TR_DONTCACHE | TR_DSYNC);
	return NULL;
}

/* Callers that follow on each other go before one who is far ahead, but only so
 * often: were it for ever, this would not end. The device is slow enough that
 * the others are back in line before the next group. */
static void callers_ahead_are_served(void **state)
{
	static const struct rig_options slow = { .latency_ns = 1000 * 1000 };
	atomic_bool done = false;
	struct low_syncer low[3];
	pthread_t thread[3];
	struct rig r;

	rig_init(&r, &slow);
	for (int i = 0; i < 3; i++) {
		low[i] = (struct low_syncer){ &r, i * 6000, &done };
		assert_int_equal(pthread_create(&thread[i], NULL,
						sync_until_done, &low[i]),
				 0);
	}
	for (int i = 0; i < 50; i++)
		rig_write(r.file, 6000, (100 + i) << 20, 1,
			  TR_DONTCACHE | TR_DSYNC);
	atomic_store(&done, true);
	for (int i = 0; i < 3; i++)
		pthread_join(thread[i], NULL);
	rig_verify(r.file, 18000, 0, 1, 0);
	rig_fini(&r);
}

/* ---- the end ---- */

/* With a device on which nothing works any more. */
static void caches_end_on_dead_devices(void **state)
{
	for (int no_flushers = 0; no_flushers < 2; no_flushers++) {
		struct rig_options o = plain;
		struct rig r;

		o.fault = true;
		o.no_flushers = no_flushers;
		rig_init(&r, &o);
		rig_write(r.file, 1 << 20, 0, 1, TR_DONTCACHE);
		assert_int_equal(tr_fsync(r.file), 0);
		for (int k = 0; k < TR_FAULT_HANG; k++)
			if (k != TR_FAULT_SHORT_WRITE)
				tr_store_fault_set(r.store, k, 1, true, EIO);
		rig_write(r.file, 1 << 20, 1 << 20, 2, 0);
		for (int i = 0; i < 20; i++)
			rig_write(r.file, 100, i * 8192 + 50, 2, TR_DONTCACHE);
		/* Not the close: a page that was still to be dropped when its
		 * edge came is no edge, and nothing is written then. */
		assert_true(tr_fsync(r.file) < 0);
		(void)tr_file_close(r.file);
		r.file = NULL;
		rig_fini(&r);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(tails_hold_nobody),
		cmocka_unit_test(limit_below_background),
		cmocka_unit_test(devices_share_the_edges),
		cmocka_unit_test(callers_ahead_are_served),
		cmocka_unit_test(io_max_need_not_fit_blocks),
		cmocka_unit_test(few_edges_hold_nobody),
		cmocka_unit_test(limits_hold_for_many_writers),
		cmocka_unit_test(fast_devices_are_measured),
		cmocka_unit_test(goes_when_edges_are_few),
		cmocka_unit_test(goes_when_neighbours_come),
		cmocka_unit_test(appends_kick),
		cmocka_unit_test(segments_kick_once),
		cmocka_unit_test(syncs_are_shared),
		cmocka_unit_test(mapped_pages_are_in_the_way),
		cmocka_unit_test(maps_outlive_openings),
		cmocka_unit_test(uncached_reads_leave_nothing),
		cmocka_unit_test(direct_vectors_are_not_cut),
		cmocka_unit_test(punching_keeps_the_size),
		cmocka_unit_test(files_come_and_go),
		cmocka_unit_test(reopening_sees_the_size),
		cmocka_unit_test(caches_end_on_dead_devices),
	};

	return cmocka_run_group_tests(tests, leak_setup, leak_check);
}

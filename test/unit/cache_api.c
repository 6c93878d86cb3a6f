/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Goal: every documented error of the public calls, their limits, and what
 * parameters and statistics say.
 *
 * Method: calls with wrong arguments on an emulated device, one by one; nothing
 * may have changed afterwards.
 */
#include "lib/test.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "lib/cachetest.h"

#define LAST TR_OFFSET_MAX

static const struct rig_options plain = { .block = 4096, .offset_align = 512 };

static void null_is_refused(void **state)
{
	struct tr_segment seg = { 0 };
	struct tr_file_attr attr;
	struct tr_cache *cache;
	struct tr_file *file;
	struct tr_map *map;
	struct rig r;
	int64_t value;
	size_t len;
	void *addr;

	rig_init(&r, &plain);
	assert_int_equal(tr_cache_create(NULL, NULL), -EINVAL);
	assert_int_equal(tr_cache_destroy(NULL), -EINVAL);
	assert_int_equal(tr_cache_sync(NULL), -EINVAL);
	assert_int_equal(tr_cache_check(NULL), -EINVAL);
	assert_int_equal(tr_cache_set(NULL, "io_max", 65536), -EINVAL);
	assert_int_equal(tr_cache_set(r.cache, NULL, 1), -EINVAL);
	assert_int_equal(tr_cache_get(r.cache, "io_max", NULL), -EINVAL);
	assert_int_equal(tr_cache_get(r.cache, NULL, &value), -EINVAL);
	tr_cache_statistics(NULL, NULL);
	tr_cache_statistics(r.cache, NULL);
	tr_cache_reset_peak(NULL);
	cache = r.cache;
	assert_int_equal(tr_file_open(NULL, r.store, "x", 0, 0, &file),
			 -EINVAL);
	assert_int_equal(tr_file_open(cache, NULL, "x", 0, 0, &file), -EINVAL);
	assert_int_equal(tr_file_open(cache, r.store, NULL, 0, 0, &file),
			 -EINVAL);
	assert_int_equal(tr_file_open(cache, r.store, "x", 0, 0, NULL),
			 -EINVAL);
	assert_int_equal(tr_file_close(NULL), -EINVAL);
	assert_int_equal(tr_file_attr(NULL, &attr), -EINVAL);
	assert_int_equal(tr_file_attr(r.file, NULL), -EINVAL);
	assert_int_equal(tr_read(NULL, &value, 1, 0, 0), -EINVAL);
	assert_int_equal(tr_read(r.file, NULL, 1, 0, 0), -EINVAL);
	assert_int_equal(tr_readv(r.file, NULL, 1, 0, 0), -EINVAL);
	assert_int_equal(tr_write(NULL, &value, 1, 0, 0), -EINVAL);
	assert_int_equal(tr_write(r.file, NULL, 1, 0, 0), -EINVAL);
	assert_int_equal(tr_writev(r.file, NULL, 1, 0, 0), -EINVAL);
	assert_int_equal(tr_write_segments(r.file, NULL, 1, 0, 0), -EINVAL);
	assert_int_equal(tr_write_segments(NULL, &seg, 1, 0, 0), -EINVAL);
	assert_int_equal(tr_fsync(NULL), -EINVAL);
	assert_int_equal(tr_fdatasync(NULL), -EINVAL);
	assert_int_equal(tr_fsync_range(NULL, 0, 0, TR_SYNC), -EINVAL);
	assert_int_equal(tr_truncate(NULL, 0), -EINVAL);
	assert_int_equal(tr_punch(NULL, 0, 1), -EINVAL);
	assert_int_equal(tr_allocate(NULL, 0, 1, true), -EINVAL);
	assert_int_equal(tr_seek(NULL, 0, SEEK_DATA), -EINVAL);
	assert_int_equal(tr_invalidate(NULL, 0, 0), -EINVAL);
	assert_int_equal(tr_map(NULL, 0, &map, &addr, &len), -EINVAL);
	assert_int_equal(tr_map(r.file, 0, NULL, &addr, &len), -EINVAL);
	assert_int_equal(tr_map(r.file, 0, &map, NULL, &len), -EINVAL);
	assert_int_equal(tr_map(r.file, 0, &map, &addr, NULL), -EINVAL);
	tr_map_dirty(NULL);
	tr_unmap(NULL);
	assert_int_equal(rig_attr(r.file).size, 0);
	rig_fini(&r);
}

static void closed_files_are_refused(void **state)
{
	struct tr_file_attr attr;
	struct tr_map *map;
	struct tr_file *f;
	struct rig r;
	char byte = 0;
	size_t len;
	void *addr;

	rig_init(&r, &plain);
	f = rig_open(&r, "g", O_RDWR | O_CREAT);
	assert_int_equal(tr_cache_destroy(r.cache), -EBUSY);
	assert_int_equal(tr_file_close(f), 0);
	assert_int_equal(tr_file_close(f), -EBADF);
	assert_int_equal(tr_file_attr(f, &attr), -EBADF);
	assert_int_equal(tr_read(f, &byte, 1, 0, 0), -EBADF);
	assert_int_equal(tr_write(f, &byte, 1, 0, 0), -EBADF);
	assert_int_equal(tr_fsync(f), -EBADF);
	assert_int_equal(tr_truncate(f, 0), -EBADF);
	assert_int_equal(tr_punch(f, 0, 1), -EBADF);
	assert_int_equal(tr_allocate(f, 0, 1, true), -EBADF);
	assert_int_equal(tr_seek(f, 0, SEEK_DATA), -EBADF);
	assert_int_equal(tr_invalidate(f, 0, 0), -EBADF);
	assert_int_equal(tr_map(f, 0, &map, &addr, &len), -EBADF);
	rig_fini(&r);
}

static void openings_permit_what_they_say(void **state)
{
	struct tr_file *rd, *wr, *x;
	struct rig r;
	char byte = 7;

	rig_init(&r, &plain);
	rd = rig_open(&r, "g", O_RDONLY | O_CREAT);
	wr = rig_open(&r, "g", O_WRONLY);
	assert_int_equal(tr_write(rd, &byte, 1, 0, 0), -EBADF);
	assert_int_equal(tr_truncate(rd, 1), -EBADF);
	assert_int_equal(tr_punch(rd, 0, 1), -EBADF);
	assert_int_equal(tr_allocate(rd, 0, 1, false), -EBADF);
	assert_int_equal(tr_write(wr, &byte, 1, 0, 0), 1);
	assert_int_equal(tr_read(wr, &byte, 1, 0, 0), -EBADF);
	byte = 0;
	assert_int_equal(tr_read(rd, &byte, 1, 0, 0), 1);
	assert_int_equal(byte, 7);
	assert_int_equal(tr_fsync(rd), 0);
	assert_int_equal(tr_file_open(r.cache, r.store, "g",
				      O_RDWR | O_CREAT | O_EXCL, 0600, &x),
			 -EEXIST);
	assert_int_equal(tr_file_open(r.cache, r.store, "h", O_RDWR, 0, &x),
			 -ENOENT);
	assert_int_equal(tr_file_open(r.cache, r.store, "g", O_ACCMODE, 0, &x),
			 -EINVAL);
	assert_int_equal(tr_file_open(r.cache, r.store, "g", O_RDWR | O_APPEND,
				      0, &x),
			 -EINVAL);
	x = rig_open(&r, "g", O_RDWR | O_TRUNC);
	assert_int_equal(rig_attr(rd).size, 0);
	assert_int_equal(tr_file_close(x), 0);
	assert_int_equal(tr_file_close(rd), 0);
	assert_int_equal(tr_file_close(wr), 0);
	rig_fini(&r);
}

static void flags_are_checked(void **state)
{
	struct tr_segment seg = { .flags = TR_DSYNC };
	unsigned char *buf = aligned_alloc(4096, 8192);
	struct iovec iov = { buf, 512 };
	struct rig r;

	rig_init(&r, &plain);
	memset(buf, 1, 8192);
	assert_int_equal(tr_read(r.file, buf, 1, 0, TR_DSYNC), -EINVAL);
	assert_int_equal(tr_read(r.file, buf, 1, 0, TR_SYNC), -EINVAL);
	assert_int_equal(tr_read(r.file, buf, 1, 0, TR_APPEND), -EINVAL);
	assert_int_equal(tr_read(r.file, buf, 1, 0, 1 << 20), -EINVAL);
	assert_int_equal(tr_read(r.file, buf, 1, -1, 0), -EINVAL);
	assert_int_equal(tr_write(r.file, buf, 1, -1, 0), -EINVAL);
	assert_int_equal(tr_write(r.file, buf, 1, 0, 1 << 16), -EINVAL);
	assert_int_equal(tr_write(r.file, buf, 1, 0, 1 << 17), -EINVAL);
	assert_int_equal(tr_write(r.file, buf, 1, 0, TR_NOWAIT | TR_DSYNC),
			 -EINVAL);
	assert_int_equal(tr_write(r.file, buf, 1, 0, TR_NOWAIT | TR_SYNC),
			 -EINVAL);
	seg.iov = &iov;
	seg.nr_iov = 1;
	assert_int_equal(tr_write_segments(r.file, &seg, 1, 0, 0), -EINVAL);
	seg.flags = 0;
	assert_int_equal(tr_write_segments(r.file, &seg, 1, 0, TR_DIRECT),
			 -EINVAL);
	assert_int_equal(tr_write_segments(r.file, &seg, -1, 0, 0), -EINVAL);
	/* Alignment of offset, length and memory. */
	assert_int_equal(tr_write(r.file, buf, 512, 100, TR_DIRECT), -EINVAL);
	assert_int_equal(tr_write(r.file, buf, 100, 512, TR_DIRECT), -EINVAL);
	assert_int_equal(tr_write(r.file, buf + 8, 512, 0, TR_DIRECT), -EINVAL);
	assert_int_equal(tr_read(r.file, buf, 512, 100, TR_DIRECT), -EINVAL);
	assert_int_equal(tr_read(r.file, buf + 8, 512, 0, TR_DIRECT), -EINVAL);
	assert_int_equal(tr_fsync_range(r.file, 0, 0, 0), -EINVAL);
	assert_int_equal(tr_fsync_range(r.file, 0, 0, TR_SYNC | TR_DSYNC),
			 -EINVAL);
	assert_int_equal(tr_fsync_range(r.file, -1, 0, TR_SYNC), -EINVAL);
	assert_int_equal(tr_fsync_range(r.file, 0, -1, TR_SYNC), -EINVAL);
	assert_int_equal(tr_truncate(r.file, -1), -EINVAL);
	assert_int_equal(tr_punch(r.file, -1, 1), -EINVAL);
	assert_int_equal(tr_punch(r.file, 0, 0), -EINVAL);
	assert_int_equal(tr_allocate(r.file, 0, 0, true), -EINVAL);
	assert_int_equal(tr_allocate(r.file, 4096, LAST, true), -EFBIG);
	assert_int_equal(tr_seek(r.file, 0, SEEK_SET), -EINVAL);
	assert_int_equal(tr_seek(r.file, -1, SEEK_DATA), -ENXIO);
	assert_int_equal(tr_seek(r.file, 0, SEEK_DATA), -ENXIO);
	assert_int_equal(tr_invalidate(r.file, -1, 0), -EINVAL);
	assert_int_equal(rig_attr(r.file).size, 0);
	rig_fini(&r);
	free(buf);
}

static void zero_bytes_change_nothing(void **state)
{
	static const unsigned flags[] = { 0,	    TR_DONTCACHE, TR_DIRECT,
					  TR_DSYNC, TR_APPEND,	  TR_NOWAIT };
	struct iovec iov[2] = { { NULL, 0 }, { NULL, 0 } };
	struct rig r;

	rig_init(&r, &plain);
	rig_write(r.file, 100, 0, 1, 0);
	for (unsigned i = 0; i < 6; i++) {
		assert_int_equal(tr_write(r.file, NULL, 0, 5000, flags[i]), 0);
		assert_int_equal(tr_writev(r.file, iov, 2, 5000, flags[i]), 0);
	}
	assert_int_equal(tr_writev(r.file, NULL, 0, 5000, 0), 0);
	assert_int_equal(tr_write_segments(r.file, NULL, 0, 5000, 0), 0);
	assert_int_equal(tr_read(r.file, NULL, 0, 0, 0), 0);
	assert_int_equal(tr_read(r.file, NULL, 0, 0, TR_DIRECT), 0);
	assert_int_equal(rig_attr(r.file).size, 100);
	rig_fini(&r);
}

/* The largest offsets: every path, and nothing wraps. */
static void ends_at_offset_max(void **state)
{
	static const unsigned flags[] = { 0, TR_DONTCACHE, TR_DSYNC,
					  TR_DONTCACHE | TR_DSYNC };
	char buf[200];
	struct tr_map *map;
	size_t len;
	void *addr;

	for (unsigned i = 0; i < 4; i++) {
		struct rig r;

		rig_init(&r, &plain);
		assert_int_equal(tr_write(r.file, buf, 101, LAST - 100,
					  flags[i]),
				 -EFBIG);
		assert_int_equal(tr_write(r.file, buf, 1, LAST, flags[i]),
				 -EFBIG);
		assert_int_equal(rig_attr(r.file).size, 0);
		rig_write(r.file, 100, LAST - 100, 1, flags[i]);
		assert_int_equal(rig_attr(r.file).size, LAST);
		rig_verify(r.file, 100, LAST - 100, 1, TR_DONTCACHE);
		assert_int_equal(tr_read(r.file, buf, 200, LAST - 50, 0), 50);
		assert_int_equal(tr_read(r.file, buf, 200, LAST, 0), 0);
		assert_int_equal(tr_write(r.file, buf, 1, 0, TR_APPEND),
				 -EFBIG);
		assert_int_equal(tr_fsync(r.file), 0);
		assert_int_equal(tr_invalidate(r.file, LAST - 5000, LAST), 0);
		rig_verify(r.file, 100, LAST - 100, 1, 0);
		assert_int_equal(tr_map(r.file, LAST - 10, &map, &addr, &len),
				 0);
		assert_int_equal(*(unsigned char *)addr,
				 rig_byte(LAST - 10, 1));
		tr_unmap(map);
		assert_int_equal(tr_map(r.file, LAST, &map, &addr, &len),
				 -ENXIO);
		assert_int_equal(
			tr_fsync_range(r.file, LAST - 10, LAST, TR_DSYNC), 0);
		assert_int_equal(tr_punch(r.file, LAST - 20, LAST), 0);
		assert_int_equal(tr_read(r.file, buf, 20, LAST - 20, 0), 20);
		for (int k = 0; k < 20; k++)
			assert_int_equal(buf[k], 0);
		assert_int_equal(tr_punch(r.file, 0, LAST), 0);
		rig_check(&r);
		assert_int_equal(tr_truncate(r.file, LAST - 4096), 0);
		assert_int_equal(tr_truncate(r.file, 10), 0);
		assert_int_equal(tr_fsync(r.file), 0);
		rig_is_clean(&r);
		rig_fini(&r);
	}
}

static void parameters_have_limits(void **state)
{
#define FIELD_(name, unit, dflt, least, most, sentence) { #name, least, most },
	static const struct {
		const char *name;
		int64_t least, most;
	} all[] = { TR_PARAMETERS(FIELD_) };
	struct rig r;
	int64_t v;

	rig_init(&r, &plain);
	for (unsigned i = 0; i < sizeof(all) / sizeof(all[0]); i++) {
		assert_int_equal(tr_cache_get(r.cache, all[i].name, &v), 0);
		assert_true(v >= all[i].least && v <= all[i].most);
		assert_int_equal(tr_cache_set(r.cache, all[i].name,
					      all[i].least - 1),
				 -EINVAL);
		if (all[i].most < INT64_MAX)
			assert_int_equal(tr_cache_set(r.cache, all[i].name,
						      all[i].most + 1),
					 -EINVAL);
		assert_int_equal(
			tr_cache_set(r.cache, all[i].name, all[i].least), 0);
		assert_int_equal(tr_cache_get(r.cache, all[i].name, &v), 0);
		assert_int_equal(v, all[i].least);
	}
	assert_int_equal(tr_cache_get(r.cache, "nothing", &v), -ENOENT);
	assert_int_equal(tr_cache_set(r.cache, "nothing", 1), -ENOENT);
	/* With everything as small as it may be, work gets done. */
	for (int i = 0; i < 60; i++)
		rig_write(r.file, 47008, i * 47008, 1, i & 1);
	rig_verify(r.file, 47008 * 60, 0, 1, 0);
	for (unsigned i = 0; i < sizeof(all) / sizeof(all[0]); i++)
		assert_int_equal(
			tr_cache_set(r.cache, all[i].name, all[i].most), 0);
	for (int i = 0; i < 60; i++)
		rig_write(r.file, 47008, i * 47008, 2, i & 1);
	rig_verify(r.file, 47008 * 60, 0, 2, TR_DONTCACHE);
	assert_int_equal(tr_fsync(r.file), 0);
	rig_check(&r);
	rig_fini(&r);
}

static void options_are_checked(void **state)
{
	struct tr_cache_options o = { .struct_size = sizeof(o),
				      .size = (4 << 20) - 1 };
	struct tr_cache *cache;

	assert_int_equal(tr_cache_create(&o, &cache), -EINVAL);
	o.size = 4 << 20;
	o.populate = true;
	assert_int_equal(tr_cache_create(&o, &cache), 0);
	assert_int_equal(tr_cache_check(cache), 0);
	assert_int_equal(tr_cache_sync(cache), 0);
	assert_int_equal(tr_cache_destroy(cache), 0);
}

static void statistics_count(void **state)
{
	struct rig_options o = plain;
	struct tr_statistics s;
	struct rig r;

	o.no_flushers = true;
	rig_init(&r, &o);
	s = rig_statistics(&r);
	assert_int_equal(s.cache_size, 16 << 20);
	assert_int_equal(s.cached_pages, 0);
	rig_write(r.file, 65536, 0, 1, 0);
	rig_write(r.file, 65536, 65536, 1, TR_DONTCACHE);
	rig_write(r.file, 100, 131072, 1, TR_DONTCACHE);
	s = rig_statistics(&r);
	assert_int_equal(s.reclaimable, 33);
	assert_int_equal(s.dontcache_dirty, 16);
	assert_int_equal(s.edge_dirty, 1);
	assert_int_equal(s.edges_held, 1);
	assert_int_equal(s.dirtied, 33);
	assert_int_equal(s.cached_pages, 33);
	assert_int_equal(rig_attr(r.file).cached_pages, 33);
	assert_int_equal(rig_attr(r.file).dirty_pages, 33);
	assert_int_equal(rig_attr(r.file).edges, 1);
	assert_int_equal(tr_fsync(r.file), 0);
	s = rig_statistics(&r);
	assert_int_equal(s.written, 33);
	assert_int_equal(s.device_syncs, 1);
	assert_int_equal(s.sync_calls, 1);
	assert_int_equal(s.dropped_behind, 16);
	assert_int_equal(s.cached_pages, 17);
	assert_int_equal(s.mappings, 1);
	tr_cache_reset_peak(r.cache);
	assert_int_equal(rig_statistics(&r).peak_dirty, 0);
	/* Nothing to do, nothing done. */
	assert_int_equal(tr_fsync(r.file), 0);
	assert_int_equal(rig_statistics(&r).device_syncs, 1);
	rig_verify(r.file, 65536, 0, 1, 0);
	assert_true(rig_statistics(&r).read_hits > s.read_hits);
	assert_int_equal(tr_file_close(r.file), 0);
	r.file = NULL;
	s = rig_statistics(&r);
	assert_int_equal(s.edges_held, 0);
	assert_int_equal(s.edges_evicted, 1);
	rig_check(&r);
	rig_fini(&r);
}

/* Where it would sleep, it says so; where not, it works. */
static void nowait_never_sleeps(void **state)
{
	struct rig_options o = plain;
	unsigned char *buf = aligned_alloc(4096, 8192);
	struct rig r;

	o.fault = true;
	rig_init(&r, &o);
	rig_write(r.file, 65536, 0, 1, TR_DONTCACHE);
	assert_int_equal(tr_fsync(r.file), 0);
	rig_settle(&r);
	assert_int_equal(tr_read(r.file, buf, 8192, 0, TR_NOWAIT), -EAGAIN);
	assert_int_equal(tr_read(r.file, buf, 4096, 0, TR_NOWAIT | TR_DIRECT),
			 -EAGAIN);
	assert_int_equal(tr_write(r.file, buf, 100, 50, TR_NOWAIT), -EAGAIN);
	assert_int_equal(tr_write(r.file, buf, 512, 0, TR_NOWAIT | TR_DIRECT),
			 -EAGAIN);
	rig_verify(r.file, 65536, 0, 1, 0);
	assert_int_equal(tr_read(r.file, buf, 8192, 0, TR_NOWAIT), 8192);
	rig_pattern(buf, 100, 50, 1);
	assert_int_equal(tr_write(r.file, buf, 100, 50, TR_NOWAIT), 100);
	rig_pattern(buf, 4096, 1 << 20, 1);
	assert_int_equal(tr_write(r.file, buf, 4096, 1 << 20, TR_NOWAIT), 4096);
	assert_int_equal(tr_write(r.file, buf, 100, 2 << 20,
				  TR_NOWAIT | TR_DONTCACHE),
			 100);
	rig_check(&r);
	rig_fini(&r);
	free(buf);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(null_is_refused),
		cmocka_unit_test(closed_files_are_refused),
		cmocka_unit_test(openings_permit_what_they_say),
		cmocka_unit_test(flags_are_checked),
		cmocka_unit_test(zero_bytes_change_nothing),
		cmocka_unit_test(ends_at_offset_max),
		cmocka_unit_test(parameters_have_limits),
		cmocka_unit_test(options_are_checked),
		cmocka_unit_test(statistics_count),
		cmocka_unit_test(nowait_never_sleeps),
	};

	return cmocka_run_group_tests(tests, leak_setup, leak_check);
}

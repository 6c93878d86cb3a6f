/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * The rig: device, cache and file together. It looks beneath the public calls
 * for one thing only: to stop the cache's threads, so that the check of all
 * invariants meets nobody at work.
 */
#include "lib/cachetest.h"
#include "lib/storetest.h"
#include "lib/test.h"

#include <fcntl.h>
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "cache/cache.h"
#include "folio/state.h"
#include "writeback/flush.h"

void rig_init(struct rig *r, const struct rig_options *o)
{
	struct tr_ram_options ram = {
		.struct_size = sizeof(ram),
		.block = o->block,
		.offset_align = o->offset_align,
		.capacity = o->capacity,
		.latency_ns = o->latency_ns,
		.volatile_cache = o->volatile_cache,
		.seed = o->seed,
	};
	struct tr_cache_options cache = {
		.struct_size = sizeof(cache),
		.size = o->cache_size ?: 16 << 20,
		.no_flushers = o->no_flushers,
	};

	r->ram = NULL;
	r->dir = o->host ? storetest_dir() : NULL;
	if (o->host)
		r->store = storetest_host(r->dir, TR_ENGINE_AUTO);
	else
		assert_int_equal(tr_store_ram_create(&ram, &r->ram), 0);
	r->store = r->ram ?: r->store;
	if (o->fault)
		assert_int_equal(tr_store_fault_create(r->ram, &r->store), 0);
	assert_int_equal(tr_cache_create(&cache, &r->cache), 0);
	r->file = rig_open(r, RIG_FILE, O_RDWR | O_CREAT);
}

struct tr_file *rig_open(struct rig *r, const char *name, int flags)
{
	struct tr_file *file = NULL;

	assert_int_equal(
		tr_file_open(r->cache, r->store, name, flags, 0600, &file), 0);
	return file;
}

void rig_fini(struct rig *r)
{
	struct tr_ram_counters c;

	if (r->file)
		(void)tr_file_close(r->file);
	assert_int_equal(tr_cache_destroy(r->cache), 0);
	c = rig_counters(r);
	assert_int_equal(c.extending_writes, 0);
	assert_int_equal(c.overlapping_writes, 0);
	tr_store_destroy(r->store);
}

void rig_check(struct rig *r)
{
	assert_int_equal(tr_cache_check(r->cache), 0);
}

static bool is_settled(struct tr_cache *c)
{
	struct tr_statistics s;
	struct wb *wb;
	bool settled;

	tr_cache_statistics(c, &s);
	settled = s.reclaimable == s.edge_dirty && !s.writeback;
	cds_list_for_each_entry (wb, &c->wbs, on_cache) {
		mutex_lock(&wb->lock);
		settled &= cds_list_empty(&wb->drops);
		mutex_unlock(&wb->lock);
	}
	return settled;
}

void rig_settle(struct rig *r)
{
	struct wb *wb;

	while (!is_settled(r->cache)) {
		cds_list_for_each_entry (wb, &r->cache->wbs, on_cache)
			wb_start(wb, WB_START_ALL);
		sched_yield();
	}
	/* The end of a writeback drops after it counts. */
	cache_pause(r->cache);
	assert_int_equal(cache_resume(r->cache), 0);
}

struct tr_statistics rig_statistics(struct rig *r)
{
	struct tr_statistics s;

	tr_cache_statistics(r->cache, &s);
	return s;
}

struct tr_file_attr rig_attr(struct tr_file *file)
{
	struct tr_file_attr a;

	assert_int_equal(tr_file_attr(file, &a), 0);
	return a;
}

struct tr_ram_counters rig_counters(struct rig *r)
{
	struct tr_ram_counters c = { 0 };

	if (r->ram)
		tr_store_ram_counters(r->ram, &c);
	return c;
}

void rig_is_clean(struct rig *r)
{
	struct tr_statistics s = rig_statistics(r);

	assert_int_equal(s.reclaimable, 0);
	assert_int_equal(s.edge_dirty, 0);
	assert_int_equal(s.dontcache_dirty, 0);
	assert_int_equal(s.writeback, 0);
}

/* What the host has, past its own cache as far as that can be. */
static ssize_t peek_host(struct rig *r, void *buf, size_t len)
{
	char path[300];
	ssize_t n;
	int fd;

	snprintf(path, sizeof(path), "%s/%s", r->dir, RIG_FILE);
	fd = open(path, O_RDONLY);
	assert_true(fd >= 0);
	n = read(fd, buf, len);
	close(fd);
	return n;
}

bool rig_device_is(struct rig *r, const void *bytes, int64_t size)
{
	const unsigned char *want = bytes;
	unsigned char *got = malloc(size + 1);
	ssize_t n =
		r->ram ? tr_store_ram_peek(r->ram, RIG_FILE, got, size + 1, 0)
		       : peek_host(r, got, size + 1);
	bool same = n == size;

	if (!same)
		fprintf(stderr, "device: %zd bytes, not %lld\n", n,
			(long long)size);
	for (int64_t i = 0; same && i < size; i++)
		if (got[i] != want[i]) {
			fprintf(stderr, "device: byte %lld is %02x, not %02x\n",
				(long long)i, got[i], want[i]);
			same = false;
		}
	free(got);
	return same;
}

/* A store through a mapping races with the device's reading, as it would with
 * that of a real one. */
__attribute__((no_sanitize("thread"))) void rig_pattern(void *buf, size_t len,
							int64_t pos,
							unsigned version)
{
	unsigned char *to = buf;

	for (size_t i = 0; i < len; i++)
		to[i] = rig_byte(pos + (int64_t)i, version);
}

void rig_write(struct tr_file *file, size_t len, int64_t off, unsigned version,
	       unsigned flags)
{
	void *buf = aligned_alloc(4096, align_up(len, 4096));

	rig_pattern(buf, len, off, version);
	assert_int_equal(tr_write(file, buf, len, off, flags), len);
	free(buf);
}

void rig_verify(struct tr_file *file, size_t len, int64_t off, unsigned version,
		unsigned flags)
{
	unsigned char *buf = aligned_alloc(4096, align_up(len, 4096));

	assert_int_equal(tr_read(file, buf, len, off, flags), len);
	for (size_t i = 0; i < len; i++)
		assert_int_equal(buf[i], rig_byte(off + (int64_t)i, version));
	free(buf);
}

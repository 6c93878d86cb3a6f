/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Help for tests of the cache: an emulated device, a cache on it and an open
 * file, made and ended together, and the checks that every test ends with.
 * All of it fails the test where it cannot go on.
 */
#ifndef TR_TEST_CACHETEST_H
#define TR_TEST_CACHETEST_H

#include <tailrace/cache.h>

#include "base/rng.h"

/* The file that a rig opens. */
#define RIG_FILE "f"

struct rig_options {
	uint32_t block; /* 0: 4096 */
	uint32_t offset_align; /* 0: the block */
	uint64_t capacity, seed;
	uint64_t latency_ns; /* of the device, each request */
	bool volatile_cache;
	bool fault; /* a fault layer above the device */
	bool host; /* a directory instead of the device */
	uint64_t cache_size; /* 0: 16 MiB */
	bool no_flushers;
};

struct rig {
	/* store: the fault layer, or ram; ram: NULL with a directory. */
	struct tr_store *ram, *store;
	const char *dir;
	struct tr_cache *cache;
	struct tr_file *file; /* RIG_FILE, for reading and writing */
};

void rig_init(struct rig *r, const struct rig_options *o);
/* Closes the file unless it is NULL, ends the cache, checks that the device
 * saw nothing it should not have, and ends it. */
void rig_fini(struct rig *r);

struct tr_file *rig_open(struct rig *r, const char *name, int flags);

/* Stops all threads of the cache, checks every invariant, starts them again.
 * No other call may be running. */
void rig_check(struct rig *r);

/* Sleeps until nothing is dirty but incomplete edges, and nothing is under
 * writeback or waits to be dropped. */
void rig_settle(struct rig *r);

struct tr_statistics rig_statistics(struct rig *r);
struct tr_file_attr rig_attr(struct tr_file *file);
struct tr_ram_counters rig_counters(struct rig *r);

/* Nothing is dirty or under writeback, in no counter. */
void rig_is_clean(struct rig *r);

/* Whether the device has just these bytes in the file, and is as long. */
bool rig_device_is(struct rig *r, const void *bytes, int64_t size);

/* The byte of a position in a version of a file: what patterns are made of. */
static inline unsigned char rig_byte(int64_t pos, unsigned version)
{
	uint64_t x =
		(uint64_t)pos * 0x9e3779b97f4a7c15ull + version * 0x1234567;

	return (x >> 32 ^ x >> 11) | 1;
}
void rig_pattern(void *buf, size_t len, int64_t pos, unsigned version);

/* Writes the pattern; it must be wholly written. */
void rig_write(struct tr_file *file, size_t len, int64_t off, unsigned version,
	       unsigned flags);
/* Reads and compares with the pattern. */
void rig_verify(struct tr_file *file, size_t len, int64_t off, unsigned version,
		unsigned flags);

#endif

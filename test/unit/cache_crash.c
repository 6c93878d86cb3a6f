/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Goal: after a power loss everything acknowledged as synced is there; anything
 * else is as some write of it left it, old or new, never garbage; the file is
 * no longer than the highest byte that was ever written, and no shorter than
 * what was synced.
 *
 * Method: random writes of every kind, some synced, on a device with a volatile
 * cache that keeps, loses or tears each unsynced write by the seed. It loses
 * its power at a random moment, with the flusher at work; what it has then is
 * compared, byte by byte, with what may be.
 */
#include "lib/test.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "lib/cachetest.h"

#define FILE_MAX (1 << 20)
#define LEN_MAX 60000
#define STEPS 60

/*
 * Each step writes its own number into every byte, so a byte says which write
 * it is of. stable: the last version of each byte that was synced; a survivor
 * may have that or any later one.
 */
struct run {
	struct rig rig;
	struct rng rng;
	uint32_t align;
	unsigned char last[FILE_MAX], stable[FILE_MAX];
	/* Where the bytes since stable began: all versions from stable on that
	 * wrote this byte. */
	unsigned char wrote[STEPS + 1][FILE_MAX / 8];
	int64_t size, stable_size;
	unsigned char *buf;
};

static void set_wrote(struct run *r, unsigned v, int64_t off, size_t len)
{
	for (int64_t i = off; i < off + (int64_t)len; i++)
		r->wrote[v][i / 8] |= 1 << i % 8;
}

static void synced(struct run *r)
{
	memcpy(r->stable, r->last, FILE_MAX);
	r->stable_size = r->size;
}

/* What is stable of a range only. */
static void synced_range(struct run *r, int64_t off, size_t len)
{
	memcpy(r->stable + off, r->last + off, len);
	if (off + (int64_t)len > r->stable_size)
		r->stable_size = off + len;
}

static void step(struct run *r, unsigned v)
{
	static const unsigned flags[] = {
		0,
		0,
		TR_DONTCACHE,
		TR_DONTCACHE,
		TR_DONTCACHE,
		TR_DSYNC,
		TR_DONTCACHE | TR_DSYNC,
		TR_DONTCACHE | TR_SYNC,
		TR_DIRECT,
		TR_DIRECT | TR_DONTCACHE | TR_DSYNC,
	};
	unsigned f = flags[rng_below(&r->rng, 10)];
	int64_t off = rng_below(&r->rng, FILE_MAX - LEN_MAX);
	size_t len = 1 + rng_below(&r->rng, LEN_MAX);

	if (f & TR_DIRECT) {
		off = off / r->align * r->align;
		len = (len + r->align - 1) / r->align * r->align;
		len = len > LEN_MAX ? len - r->align : len;
	}
	memset(r->buf, v, len);
	set_wrote(r, v, off, len);
	memset(r->last + off, v, len);
	assert_int_equal(tr_write(r->rig.file, r->buf, len, off, f), len);
	if (off + (int64_t)len > r->size)
		r->size = off + len;
	if (f & (TR_DSYNC | TR_SYNC))
		synced_range(r, off, len);
	if (!rng_below(&r->rng, 12)) {
		assert_int_equal(tr_fsync(r->rig.file), 0);
		synced(r);
	}
}

/* Whether a survivor's byte may be v. */
static bool may_be(const struct run *r, int64_t i, unsigned v)
{
	return v == r->stable[i] || (v > r->stable[i] && v <= STEPS &&
				     r->wrote[v][i / 8] >> i % 8 & 1);
}

static void check_survivor(struct run *r)
{
	unsigned char *got = malloc(FILE_MAX + 1);
	ssize_t n =
		tr_store_ram_peek(r->rig.ram, RIG_FILE, got, FILE_MAX + 1, 0);

	if (n < r->stable_size || n > r->size) {
		fprintf(stderr, "survivor: %zd bytes, synced %lld, file %lld\n",
			n, (long long)r->stable_size, (long long)r->size);
		fail();
	}
	for (ssize_t i = 0; i < n; i++)
		if (!may_be(r, i, got[i])) {
			fprintf(stderr,
				"survivor: byte %zd is of write %u, synced %u, "
				"last %u\n",
				i, got[i], r->stable[i], r->last[i]);
			fail();
		}
	free(got);
}

static void one_run(uint64_t seed, struct rig_options o)
{
	struct run *r = calloc(1, sizeof(*r));
	unsigned steps;

	o.volatile_cache = true;
	o.seed = seed;
	r->align = o.offset_align ?: o.block;
	r->buf = aligned_alloc(4096, (LEN_MAX + 4095) & -4096l);
	rng_seed(&r->rng, seed);
	rig_init(&r->rig, &o);
	steps = 1 + rng_below(&r->rng, STEPS);
	for (unsigned v = 1; v <= steps; v++)
		step(r, v);
	tr_store_ram_crash(r->rig.ram);
	check_survivor(r);
	/* The cache knows nothing of it, and ends well all the same. */
	(void)tr_file_close(r->rig.file);
	r->rig.file = NULL;
	assert_int_equal(tr_cache_destroy(r->rig.cache), 0);
	tr_store_destroy(r->rig.store);
	free(r->buf);
	free(r);
}

static void synced_bytes_survive(void **state)
{
	static const struct rig_options kinds[] = {
		{ .block = 4096, .offset_align = 512 },
		{ .block = 1024, .offset_align = 512 },
		{ .block = 16384, .offset_align = 4096 },
		{ .block = 4096, .cache_size = 4 << 20 },
	};
	uint64_t seed = seed_draw();

	for (unsigned i = 0; i < seed_rounds(8); i++)
		for (unsigned k = 0; k < 4; k++)
			one_run(seed + i * 10 + k, kinds[k]);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(synced_bytes_survive),
	};

	return cmocka_run_group_tests(tests, leak_setup, leak_check);
}

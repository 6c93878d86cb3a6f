/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Goal: many threads on one file, each with records of its own between those of
 * the others, each read back what they wrote, whatever calls the others make on
 * the pages they share; afterwards the device has every byte.
 *
 * Method: thread t of n owns the records t, t + n, ... and keeps the version
 * that it wrote last of each. It writes them in every way, reads and compares,
 * syncs, maps and invalidates at random. Run under ThreadSanitizer too.
 */
#include "lib/test.h"

#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>

#include "lib/cachetest.h"

#define THREADS 4
#define PER_THREAD 12
#define STEPS 120
#define RECORD_MAX 49152

struct shared {
	struct rig rig;
	size_t record;
	uint32_t align; /* 0: no direct writes */
	uint64_t seed;
	unsigned version[THREADS * PER_THREAD]; /* each its owner's; 0: none */
};

struct thread {
	struct shared *s;
	unsigned nr;
	pthread_t id;
	struct rng rng;
	struct tr_file *file;
};

/* cmocka's assertions jump out of their own thread only. */
static void die(const char *what, long where, long value)
{
	fprintf(stderr, "%s %ld: %ld\n", what, where, value);
	abort();
}

static void write_record(struct thread *t, unsigned rec)
{
	static const unsigned flags[] = { TR_DONTCACHE, TR_DONTCACHE,
					  TR_DONTCACHE | TR_DSYNC, 0,
					  TR_DSYNC };
	struct shared *s = t->s;
	unsigned f = flags[rng_below(&t->rng, 5)];

	if (s->align && !rng_below(&t->rng, 4))
		f |= TR_DIRECT;
	rig_write(t->file, s->record, (int64_t)rec * s->record,
		  ++s->version[rec], f);
}

static void read_record(struct thread *t, unsigned rec)
{
	static const unsigned flags[] = { 0, TR_DONTCACHE, TR_DONTCACHE };
	struct shared *s = t->s;

	if (s->version[rec])
		rig_verify(t->file, s->record, (int64_t)rec * s->record,
			   s->version[rec], flags[rng_below(&t->rng, 3)]);
}

/* Stores its own bytes through a mapping. */
static void map_record(struct thread *t, unsigned rec)
{
	struct shared *s = t->s;
	int64_t off = (int64_t)rec * s->record;
	struct tr_map *map;
	unsigned char *at;
	void *addr;
	size_t len;

	if (!s->version[rec])
		return;
	assert_int_equal(tr_map(t->file, off, &map, &addr, &len), 0);
	len = len < s->record ? len : s->record;
	at = addr;
	for (size_t i = 0; i < len; i++)
		assert_int_equal(at[i], rig_byte(off + i, s->version[rec]));
	if (len == s->record) {
		rig_pattern(addr, len, off, ++s->version[rec]);
		tr_map_dirty(map);
	}
	tr_unmap(map);
}

static void step(struct thread *t)
{
	unsigned rec = t->nr + THREADS * rng_below(&t->rng, PER_THREAD);
	int err;

	switch (rng_below(&t->rng, 12)) {
	case 0:
		assert_int_equal(tr_fsync(t->file), 0);
		break;
	case 1:
		err = tr_invalidate(t->file, 0, 0);
		assert_true(!err || err == -EBUSY);
		break;
	case 2:
		map_record(t, rec);
		break;
	case 3:
		assert_int_equal(tr_file_close(t->file), 0);
		t->file = rig_open(&t->s->rig, RIG_FILE, O_RDWR);
		break;
	case 4:
	case 5:
		read_record(t, rec);
		break;
	default:
		write_record(t, rec);
	}
}

static void *run(void *arg)
{
	struct thread *t = arg;

	rng_seed(&t->rng, t->s->seed + t->nr);
	t->file = rig_open(&t->s->rig, RIG_FILE, O_RDWR);
	for (int i = 0; i < STEPS; i++)
		step(t);
	assert_int_equal(tr_file_close(t->file), 0);
	return NULL;
}

static void verify(struct shared *s)
{
	int64_t size = rig_attr(s->rig.file).size;
	unsigned char *want = calloc(1, size);

	for (unsigned i = 0; i < THREADS * PER_THREAD; i++)
		if (s->version[i])
			rig_pattern(want + i * s->record, s->record,
				    (int64_t)i * s->record, s->version[i]);
	assert_true(rig_device_is(&s->rig, want, size));
	free(want);
}

static void run_all(const struct rig_options *o, size_t record, uint64_t seed)
{
	struct shared s = { .record = record, .seed = seed };
	struct thread t[THREADS];

	rig_init(&s.rig, o);
	s.align = record % (o->offset_align ?: o->block) ? 0 : 1;
	for (unsigned i = 0; i < THREADS; i++) {
		t[i] = (struct thread){ .s = &s, .nr = i };
		assert_int_equal(pthread_create(&t[i].id, NULL, run, &t[i]), 0);
	}
	for (unsigned i = 0; i < THREADS; i++)
		pthread_join(t[i].id, NULL);
	assert_int_equal(tr_fsync(s.rig.file), 0);
	rig_check(&s.rig);
	rig_is_clean(&s.rig);
	verify(&s);
	rig_fini(&s.rig);
}

static void neighbours_keep_their_bytes(void **state)
{
	static const size_t records[] = {
		47008, 6000, 1000, 49152, 12288, 100
	};
	static const struct rig_options kinds[] = {
		{ .block = 4096, .offset_align = 512, .cache_size = 4 << 20 },
		{ .block = 1024, .offset_align = 512, .cache_size = 8 << 20 },
		{ .block = 16384, .offset_align = 4096 },
	};
	uint64_t seed = seed_draw();

	for (unsigned i = 0; i < seed_rounds(1); i++)
		for (unsigned k = 0; k < 3; k++)
			for (unsigned n = 0; n < 6; n++)
				run_all(&kinds[k], records[n],
					seed + 1000 * i + 10 * k + n);
}

/* ---- readers against truncation ---- */

#define CUT_SIZE (1 << 20)
#define CUTS 60

static void *read_on(void *arg)
{
	struct rig *r = arg;
	struct tr_file *file = rig_open(r, RIG_FILE, O_RDONLY);
	unsigned char *buf = malloc(CUT_SIZE);
	int err;

	for (int i = 0; i < CUTS; i++) {
		ssize_t n = tr_read(file, buf, CUT_SIZE, 0,
				    i & 1 ? TR_DONTCACHE : 0);

		if (n < 0)
			die("read", i, n);
		/* Old bytes, or zeros of a file cut and grown again. */
		for (ssize_t k = 0; k < n; k++)
			if (buf[k] && buf[k] != rig_byte(k, 1))
				die("byte", k, buf[k]);
	}
	free(buf);
	err = tr_file_close(file);
	if (err)
		die("close", 0, err);
	return NULL;
}

static void readers_survive_truncation(void **state)
{
	struct rig_options o = { .block = 4096, .offset_align = 512 };
	struct rng rng;
	struct rig r;
	pthread_t id[2];

	rng_seed(&rng, seed_draw());
	rig_init(&r, &o);
	rig_write(r.file, CUT_SIZE, 0, 1, TR_DONTCACHE);
	for (int i = 0; i < 2; i++)
		assert_int_equal(pthread_create(&id[i], NULL, read_on, &r), 0);
	for (int i = 0; i < CUTS; i++) {
		int64_t cut = rng_below(&rng, CUT_SIZE);

		assert_int_equal(tr_truncate(r.file, cut), 0);
		if (i % 3 == 0)
			assert_int_equal(tr_truncate(r.file, CUT_SIZE), 0);
		else if (i % 3 == 1)
			assert_int_equal(tr_punch(r.file, cut / 2, 70000), 0);
		rig_write(r.file, CUT_SIZE - cut, cut, 1,
			  i & 1 ? TR_DONTCACHE : 0);
	}
	for (int i = 0; i < 2; i++)
		pthread_join(id[i], NULL);
	assert_int_equal(tr_fsync(r.file), 0);
	rig_check(&r);
	rig_is_clean(&r);
	rig_fini(&r);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(neighbours_keep_their_bytes),
		cmocka_unit_test(readers_survive_truncation),
	};

	return cmocka_run_group_tests(tests, leak_setup, leak_check);
}

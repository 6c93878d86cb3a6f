/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Goal: whatever calls are made on a file, in whatever order, it reads as the
 * model does, its counters stay exact, and after a sync the device has just
 * these bytes.
 *
 * Method: random calls of every kind on the file and on plain bytes alike, from
 * a seed, over devices of several block sizes and alignments and small caches,
 * with and without flushers. Everything is checked at rest every few steps.
 */
#include "lib/test.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "lib/cachetest.h"
#include "lib/model.h"

#define FILE_MAX (3 << 20)
#define LEN_MAX 200000
#define STEPS 250
#define SEGMENTS 3

struct run {
	struct rig rig;
	struct rng rng;
	struct model model;
	uint32_t align; /* of direct I/O */
	uint32_t unit;
	unsigned char *buf; /* LEN_MAX and a page, page aligned */
	struct tr_map *map; /* held over some steps */
	void *addr;
	int64_t map_off;
	size_t map_len;
	char step[128];
};

static unsigned dice(struct run *r, unsigned n)
{
	return rng_below(&r->rng, n);
}

static unsigned write_flags(struct run *r)
{
	static const unsigned flags[] = {
		0,
		0,
		TR_DONTCACHE,
		TR_DONTCACHE,
		TR_DONTCACHE,
		TR_DONTCACHE,
		TR_DONTCACHE | TR_DSYNC,
		TR_DONTCACHE | TR_SYNC,
		TR_DSYNC,
		TR_DIRECT,
		TR_DIRECT | TR_DONTCACHE,
		TR_DIRECT | TR_DONTCACHE | TR_DSYNC,
	};

	return flags[dice(r, sizeof(flags) / sizeof(flags[0]))];
}

/* A range; aligned if direct. */
static void draw_range(struct run *r, bool direct, int64_t *off, size_t *len)
{
	model_range(&r->model, r->unit, off, len);
	*len = *len > LEN_MAX ? LEN_MAX : *len;
	if (!direct)
		return;
	*off = *off / r->align * r->align;
	*len = (*len + r->align - 1) / r->align * r->align;
	if (*len > LEN_MAX / r->align * r->align)
		*len = LEN_MAX / r->align * r->align;
	if (*off + (int64_t)*len > FILE_MAX)
		*off = FILE_MAX - *len;
}

static void note(struct run *r, const char *what, int64_t off, size_t len,
		 unsigned flags)
{
	snprintf(r->step, sizeof(r->step), "%s off %lld len %zu flags %x", what,
		 (long long)off, len, flags);
	if (getenv("TR_STEPS"))
		fprintf(stderr, "%s size %lld\n", r->step,
			(long long)r->model.size);
}

static void let_map_go(struct run *r)
{
	tr_unmap(r->map);
	r->map = NULL;
}

static void step_write(struct run *r)
{
	unsigned flags = write_flags(r);
	int64_t off;
	size_t len;

	draw_range(r, flags & TR_DIRECT, &off, &len);
	note(r, "write", off, len, flags);
	model_fill(&r->model, r->buf, len);
	assert_int_equal(tr_write(r->rig.file, r->buf, len, off, flags), len);
	model_write(&r->model, r->buf, len, off);
}

static void step_nowait(struct run *r)
{
	int64_t off;
	size_t len;
	ssize_t n;

	draw_range(r, false, &off, &len);
	note(r, "write nowait", off, len, TR_NOWAIT);
	model_fill(&r->model, r->buf, len);
	n = tr_write(r->rig.file, r->buf, len, off,
		     TR_NOWAIT | (dice(r, 2) ? TR_DONTCACHE : 0));
	assert_true(n == -EAGAIN || (n > 0 && n <= (ssize_t)len));
	if (n > 0)
		model_write(&r->model, r->buf, n, off);
}

static void step_append(struct run *r)
{
	size_t len = 1 + dice(r, 60000);

	if (r->model.size + (int64_t)len > FILE_MAX)
		return;
	note(r, "append", r->model.size, len, TR_APPEND);
	model_fill(&r->model, r->buf, len);
	assert_int_equal(tr_write(r->rig.file, r->buf, len, 0,
				  TR_APPEND | (dice(r, 2) ? TR_DONTCACHE : 0)),
			 len);
	model_write(&r->model, r->buf, len, r->model.size);
}

/* As a server splits a write: uncached ends, a direct middle. */
static void step_segments(struct run *r)
{
	unsigned flags = dice(r, 2) ? TR_DSYNC : 0;
	struct tr_segment s[SEGMENTS];
	struct iovec iov[SEGMENTS];
	int64_t off, at;
	size_t len, head, middle;

	draw_range(r, false, &off, &len);
	at = (off + r->align - 1) / r->align * r->align;
	head = at - off;
	if (head >= len || len - head < r->align)
		return;
	middle = (len - head) / r->align * r->align;
	note(r, "segments", off, len, flags);
	model_fill(&r->model, r->buf, len);
	/* The middle has to lie well in memory. */
	memmove(r->buf + 4096, r->buf, len < LEN_MAX - 4096 ? len : 0);
	if (len >= LEN_MAX - 4096)
		return;
	iov[0] = (struct iovec){ malloc(head + 1), head };
	iov[1] = (struct iovec){ aligned_alloc(4096, (middle + 4095) & -4096l),
				 middle };
	iov[2] = (struct iovec){ r->buf + 4096 + head + middle,
				 len - head - middle };
	memcpy(iov[0].iov_base, r->buf + 4096, head);
	memcpy(iov[1].iov_base, r->buf + 4096 + head, middle);
	for (int i = 0; i < SEGMENTS; i++)
		s[i] = (struct tr_segment){
			.iov = &iov[i],
			.nr_iov = 1,
			.flags = TR_DONTCACHE | (i == 1 ? TR_DIRECT : 0),
		};
	assert_int_equal(
		tr_write_segments(r->rig.file, s, SEGMENTS, off, flags), len);
	model_write(&r->model, r->buf + 4096, len, off);
	free(iov[0].iov_base);
	free(iov[1].iov_base);
}

static void step_read(struct run *r)
{
	static const unsigned all[] = { 0, 0, TR_DONTCACHE, TR_DONTCACHE,
					TR_DIRECT };
	unsigned flags = all[dice(r, 5)];
	int64_t off, want;
	size_t len;
	ssize_t n;

	draw_range(r, flags & TR_DIRECT, &off, &len);
	note(r, "read", off, len, flags);
	want = r->model.size > off ? r->model.size - off : 0;
	want = want < (int64_t)len ? want : (int64_t)len;
	n = tr_read(r->rig.file, r->buf, len, off, flags);
	assert_int_equal(n, want);
	assert_true(model_same(&r->model, r->buf, n, off));
}

static void step_truncate(struct run *r)
{
	int64_t off;
	size_t len;

	let_map_go(r);
	draw_range(r, false, &off, &len);
	if (dice(r, 2))
		off = r->model.size - (int64_t)dice(r, 3 * r->unit);
	off = off < 0 ? 0 : off;
	note(r, "truncate", off, 0, 0);
	assert_int_equal(tr_truncate(r->rig.file, off), 0);
	model_truncate(&r->model, off);
}

static void step_space(struct run *r)
{
	bool keep = dice(r, 2);
	int64_t off;
	size_t len;

	let_map_go(r);
	draw_range(r, false, &off, &len);
	if (dice(r, 3)) {
		note(r, "punch", off, len, 0);
		assert_int_equal(tr_punch(r->rig.file, off, len), 0);
		model_punch(&r->model, off, len);
		return;
	}
	note(r, "allocate", off, len, keep);
	assert_int_equal(tr_allocate(r->rig.file, off, len, keep), 0);
	if (!keep && off + (int64_t)len > r->model.size)
		model_truncate(&r->model, off + len);
}

/* Stores through a mapping, held from an earlier step or new. */
static void step_map(struct run *r)
{
	int64_t left;
	size_t len;

	if (!r->model.size)
		return;
	if (!r->map) {
		r->map_off = rng_below(&r->rng, r->model.size);
		assert_int_equal(tr_map(r->rig.file, r->map_off, &r->map,
					&r->addr, &r->map_len),
				 0);
	}
	left = r->model.size - r->map_off;
	len = r->map_len < (size_t)left ? r->map_len : (size_t)left;
	len = 1 + dice(r, len);
	note(r, "map", r->map_off, len, 0);
	assert_true(model_same(&r->model, r->addr, len, r->map_off));
	if (dice(r, 3)) {
		model_fill(&r->model, r->addr, len);
		tr_map_dirty(r->map);
		model_write(&r->model, r->addr, len, r->map_off);
	}
	if (dice(r, 3))
		let_map_go(r);
}

static void step_sync(struct run *r)
{
	int64_t off;
	size_t len;

	draw_range(r, false, &off, &len);
	note(r, "sync", off, len, 0);
	if (dice(r, 2))
		assert_int_equal(
			tr_fsync_range(r->rig.file, off, len, TR_DSYNC), 0);
	else
		assert_int_equal(tr_fsync(r->rig.file), 0);
}

static void step_other(struct run *r)
{
	int64_t off, at;
	size_t len;
	int err;

	draw_range(r, false, &off, &len);
	switch (dice(r, 3)) {
	case 0:
		note(r, "invalidate", off, len, 0);
		err = tr_invalidate(r->rig.file, off, dice(r, 2) ? len : 0);
		assert_true(!err || err == -EBUSY);
		break;
	case 1:
		note(r, "seek", off, len, 0);
		at = tr_seek(r->rig.file, off, SEEK_DATA);
		assert_true(at == -ENXIO || (at >= off && at < r->model.size));
		for (; off < r->model.size && (at < 0 || off < at); off++)
			assert_int_equal(r->model.bytes[off], 0);
		break;
	default:
		note(r, "reopen", 0, 0, 0);
		let_map_go(r);
		assert_int_equal(tr_file_close(r->rig.file), 0);
		r->rig.file = rig_open(&r->rig, RIG_FILE, O_RDWR);
	}
	assert_int_equal(rig_attr(r->rig.file).size, r->model.size);
}

static void step(struct run *r)
{
	static void (*const other[])(struct run *) = {
		step_nowait, step_append, step_segments, step_segments,
		step_read,   step_read,	  step_read,	 step_truncate,
		step_space,  step_map,	  step_map,	 step_sync,
		step_other,
	};

	if (dice(r, 5) < 3)
		step_write(r);
	else
		other[dice(r, sizeof(other) / sizeof(other[0]))](r);
}

static void read_all(struct run *r)
{
	unsigned char *all = malloc(FILE_MAX + 1);

	assert_int_equal(tr_read(r->rig.file, all, FILE_MAX + 1, 0, 0),
			 r->model.size);
	assert_true(model_same(&r->model, all, r->model.size, 0));
	free(all);
}

static void end_run(struct run *r)
{
	let_map_go(r);
	assert_int_equal(tr_fsync(r->rig.file), 0);
	rig_check(&r->rig);
	rig_is_clean(&r->rig);
	assert_true(rig_device_is(&r->rig, r->model.bytes, r->model.size));
	read_all(r);
	assert_int_equal(rig_attr(r->rig.file).edges, 0);
	rig_fini(&r->rig);
	model_fini(&r->model);
	free(r->buf);
}

static void one_run(uint64_t seed, const struct rig_options *o)
{
	struct run r = { 0 };

	rng_seed(&r.rng, seed);
	rig_init(&r.rig, o);
	r.align = rig_attr(r.rig.file).offset_align;
	r.align = r.align ?: 4096;
	r.unit = rig_attr(r.rig.file).unit;
	r.buf = aligned_alloc(4096, (LEN_MAX + 8191) & -4096l);
	assert_int_equal(model_init(&r.model, FILE_MAX, &r.rng), 0);
	for (int i = 0; i < STEPS; i++) {
		step(&r);
		if (i % 8 == 7)
			rig_check(&r.rig);
	}
	end_run(&r);
}

static void file_is_as_the_model(void **state)
{
	static const struct rig_options kinds[] = {
		{ .block = 4096 },
		{ .block = 4096, .offset_align = 512 },
		{ .block = 1024, .offset_align = 512 },
		{ .block = 512, .cache_size = 4 << 20 },
		{ .block = 16384, .offset_align = 4096 },
		{ .block = 16384, .cache_size = 8 << 20 },
		{ .block = 4096, .offset_align = 512, .cache_size = 4 << 20 },
		{ .host = true, .cache_size = 8 << 20 },
	};
	uint64_t seed = seed_draw();

	for (unsigned i = 0; i < seed_rounds(1); i++)
		for (unsigned k = 0; k < sizeof(kinds) / sizeof(kinds[0]);
		     k++) {
			one_run(seed + i * 1000 + k, &kinds[k]);
		}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(file_is_as_the_model),
	};

	return cmocka_run_group_tests(tests, leak_setup, leak_check);
}

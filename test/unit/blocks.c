/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Goal: per-block state says of each block whether it is valid and dirty, and
 * a split gives each part its own.
 *
 * Method: random ranges made valid and dirty in a large folio and in plain
 * arrays alike, on devices of several block sizes; then the folio is split and
 * its parts are compared with the arrays again.
 */
#include "lib/test.h"

#include <stdlib.h>
#include <string.h>

#include "cache/file.h"
#include "cache/lookup.h"
#include "folio/blocks.h"
#include "lib/cachetest.h"

#define ORDER 4
#define LEN (4096u << ORDER)
#define BLOCKS_MAX (LEN / 512)

struct scene {
	struct rig rig;
	struct mapping *m;
	struct folio *f;
	struct rng rng;
	uint32_t block;
	bool valid[BLOCKS_MAX], dirty[BLOCKS_MAX];
};

static void scene_init(struct scene *s, uint32_t block)
{
	struct rig_options o = { .block = block, .no_flushers = true };

	memset(s, 0, sizeof(*s));
	s->block = block;
	rig_init(&s->rig, &o);
	s->m = cache_file_mapping(s->rig.file);
	rng_seed(&s->rng, seed_draw());
	assert_int_equal(cache_get_folio(s->m, 1 << ORDER, GET_LOCK | GET_CREAT,
					 LEN, &s->f),
			 0);
	assert_int_equal(s->f->order, ORDER);
	assert_int_equal(blocks_nr(s->m, s->f), LEN / block);
	assert_true(blocks_make(s->m, s->f));
}

static void draw(struct scene *s, size_t *from, size_t *to)
{
	*from = rng_below(&s->rng, LEN);
	*to = *from + 1 + rng_below(&s->rng, 9000);
	*to = *to > LEN ? LEN : *to;
}

static void mark(struct scene *s, bool *bits, size_t from, size_t to)
{
	for (size_t i = from / s->block; i < (to + s->block - 1) / s->block;
	     i++)
		bits[i] = true;
}

/* The runs of dirty and of missing blocks of a folio that has the blocks of
 * the model from first on. */
static void compare(struct scene *s, struct folio *f, unsigned first)
{
	unsigned nr = folio_len(f) / s->block, i = 0;
	size_t from = 0, to = 0;

	while (blocks_next_dirty(s->m, f, &from, &to)) {
		for (; i < from / s->block; i++)
			assert_false(s->dirty[first + i]);
		for (; i < to / s->block; i++)
			assert_true(s->dirty[first + i]);
		from = to;
	}
	for (; i < nr; i++)
		assert_false(s->dirty[first + i]);
	from = i = 0;
	to = folio_len(f);
	while (blocks_next_missing(s->m, f, &from, &to)) {
		for (; i < from / s->block; i++)
			assert_true(s->valid[first + i]);
		for (; i < to / s->block; i++)
			assert_false(s->valid[first + i]);
		from = to;
		to = folio_len(f);
	}
	for (; i < nr; i++)
		assert_true(s->valid[first + i]);
}

static void random_ranges(struct scene *s, int steps)
{
	for (int i = 0; i < steps; i++) {
		size_t from, to;
		bool all = true;

		draw(s, &from, &to);
		blocks_set_uptodate(s->m, s->f, from, to);
		mark(s, s->valid, from, to);
		blocks_set_dirty(s->m, s->f, from, to);
		mark(s, s->dirty, from, to);
		compare(s, s->f, 0);
		draw(s, &from, &to);
		for (size_t k = from / s->block; k <= (to - 1) / s->block; k++)
			all &= s->valid[k];
		assert_int_equal(!blocks_next_missing(s->m, s->f, &from, &to),
				 all);
	}
}

static void end(struct scene *s)
{
	folio_remove(s->f);
	folio_unlock(s->f);
	folio_put(s->f, s->rig.cache);
	rig_check(&s->rig);
	rig_fini(&s->rig);
}

static const uint32_t sizes[] = { 512, 1024, 4096 };

static void blocks_are_as_marked(void **state)
{
	struct scene s;

	for (int i = 0; i < 3; i++) {
		scene_init(&s, sizes[i]);
		random_ranges(&s, 30);
		/* All that is valid becomes dirty. */
		blocks_all_dirty(s.f);
		memcpy(s.dirty, s.valid, sizeof(s.dirty));
		compare(&s, s.f, 0);
		/* Clean: what is not valid is still known. */
		blocks_clean(s.m, s.f);
		memset(s.dirty, 0, sizeof(s.dirty));
		if (s.f->blocks)
			compare(&s, s.f, 0);
		blocks_set_uptodate(s.m, s.f, 0, LEN);
		assert_true(folio_test(s.f, FOLIO_UPTODATE));
		blocks_clean(s.m, s.f);
		assert_null(s.f->blocks);
		end(&s);
	}
}

/* Splits a folio with some blocks dirty, marked or not; sums stay exact. */
static void split(uint32_t block, bool marked)
{
	struct tr_statistics st;
	struct scene s;
	long dirty = 0;

	scene_init(&s, block);
	blocks_set_uptodate(s.m, s.f, 0, LEN);
	memset(s.valid, true, sizeof(s.valid));
	for (int i = 0; i < 3; i++) {
		size_t from, to;

		draw(&s, &from, &to);
		blocks_set_dirty(s.m, s.f, from, to);
		mark(&s, s.dirty, from, to);
	}
	folio_mark_dirty(s.f, 0);
	if (marked)
		folio_mark_dropbehind(s.f);
	assert_int_equal(rig_statistics(&s.rig).reclaimable, 1 << ORDER);
	assert_true(folio_split(s.f));
	folio_unlock(s.f);
	for (unsigned i = 0; i < 1 << ORDER; i++) {
		struct folio *f = cache_find(s.m, (1 << ORDER) + i);
		bool any = false;

		assert_int_equal(f->order, 0);
		for (unsigned k = 0; k < 4096 / block; k++)
			any |= s.dirty[i * (4096 / block) + k];
		assert_int_equal(!!folio_test(f, FOLIO_DIRTY), any);
		assert_int_equal(!!folio_test(f, FOLIO_DROPBEHIND), marked);
		assert_true(folio_test(f, FOLIO_UPTODATE));
		if (f->blocks)
			compare(&s, f, i * (4096 / block));
		dirty += any;
		folio_put(f, s.rig.cache);
	}
	st = rig_statistics(&s.rig);
	assert_int_equal(st.reclaimable, dirty);
	assert_int_equal(st.dontcache_dirty, marked ? dirty : 0);
	rig_check(&s.rig);
	folio_put(s.f, s.rig.cache);
	assert_int_equal(tr_truncate(s.rig.file, 2 * LEN), 0);
	assert_int_equal(tr_fsync(s.rig.file), 0);
	rig_is_clean(&s.rig);
	rig_fini(&s.rig);
}

static void parts_have_their_share(void **state)
{
	for (int i = 0; i < 3; i++) {
		split(sizes[i], false);
		split(sizes[i], true);
	}
}

/* What cannot be split stays whole. */
static void some_folios_stay_whole(void **state)
{
	struct folio *f;
	struct scene s;

	scene_init(&s, 1024);
	blocks_set_uptodate(s.m, s.f, 0, 1024);
	/* Parts would need memory for what is not valid. */
	assert_false(folio_split(s.f));
	blocks_set_uptodate(s.m, s.f, 0, LEN);
	atomic_fetch_add(&s.f->maps, 1);
	assert_false(folio_split(s.f));
	atomic_fetch_sub(&s.f->maps, 1);
	f = cache_find(s.m, 1 << ORDER);
	assert_ptr_equal(f, s.f);
	assert_false(folio_split(s.f));
	folio_put(f, s.rig.cache);
	assert_true(folio_split(s.f));
	assert_false(folio_split(s.f));
	folio_unlock(s.f);
	folio_put(s.f, s.rig.cache);
	rig_check(&s.rig);
	rig_fini(&s.rig);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(blocks_are_as_marked),
		cmocka_unit_test(parts_have_their_share),
		cmocka_unit_test(some_folios_stay_whole),
	};

	return cmocka_run_group_tests(tests, leak_setup, leak_check);
}

/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Goal: interleaved uncached writers, a cached writer with a mapped store and
 * syncs on one file, with the cache's own threads at work, for units of every
 * size: whatever the schedule, every record is there at the end, no edge that
 * is complete stays, and nothing is counted that is not.
 * Method: two writers with every second record each, smaller than a unit and
 * not aligned to anything; a third task beside and across them. Limits so low
 * that edges are evicted and writers wait. Too long for all schedules: seeded
 * ones at random.
 */
#include "scene.h"

#define RECORD 1500
#define RECORDS 10
/* Where the records end, and what is beyond is the third task's. */
#define BEYOND (4 * PAGE)

static void records(struct scene *s, unsigned first, char letter,
		    unsigned flags)
{
	for (unsigned i = first; i < RECORDS; i += 2)
		scene_write(s, letter, i * RECORD, RECORD, flags);
}

static void even(struct scene *s)
{
	records(s, 0, 'a', TR_DONTCACHE);
}

static void odd(struct scene *s)
{
	records(s, 1, 'b', TR_DONTCACHE);
}

static void odd_synced(struct scene *s)
{
	records(s, 1, 'b', TR_DONTCACHE | TR_DSYNC);
}

static void others(struct scene *s)
{
	scene_write(s, 'c', BEYOND + 100, 3000, 0);
	scene_store(s);
	scene_read(s, 0, 3 * RECORD, 0, "aob0"); /* the file is longer */
	explore_assert(!tr_fsync(s->file));
	scene_write(s, 'd', BEYOND + 5 * PAGE, PAGE, TR_DONTCACHE);
}

static void syncs(struct scene *s)
{
	explore_assert(!tr_fsync_range(s->file, RECORD, RECORD, TR_DSYNC));
	if (mapping_size(s->m) >= 3 * RECORD)
		scene_read(s, RECORD, 2 * RECORD, TR_DONTCACHE, "aob0");
	explore_assert(!tr_fdatasync(s->file));
}

struct variant {
	uint32_t block;
	int64_t size; /* of the old file */
};

static void begin(struct scene *s, const struct variant *v)
{
	struct scene_options o = { .size = v->size,
				   .block = v->block,
				   .flushers = true };

	scene_begin(s, &o);
	explore_assert(!tr_cache_set(s->cache, "edge_max_pages", 2));
	explore_assert(!tr_cache_set(s->cache, "dontcache_limit", 65536));
	for (unsigned i = 0; i < RECORDS; i++)
		scene_expect(s, i * RECORD, RECORD, i % 2 ? "b" : "a");
}

static void interleaved(void *arg)
{
	struct scene s;

	begin(&s, arg);
	SCENE_RUN(&s, even, odd);
	scene_end(&s);
}

static void interleaved_synced(void *arg)
{
	struct scene s;

	begin(&s, arg);
	/* The read ends in the middle of a page. */
	s.read_ahead = true;
	SCENE_RUN(&s, even, odd_synced, syncs);
	scene_end(&s);
}

static void everything(void *arg)
{
	const struct variant *v = arg;
	struct scene s;
	int64_t mapped = BEYOND + 2 * PAGE;

	begin(&s, v);
	scene_write(&s, 'm', mapped, PAGE, 0);
	if (v->size < mapped) {
		scene_expect(&s, RECORDS * RECORD, mapped - RECORDS * RECORD,
			     "0");
		scene_expect(&s, mapped + PAGE, 2 * PAGE, "0");
	}
	scene_expect(&s, BEYOND + 100, 3000, "c");
	scene_map(&s, mapped);
	scene_expect(&s, mapped, PAGE, "n");
	scene_expect(&s, BEYOND + 5 * PAGE, PAGE, "d");
	SCENE_RUN(&s, even, odd, others);
	scene_end(&s);
}

int main(int argc, char **argv)
{
	static struct variant small = { 1024, 0 }, page = { 4096, 0 },
			      large = { 16384, 0 }, old = { 4096, 12 * PAGE },
			      old_small = { 1024, 12 * PAGE },
			      old_large = { 16384, 12 * PAGE };
	const struct explore_options o = {
		.inner_rank = LOCK_WB,
		.schedules_max = 100,
		.random_nr = SCENE_SCHEDULES / 16,
		.steps_max = 100000,
	};
	const struct explore_test tests[] = {
		{ "small", interleaved, &small, o },
		{ "page", interleaved, &page, o },
		{ "large", interleaved, &large, o },
		{ "old", interleaved, &old, o },
		{ "synced", interleaved_synced, &page, o },
		{ "synced-old", interleaved_synced, &old, o },
		{ "synced-old-large", interleaved_synced, &old_large, o },
		{ "everything-small", everything, &small, o },
		{ "everything", everything, &page, o },
		{ "everything-large", everything, &large, o },
		{ "everything-old", everything, &old, o },
		{ "everything-old-small", everything, &old_small, o },
		{ "everything-old-large", everything, &old_large, o },
	};

	return explore_main(argc, argv, tests, ARRAY_SIZE(tests));
}

/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Goal: while a large folio that is dirty, marked, or both is split, lookups
 * find the whole or a part that has their page, its writeback and its mark are
 * counted exactly, and none of its parts is lost or kept for ever: race 7 of
 * the fault list.
 * Method: one folio of four pages; one task splits it, by hand or by an
 * uncached write of a part, others look up, unmark, write back, drop or read.
 *
 * Seen to fail: with the parts inheriting no mark (pages stay), with references
 * not frozen or given back part by part (a lookup gets a folio that does not
 * have its page), with the whole not uncounted.
 */
#include "scene.h"

#include <errno.h>
#include <string.h>

#define PAGES 4
#define LEN (PAGES * PAGE)

/* One folio, dirty if flags do not sync it. */
static void begin(struct scene *s, unsigned flags)
{
	scene_begin(s, &(struct scene_options){ .size = 0 });
	scene_write(s, 'c', 0, LEN, flags);
	scene_expect(s, 0, LEN, "c");
}

/* Brought in by an uncached reader, who has not used it up: marked, clean. */
static void begin_read(struct scene *s)
{
	scene_begin(s, &(struct scene_options){ .size = LEN });
	scene_read(s, 0, 100, TR_DONTCACHE, "o");
	s->read_ahead = true;
}

static void split(struct scene *s)
{
	struct folio *f = cache_find(s->m, 0);

	if (!f)
		return;
	folio_lock(f);
	if (f->mapping == s->m)
		(void)!folio_split(f);
	folio_unlock(f);
	folios_drop_behind(s->m, &f, 1);
	scene_put(s, f);
}

/* Any page of it is what it says, and unmarked by this. */
static void want_page(struct scene *s, uint64_t idx, unsigned flags)
{
	struct folio *f;
	int err = cache_get_folio(s->m, idx, flags, 0, &f);

	explore_assert(!err || err == -ENOENT);
	if (err)
		return;
	if (f->mapping)
		explore_assert(idx - f->idx < folio_nr_pages(f));
	if (flags & GET_LOCK)
		folio_unlock(f);
	scene_put(s, f);
}

static void want(struct scene *s)
{
	want_page(s, 2, 0);
}

static void want_locked(struct scene *s)
{
	want_page(s, 2, GET_LOCK);
}

static void write_part(struct scene *s)
{
	scene_write(s, 'p', PAGE + 100, 1000, TR_DONTCACHE);
}

static void use_up(struct scene *s)
{
	scene_read(s, PAGE, PAGE, TR_DONTCACHE, "ocp");
}

static void sync(struct scene *s)
{
	explore_assert(!tr_fdatasync(s->file));
}

static void split_and_look(void *flags)
{
	struct scene s;

	begin(&s, *(unsigned *)flags);
	SCENE_RUN(&s, split, want);
	scene_end(&s);
}

static void split_and_lock(void *flags)
{
	struct scene s;

	begin(&s, *(unsigned *)flags);
	SCENE_RUN(&s, split, want_locked);
	scene_end(&s);
}

static void split_and_flush(void *flags)
{
	struct scene s;

	begin(&s, *(unsigned *)flags);
	if (*(unsigned *)flags)
		s.cached_max = 0;
	SCENE_RUN(&s, split, scene_flush);
	scene_end(&s);
}

static void part_and_flush(void *flags)
{
	struct scene s;

	begin(&s, *(unsigned *)flags);
	scene_expect(&s, PAGE + 100, 1000, "p");
	SCENE_RUN(&s, write_part, scene_flush);
	scene_end(&s);
}

static void part_and_look(void *flags)
{
	struct scene s;

	begin(&s, *(unsigned *)flags);
	scene_expect(&s, PAGE + 100, 1000, "p");
	SCENE_RUN(&s, write_part, want, sync);
	scene_end(&s);
}

/* Two who drop the same part meet the split. */
static void split_and_drop(void *arg UNUSED)
{
	struct scene s;

	begin_read(&s);
	SCENE_RUN(&s, split, use_up, use_up);
	scene_end(&s);
}

static void part_and_drop(void *arg UNUSED)
{
	struct scene s;

	begin_read(&s);
	scene_expect(&s, PAGE + 100, 1000, "p");
	SCENE_RUN(&s, write_part, use_up, scene_flush);
	scene_end(&s);
}

/* A page of it is mapped and stored to: the split is refused or comes after. */
static void store(struct scene *s)
{
	memset(s->mapped, 'n', PAGE_SIZE);
	tr_map_dirty(s->map);
	tr_unmap(s->map);
}

static void split_and_store(void *flags)
{
	struct scene s;

	begin(&s, *(unsigned *)flags);
	scene_map(&s, 3 * PAGE);
	scene_expect(&s, 3 * PAGE, PAGE, "n");
	scene_mark(&s);
	SCENE_RUN(&s, split, store, scene_flush);
	scene_end(&s);
}

int main(int argc, char **argv)
{
	static unsigned cached = 0, uncached = TR_DONTCACHE;
	const struct explore_options o = SCENE_OPTIONS;
	const struct explore_options many = SCENE_OPTIONS_MANY;
	/* Which list a part is on matters here. */
	struct explore_options all = many;

	all.inner_rank = 0;
	const struct explore_test tests[] = {
		{ "look", split_and_look, &cached, o },
		{ "look-marked", split_and_look, &uncached, o },
		{ "lock-marked", split_and_lock, &uncached, o },
		{ "flush", split_and_flush, &cached, o },
		{ "flush-marked", split_and_flush, &uncached, o },
		{ "part-and-flush", part_and_flush, &cached, o },
		{ "part-and-flush-marked", part_and_flush, &uncached, o },
		{ "part-and-look", part_and_look, &uncached, many },
		{ "drop", split_and_drop, NULL, all },
		{ "part-and-drop", part_and_drop, NULL, many },
		{ "store", split_and_store, &cached, many },
	};

	return explore_main(argc, argv, tests, ARRAY_SIZE(tests));
}

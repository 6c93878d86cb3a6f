/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Goal: however the two steps of a mapped store (bit, then count) fall together
 * with marking, unmarking, cancelling, cleaning and dropping, the counters are
 * exact and no byte is lost: races 1 to 4 of the fault list.
 * Method: one mapped page; a task stores through the map and ends it, one or
 * two others do the other thing.
 *
 * Seen to fail: with the mark set or cleared without counting, or outside the
 * index lock, with the count of a mark taken by the dirty bit instead of the
 * tag, with a folio counted that is tagged (two-stores), with dirt cancelled
 * but not uncounted, with dirty not looked at again after freezing in
 * folio_unlink() (invalidate-while-stored: the bytes are lost), with a folio
 * that cannot be dropped now not queued (two-flushes).
 */
#include "scene.h"

#include <errno.h>
#include <string.h>

/* One page, mapped, clean; then marked. */
static void begin(struct scene *s, bool marked)
{
	scene_begin(s, &(struct scene_options){ .size = PAGE });
	scene_map(s, 0);
	scene_expect(s, 0, PAGE, "n");
	if (marked)
		scene_mark(s);
}

/* Somebody who wants the page cached. */
static void want(struct scene *s)
{
	struct folio *f;
	int err = cache_get_folio(s->m, 0, 0, 0, &f);

	explore_assert(!err || err == -ENOENT);
	if (!err)
		scene_put(s, f);
}

static void clear_while_counted(void *arg UNUSED)
{
	struct scene s;

	begin(&s, true);
	SCENE_RUN(&s, scene_store, want);
	scene_end(&s);
}

static void two_clear(void *arg UNUSED)
{
	struct scene s;

	begin(&s, true);
	SCENE_RUN(&s, scene_store, want, want);
	scene_end(&s);
}

static void mark_while_counted(void *arg UNUSED)
{
	struct scene s;

	begin(&s, false);
	SCENE_RUN(&s, scene_store, scene_mark_cached);
	scene_end(&s);
}

static void mark_while_written(void *arg UNUSED)
{
	struct scene s;

	begin(&s, false);
	SCENE_RUN(&s, scene_store, scene_mark_cached, scene_flush);
	scene_end(&s);
}

/* Dirty by the map's first store, cancelled, marked and unmarked while the
 * second comes. */
static void cancel(struct scene *s)
{
	struct folio *f = scene_folio(s, 0);

	folio_lock(f);
	folio_cancel_dirty(f);
	folio_mark_dropbehind(f);
	folio_clear_dropbehind(f);
	folio_mark_dropbehind(f);
	folio_unlock(f);
	folios_drop_behind(s->m, &f, 1);
	scene_put(s, f);
}

/* As what is written is made clean; then it is dirty again, by us. */
static void clean(struct scene *s)
{
	struct folio *f = scene_folio(s, 0);

	folio_lock(f);
	folio_cancel_dirty(f);
	folio_mark_dirty(f, FOLIO_ALLDIRTY);
	folio_unlock(f);
	scene_put(s, f);
}

static void store_twice(struct scene *s)
{
	tr_map_dirty(s->map);
	scene_store(s);
}

static void cancelled(void *arg UNUSED)
{
	struct scene s;

	begin(&s, false);
	/* What is cancelled is lost, if nothing was stored after it. */
	s.lossy = true;
	scene_expect(&s, 0, PAGE, "no");
	SCENE_RUN(&s, store_twice, cancel);
	scene_end(&s);
}

static void drop(struct scene *s)
{
	struct folio *f = scene_folio(s, 0);

	folios_drop_behind(s->m, &f, 1);
	scene_put(s, f);
}

static void drop_while_stored(void *arg UNUSED)
{
	struct scene s;

	begin(&s, true);
	SCENE_RUN(&s, scene_store, drop);
	scene_end(&s);
}

static void invalidate(struct scene *s)
{
	int err = tr_invalidate(s->file, 0, PAGE);

	explore_assert(!err || err == -EBUSY);
}

/* Who removes it has not looked whether it is dirty. */
static void invalidate_while_stored(void *arg UNUSED)
{
	struct scene s;

	begin(&s, true);
	SCENE_RUN(&s, scene_store, invalidate);
	scene_end(&s);
}

static void store_second(struct scene *s)
{
	memset(s->mapped, 'n', PAGE_SIZE);
	tr_map_dirty(s->second);
	tr_unmap(s->second);
}

/* The one that set the bit comes late to count, another has set it again. */
static void two_stores(void *arg UNUSED)
{
	struct scene s;
	void *at;
	size_t len;

	begin(&s, false);
	explore_assert(!tr_map(s.file, 0, &s.second, &at, &len));
	SCENE_RUN(&s, scene_store, store_second, clean);
	scene_end(&s);
}

static void two_flushes(void *arg UNUSED)
{
	struct scene s;

	begin(&s, true);
	scene_store(&s);
	s.cached_max = 0;
	SCENE_RUN(&s, scene_flush, scene_flush);
	scene_end(&s);
}

/* The end of a writeback drops it. */
static void written_while_stored(void *arg UNUSED)
{
	struct scene s;

	begin(&s, true);
	tr_map_dirty(s.map);
	SCENE_RUN(&s, scene_store, scene_flush, want);
	scene_end(&s);
}

int main(int argc, char **argv)
{
	const struct explore_options o = SCENE_OPTIONS;
	const struct explore_options many = SCENE_OPTIONS_MANY;
	const struct explore_test tests[] = {
		{ "clear-while-counted", clear_while_counted, NULL, o },
		{ "two-clear", two_clear, NULL, o },
		{ "mark-while-counted", mark_while_counted, NULL, o },
		{ "mark-while-written", mark_while_written, NULL, many },
		{ "cancelled", cancelled, NULL, o },
		{ "drop-while-stored", drop_while_stored, NULL, o },
		{ "invalidate-while-stored", invalidate_while_stored, NULL, o },
		{ "two-stores", two_stores, NULL, o },
		{ "two-flushes", two_flushes, NULL, o },
		{ "written-while-stored", written_while_stored, NULL, many },
	};

	return explore_main(argc, argv, tests, ARRAY_SIZE(tests));
}

/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Goal: however the two steps of a mapped store (bit, then count) fall together
 * with marking, unmarking, cancelling, cleaning and dropping, the counters are
 * exact and no byte is lost: races 1 to 4 of the fault list.
 * Method: one mapped page; a task stores through the map and ends it, one or
 * two others do the other thing.
 *
 * Seen to fail: with the mark set or cleared without counting (1, 2, 3), with
 * a count at the first step whatever the tag says (1 to 3), with dirty not
 * looked at again after freezing in folio_unlink() (4: the stored bytes are
 * lost).
 */
#include "scene.h"

#include <errno.h>

/* One page, mapped, clean; then marked. */
static void begin(struct scene *s, bool marked)
{
	scene_begin(s, &(struct scene_options){ .size = PAGE });
	scene_map(s, 0);
	scene_expect(s, 0, PAGE, "n");
	if (marked)
		scene_mark(s, 0);
}

static void store(struct scene *s)
{
	scene_store(s, 'n');
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
	SCENE_RUN(&s, store, want);
	scene_end(&s);
}

static void two_clear(void *arg UNUSED)
{
	struct scene s;

	begin(&s, true);
	scene_run(&s,
		  (void (*const[])(struct scene *)){ store, want, want, NULL });
	scene_end(&s);
}

static void mark(struct scene *s)
{
	struct folio *f = cache_find(s->m, 0);

	if (!f)
		return;
	folio_lock(f);
	if (f->mapping == s->m)
		folio_mark_dropbehind(f);
	folio_unlock(f);
	/* As those who mark a folio that may be clean do. */
	folios_drop_behind(s->m, &f, 1);
	scene_put(s, f);
}

static void mark_while_counted(void *arg UNUSED)
{
	struct scene s;

	begin(&s, false);
	SCENE_RUN(&s, store, mark);
	scene_end(&s);
}

static void mark_while_written(void *arg UNUSED)
{
	struct scene s;

	begin(&s, false);
	SCENE_RUN(&s, store, mark, scene_flush);
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

static void store_twice(struct scene *s)
{
	tr_map_dirty(s->map);
	scene_store(s, 'n');
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
	SCENE_RUN(&s, store, drop);
	scene_end(&s);
}

/* The end of a writeback drops it. */
static void written_while_stored(void *arg UNUSED)
{
	struct scene s;

	begin(&s, true);
	tr_map_dirty(s.map);
	SCENE_RUN(&s, store, scene_flush, want);
	scene_end(&s);
}

int main(int argc, char **argv)
{
	const struct explore_options o = SCENE_OPTIONS;
	const struct explore_test tests[] = {
		{ "clear-while-counted", clear_while_counted, NULL, o },
		{ "two-clear", two_clear, NULL, o },
		{ "mark-while-counted", mark_while_counted, NULL, o },
		{ "mark-while-written", mark_while_written, NULL, o },
		{ "cancelled", cancelled, NULL, o },
		{ "drop-while-stored", drop_while_stored, NULL, o },
		{ "written-while-stored", written_while_stored, NULL, o },
	};

	return explore_main(argc, argv, tests, ARRAY_SIZE(tests));
}

/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Goal: a file moves to another writeback domain, and the domain may be retired,
 * while its folios are dirtied, marked, cleaned and written: race 6 of the fault
 * list. Nothing is counted in a domain that the file has left, and the sums are
 * exact.
 * Method: one mapped page of a scene; a task moves the file to a second domain
 * and one or two others store, mark or flush. At the end the file moves back,
 * and the second domain, which must count nothing, goes with its last reference.
 *
 * Seen to fail: with mapping.wb changed outside the index lock, with the
 * writeback of folios in flight not moved, with the mark's count not moved.
 */
#include "scene.h"

#include <string.h>

static struct wb *second;

static void begin(struct scene *s, bool marked)
{
	scene_begin(s, &(struct scene_options){ .size = PAGE });
	scene_map(s, 0);
	scene_expect(s, 0, PAGE, "n");
	if (marked)
		scene_mark(s);
	explore_assert(!wb_create(s->m->bdi, 1, &second));
}

static void check_empty(const struct wb *wb)
{
	explore_assert(!counter_sum(&wb->nr.reclaimable));
	explore_assert(!counter_sum(&wb->nr.edge_dirty));
	explore_assert(!counter_sum(&wb->nr.dontcache_dirty));
	explore_assert(!counter_sum(&wb->nr.writeback));
}

/* After the race the root counts nothing if the file is in the second. */
static void end(struct scene *s)
{
	if (s->m->wb == second)
		check_empty(s->root);
	else
		check_empty(second);
	mapping_move_wb(s->m, s->root);
	check_empty(second);
	wb_put(second);
	scene_end(s);
}

static void move(struct scene *s)
{
	mapping_move_wb(s->m, second);
}

static void move_back_and_forth(struct scene *s)
{
	mapping_move_wb(s->m, second);
	mapping_move_wb(s->m, s->root);
}

static void dirtied(void *arg UNUSED)
{
	struct scene s;

	begin(&s, false);
	SCENE_RUN(&s, scene_store, move);
	end(&s);
}

static void marked(void *arg UNUSED)
{
	struct scene s;

	begin(&s, false);
	SCENE_RUN(&s, scene_store, scene_mark_cached, move);
	end(&s);
}

static void written(void *arg UNUSED)
{
	struct scene s;

	begin(&s, true);
	tr_map_dirty(s.map);
	SCENE_RUN(&s, scene_store, scene_flush, move);
	end(&s);
}

static void kicked(struct scene *s)
{
	cache_kick(s->m);
}

/* The kick holds the domain it wakes: its file may leave it meanwhile. */
static void kicked_while_retired(void *arg UNUSED)
{
	struct scene s;

	begin(&s, true);
	tr_map_dirty(s.map);
	mapping_move_wb(s.m, second);
	SCENE_RUN(&s, scene_store, kicked, move_back_and_forth);
	end(&s);
}

int main(int argc, char **argv)
{
	const struct explore_options o = SCENE_OPTIONS;
	const struct explore_options many = SCENE_OPTIONS_MANY;
	const struct explore_test tests[] = {
		{ "dirtied", dirtied, NULL, o },
		{ "marked", marked, NULL, many },
		{ "written", written, NULL, many },
		{ "kicked-while-retired", kicked_while_retired, NULL, many },
	};

	return explore_main(argc, argv, tests, ARRAY_SIZE(tests));
}

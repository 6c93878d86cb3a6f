/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Goal: a unit shared by neighbouring uncached writes is completed exactly
 * once and dropped, and keeps every byte, however its writers, a flusher, a
 * sync, a fill, a truncation and a close fall together: races 5, 10 and 12 of
 * the fault list.
 * Method: one page, two writers of a part each, or one written part that is
 * filled while another task cuts, punches, reads, completes or overwrites it.
 *
 * Seen to fail: with coverage recorded outside the folio lock (5), with the
 * deferred mark not followed by a drop, or a folio in use not queued for it (5:
 * a clean page stays), with fill_done() copying over covered bytes, with two
 * fills of a folio at once (12), with the mapping of a listed edge taken from
 * its folio (10: it had left it).
 */
#include "scene.h"

#include "writeback/flush.h"

#define HALF (PAGE / 2)

static void first_half(struct scene *s)
{
	scene_write(s, 'a', 0, HALF, TR_DONTCACHE);
}

static void second_half(struct scene *s)
{
	scene_write(s, 'b', HALF, HALF, TR_DONTCACHE);
}

static void first_half_synced(struct scene *s)
{
	scene_write(s, 'a', 0, HALF, TR_DONTCACHE | TR_DSYNC);
}

static void second_half_synced(struct scene *s)
{
	scene_write(s, 'b', HALF, HALF, TR_DONTCACHE | TR_DSYNC);
}

static void sync(struct scene *s)
{
	explore_assert(!tr_fdatasync(s->file));
}

/* The page goes when it is written, whatever happened. */
static void begin_halves(struct scene *s, int64_t size)
{
	scene_begin(s, &(struct scene_options){ .size = size });
	scene_expect(s, 0, HALF, "a");
	scene_expect(s, HALF, HALF, "b");
	s->cached_max = 0;
}

static void two_complete(void *size)
{
	struct scene s;

	begin_halves(&s, *(int64_t *)size);
	SCENE_RUN(&s, first_half, second_half);
	scene_end(&s);
}

static void complete_and_flush(void *size)
{
	struct scene s;

	begin_halves(&s, *(int64_t *)size);
	SCENE_RUN(&s, first_half, second_half, scene_flush);
	scene_end(&s);
}

static void complete_and_sync(void *size)
{
	struct scene s;

	begin_halves(&s, *(int64_t *)size);
	scene_write(&s, 'a', 0, HALF, TR_DONTCACHE);
	SCENE_RUN(&s, sync, second_half);
	scene_end(&s);
}

static void deferred(void *size)
{
	struct scene s;

	begin_halves(&s, *(int64_t *)size);
	SCENE_RUN(&s, first_half_synced, second_half_synced);
	scene_end(&s);
}

static void deferred_and_not(void *size)
{
	struct scene s;

	begin_halves(&s, *(int64_t *)size);
	SCENE_RUN(&s, first_half_synced, second_half);
	scene_end(&s);
}

/* As a short write leaves it: its writer comes with the rest later. */
static void in_pieces(struct scene *s)
{
	scene_write(s, 'b', HALF, 100, TR_DONTCACHE);
	scene_write(s, 'b', HALF + 100, HALF - 100, TR_DONTCACHE);
}

static void short_write(void *size)
{
	struct scene s;

	begin_halves(&s, *(int64_t *)size);
	SCENE_RUN(&s, first_half_synced, in_pieces);
	scene_end(&s);
}

/* ---- cut and filled ---- */

#define CUT 3000

static void cut(struct scene *s)
{
	explore_assert(!tr_truncate(s->file, CUT));
}

static void cut_shared(void *arg UNUSED)
{
	struct scene s;

	scene_begin(&s, &(struct scene_options){ .size = 2 * PAGE });
	scene_expect(&s, 0, HALF, "a");
	scene_expect(&s, HALF, HALF, "b");
	s.size = CUT;
	s.other_size = PAGE;
	SCENE_RUN(&s, first_half, second_half, cut);
	scene_end(&s);
}

/* Old bytes, of which an uncached write has replaced the first. */
#define PART 1000

static void begin_fill(struct scene *s)
{
	scene_begin(s, &(struct scene_options){ .size = 2 * PAGE });
	scene_write(s, 'a', 0, PART, TR_DONTCACHE);
	scene_expect(s, 0, PART, "a");
}

static void fill_and_cut(void *arg UNUSED)
{
	struct scene s;

	begin_fill(&s);
	s.size = CUT;
	SCENE_RUN(&s, sync, cut);
	scene_end(&s);
}

static void cut_and_grow(struct scene *s)
{
	explore_assert(!tr_truncate(s->file, CUT));
	explore_assert(!tr_truncate(s->file, 2 * PAGE));
}

static void fill_and_regrow(void *arg UNUSED)
{
	struct scene s;

	begin_fill(&s);
	scene_expect(&s, CUT, 2 * PAGE - CUT, "0");
	SCENE_RUN(&s, sync, cut_and_grow);
	scene_end(&s);
}

static void punch(struct scene *s)
{
	explore_assert(!tr_punch(s->file, 0, PAGE));
}

static void fill_and_punch(void *arg UNUSED)
{
	struct scene s;

	begin_fill(&s);
	scene_expect(&s, 0, PAGE, "0");
	SCENE_RUN(&s, sync, punch);
	scene_end(&s);
}

static void punch_part(struct scene *s)
{
	explore_assert(!tr_punch(s->file, PART / 2, PART));
}

static void fill_and_punch_part(void *arg UNUSED)
{
	struct scene s;

	begin_fill(&s);
	scene_expect(&s, PART / 2, PART, "0");
	SCENE_RUN(&s, sync, punch_part);
	scene_end(&s);
}

static void read_cached(struct scene *s)
{
	scene_read(s, 0, PAGE, 0, "aoc");
}

static void write_rest(struct scene *s)
{
	scene_write(s, 'c', PART, PAGE - PART, TR_DONTCACHE);
}

static void two_fills(void *arg UNUSED)
{
	struct scene s;

	begin_fill(&s);
	SCENE_RUN(&s, sync, read_cached);
	scene_end(&s);
}

static void two_fills_and_rest(void *arg UNUSED)
{
	struct scene s;

	begin_fill(&s);
	scene_expect(&s, PART, PAGE - PART, "c");
	SCENE_RUN(&s, sync, read_cached, write_rest);
	scene_end(&s);
}

static void write_direct(struct scene *s)
{
	scene_write(s, 'd', 0, PAGE, TR_DIRECT);
}

static void fill_and_direct(void *arg UNUSED)
{
	struct scene s;

	begin_fill(&s);
	scene_expect(&s, 0, PAGE, "d");
	SCENE_RUN(&s, sync, write_direct);
	scene_end(&s);
}

/* ---- retired ---- */

/* As the last close does it. */
static void retire(struct scene *s)
{
	explore_assert(!flush_edges_of(s->m));
}

static void cut_all(struct scene *s)
{
	explore_assert(!tr_truncate(s->file, 0));
}

static void retire_and_cut(void *arg UNUSED)
{
	struct scene s;

	begin_fill(&s);
	s.size = 0;
	s.cached_max = 0;
	SCENE_RUN(&s, retire, cut_all);
	scene_end(&s);
}

static void retire_and_complete(void *arg UNUSED)
{
	struct scene s;

	begin_fill(&s);
	scene_expect(&s, PART, PAGE - PART, "c");
	/* If it was retired first, the rest is an edge anew. */
	s.cached_max = 1;
	SCENE_RUN(&s, retire, write_rest);
	scene_end(&s);
}

/* ---- closed ---- */

static void close_file(struct scene *s)
{
	struct tr_file *f = s->file;

	s->file = NULL;
	explore_assert(!tr_file_close(f));
}

/* Wakes the flusher for edges, of which there are too many. */
static void age(struct scene *s)
{
	wb_start(s->root, WB_START_EDGES);
}

static void close_and_age(void *arg UNUSED)
{
	struct scene s;

	scene_begin(&s, &(struct scene_options){ .size = 2 * PAGE,
						 .flushers = true });
	scene_write(&s, 'a', 0, PART, TR_DONTCACHE);
	scene_expect(&s, 0, PART, "a");
	explore_assert(!tr_cache_set(s.cache, "edge_max_pages", 1));
	s.cached_max = 0;
	SCENE_RUN(&s, age, close_file);
	scene_end(&s);
}

/* Of two openings the last to close ends the edges of both. */
static void write_and_close(struct scene *s)
{
	second_half(s);
	close_file(s);
}

static void close_other(struct scene *s)
{
	explore_assert(!tr_file_close(s->other));
}

static void close_two(void *size)
{
	struct scene s;

	begin_halves(&s, *(int64_t *)size);
	first_half(&s);
	s.other = s.file;
	s.file = NULL;
	scene_open(&s);
	SCENE_RUN(&s, write_and_close, close_other);
	scene_end(&s);
}

int main(int argc, char **argv)
{
	static int64_t none = 0, old = 2 * PAGE;
	const struct explore_options o = SCENE_OPTIONS;
	const struct explore_options many = SCENE_OPTIONS_MANY;
	const struct explore_test tests[] = {
		{ "two-complete", two_complete, &none, o },
		{ "two-complete-old", two_complete, &old, o },
		{ "complete-and-flush", complete_and_flush, &none, many },
		{ "complete-and-sync", complete_and_sync, &none, o },
		{ "complete-and-sync-old", complete_and_sync, &old, o },
		{ "deferred", deferred, &none, many },
		{ "deferred-old", deferred, &old, many },
		{ "deferred-and-not", deferred_and_not, &old, o },
		{ "short-write", short_write, &none, o },
		{ "cut-shared", cut_shared, NULL, many },
		{ "fill-and-cut", fill_and_cut, NULL, o },
		{ "fill-and-regrow", fill_and_regrow, NULL, o },
		{ "fill-and-punch", fill_and_punch, NULL, o },
		{ "fill-and-punch-part", fill_and_punch_part, NULL, o },
		{ "two-fills", two_fills, NULL, o },
		{ "two-fills-and-rest", two_fills_and_rest, NULL, many },
		{ "fill-and-direct", fill_and_direct, NULL, many },
		{ "retire-and-cut", retire_and_cut, NULL, o },
		{ "close-and-age", close_and_age, NULL, many },
		{ "close-two", close_two, &none, o },
		{ "close-two-old", close_two, &old, o },
		{ "retire-and-complete", retire_and_complete, NULL, o },
	};

	return explore_main(argc, argv, tests, ARRAY_SIZE(tests));
}

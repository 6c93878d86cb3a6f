/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Goal: a direct write and whatever the cache does with its range at the same
 * time leave each page as one of their orders would, and afterwards cache and
 * device agree: race 8 of the fault list.
 * Method: a direct write of two pages against a neighbour's uncached write that
 * shares an edge with it, a cached read, a writeback, a cached write, a mapped
 * store, a truncation and another direct write. The device refuses writes that
 * overlap one in flight.
 *
 * Seen to fail: with the range not closed (old bytes are read in, and stay),
 * with no fall-back (-EBUSY).
 */
#include "scene.h"

#define LEN (2 * PAGE)

static void write_direct(struct scene *s)
{
	scene_write(s, 'd', 0, LEN, TR_DIRECT);
}

static void write_direct_too(struct scene *s)
{
	scene_write(s, 'e', PAGE, LEN, TR_DIRECT);
}

static void begin(struct scene *s, const char *letters)
{
	scene_begin(s, &(struct scene_options){ .size = 4 * PAGE });
	scene_expect(s, 0, LEN, letters);
}

static void write_neighbour(struct scene *s)
{
	scene_write(s, 'b', LEN - 1000, 2000, TR_DONTCACHE);
}

static void neighbour(void *arg UNUSED)
{
	struct scene s;

	begin(&s, "d");
	scene_expect(&s, LEN - 1000, 1000, "db");
	scene_expect(&s, LEN, 1000, "b");
	SCENE_RUN(&s, write_direct, write_neighbour);
	scene_end(&s);
}

static void sync(struct scene *s)
{
	explore_assert(!tr_fdatasync(s->file));
}

/* It has written its part of the edge before. */
static void edge(void *arg UNUSED)
{
	struct scene s;

	begin(&s, "d");
	write_neighbour(&s);
	scene_expect(&s, LEN, 1000, "b");
	SCENE_RUN(&s, write_direct, sync);
	scene_end(&s);
}

static void read_cached(struct scene *s)
{
	scene_read(s, 0, LEN, 0, "od");
}

static void read_uncached(struct scene *s)
{
	scene_read(s, 0, LEN, TR_DONTCACHE, "od");
}

static void reading(void *arg UNUSED)
{
	struct scene s;

	begin(&s, "d");
	SCENE_RUN(&s, write_direct, read_cached);
	scene_end(&s);
}

static void reading_uncached(void *arg UNUSED)
{
	struct scene s;

	begin(&s, "d");
	s.read_ahead = true;
	SCENE_RUN(&s, write_direct, read_uncached);
	scene_end(&s);
}

static void writeback(void *flags)
{
	struct scene s;

	begin(&s, "d");
	scene_write(&s, 'c', 0, PAGE, *(unsigned *)flags);
	SCENE_RUN(&s, write_direct, scene_flush);
	scene_end(&s);
}

static void write_cached(struct scene *s)
{
	scene_write(s, 'c', 0, PAGE, 0);
}

static void write_cached_part(struct scene *s)
{
	scene_write(s, 'c', 500, 1000, 0);
}

static void cached(void *arg UNUSED)
{
	struct scene s;

	begin(&s, "d");
	scene_expect(&s, 0, PAGE, "cd");
	SCENE_RUN(&s, write_direct, write_cached);
	scene_end(&s);
}

static void cached_part(void *arg UNUSED)
{
	struct scene s;

	begin(&s, "d");
	scene_expect(&s, 500, 1000, "cd");
	SCENE_RUN(&s, write_direct, write_cached_part, scene_flush);
	scene_end(&s);
}

static void mapped(void *arg UNUSED)
{
	struct scene s;

	begin(&s, "d");
	scene_expect(&s, 0, PAGE, "dn");
	scene_map(&s, 0);
	SCENE_RUN(&s, write_direct, scene_store);
	scene_end(&s);
}

static void two(void *arg UNUSED)
{
	struct scene s;

	begin(&s, "d");
	scene_expect(&s, PAGE, PAGE, "de");
	scene_expect(&s, 2 * PAGE, PAGE, "e");
	SCENE_RUN(&s, write_direct, write_direct_too);
	scene_end(&s);
}

static void cut(struct scene *s)
{
	explore_assert(!tr_truncate(s->file, PAGE));
}

static void truncated(void *arg UNUSED)
{
	struct scene s;

	begin(&s, "d");
	scene_write(&s, 'c', 0, LEN, 0);
	s.size = PAGE;
	s.other_size = LEN;
	SCENE_RUN(&s, write_direct, cut, scene_flush);
	scene_end(&s);
}

static void read_direct(struct scene *s)
{
	scene_read(s, 0, PAGE, TR_DIRECT, "oc");
}

static void reading_direct(void *arg UNUSED)
{
	struct scene s;

	begin(&s, "o");
	scene_expect(&s, 0, PAGE, "c");
	SCENE_RUN(&s, read_direct, write_cached, scene_flush);
	scene_end(&s);
}

int main(int argc, char **argv)
{
	static unsigned ordinary = 0, uncached = TR_DONTCACHE;
	const struct explore_options o = SCENE_OPTIONS;
	const struct explore_options many = SCENE_OPTIONS_MANY;
	const struct explore_test tests[] = {
		{ "neighbour", neighbour, NULL, o },
		{ "edge", edge, NULL, many },
		{ "reading", reading, NULL, o },
		{ "reading-uncached", reading_uncached, NULL, o },
		{ "writeback", writeback, &ordinary, o },
		{ "writeback-marked", writeback, &uncached, o },
		{ "cached", cached, NULL, o },
		{ "cached-part", cached_part, NULL, many },
		{ "mapped", mapped, NULL, o },
		{ "two", two, NULL, o },
		{ "truncated", truncated, NULL, many },
		{ "reading-direct", reading_direct, NULL, many },
	};

	return explore_main(argc, argv, tests, ARRAY_SIZE(tests));
}

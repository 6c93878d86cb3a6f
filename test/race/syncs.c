/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Goal: when a sync has returned, what its caller wrote before is on the
 * medium, although several callers share device syncs and a flusher may have
 * the pages in flight (race 11 of the fault list); and no kick is lost: what is
 * marked and dirty is written without a sync (race 6).
 * Method: writers that sync and look at the medium at once; writers whose
 * marked pages a flusher must have written when nothing runs any more. And
 * lookups of a page whose memory becomes another page's.
 *
 * Seen to fail: with the changes that a sync covers counted after the device
 * sync, with the line taken after it (11), with the kick's bit cleared after
 * the sum was read (6), with the reference of a folio just made stored.
 */
#include "scene.h"

#include "base/clock.h"
#include "device.h"

static void check_durable(struct scene *s, char letter, int64_t off)
{
	const char *durable = device_durable(s->store);

	for (int64_t i = off; i < off + PAGE; i++)
		explore_assert(durable[i] == letter);
}

static void write_a(struct scene *s)
{
	scene_write(s, 'a', 0, PAGE, 0);
	explore_assert(!tr_fdatasync(s->file));
	check_durable(s, 'a', 0);
}

static void write_b(struct scene *s)
{
	scene_write(s, 'b', PAGE, PAGE, 0);
	explore_assert(!tr_fsync(s->file));
	check_durable(s, 'b', PAGE);
}

static void write_c(struct scene *s)
{
	scene_write(s, 'c', 2 * PAGE, PAGE, TR_DONTCACHE | TR_DSYNC);
	check_durable(s, 'c', 2 * PAGE);
}

static void write_d(struct scene *s)
{
	scene_write(s, 'd', 2 * PAGE, PAGE, TR_DIRECT | TR_DSYNC);
	check_durable(s, 'd', 2 * PAGE);
}

static void begin(struct scene *s)
{
	scene_begin(s, &(struct scene_options){ .size = 4 * PAGE });
	scene_expect(s, 0, PAGE, "a");
	scene_expect(s, PAGE, PAGE, "b");
	scene_expect(s, 2 * PAGE, PAGE, "cdo");
}

static void two_callers(void *arg UNUSED)
{
	struct scene s;

	begin(&s);
	SCENE_RUN(&s, write_a, write_b);
	scene_end(&s);
}

static void three_callers(void *arg UNUSED)
{
	struct scene s;

	begin(&s);
	SCENE_RUN(&s, write_a, write_b, write_c);
	scene_end(&s);
}

static void direct_caller(void *arg UNUSED)
{
	struct scene s;

	begin(&s);
	scene_expect(&s, PAGE, PAGE, "o");
	SCENE_RUN(&s, write_a, write_d);
	scene_end(&s);
}

/* What it waits for is in flight of another. */
static void flusher_first(void *arg UNUSED)
{
	struct scene s;

	begin(&s);
	scene_expect(&s, PAGE, PAGE, "o");
	scene_write(&s, 'a', 0, PAGE, 0);
	SCENE_RUN(&s, write_a, scene_flush);
	scene_end(&s);
}

/* ---- the kick ---- */

/* Longer than passes and drops take, shorter than the flusher's interval. */
#define REST_NS (100 * NS_PER_MS)

static void first_part(struct scene *s)
{
	scene_write(s, 'a', 0, 1000, TR_DONTCACHE);
}

static void last_part(struct scene *s)
{
	scene_write(s, 'a', 1000, PAGE - 1000, TR_DONTCACHE);
}

static void whole_page(struct scene *s)
{
	scene_write(s, 'b', PAGE, PAGE, TR_DONTCACHE);
}

static void kicked(void *arg UNUSED)
{
	struct scene s;

	scene_begin(&s, &(struct scene_options){ .size = 4 * PAGE,
						 .flushers = true });
	scene_expect(&s, 0, PAGE, "a");
	scene_expect(&s, PAGE, PAGE, "b");
	s.cached_max = 0;
	SCENE_RUN(&s, first_part, last_part, whole_page);
	clock_sleep(REST_NS);
	explore_assert(!counter_sum(&s.cache->dontcache_dirty));
	explore_assert(!counter_sum(&s.cache->reclaimable));
	scene_end(&s);
}

/* ---- memory that becomes another page's ---- */

static void look(struct scene *s)
{
	for (int i = 0; i < 2; i++) {
		struct folio *f = cache_find(s->m, 0);

		if (!f)
			continue;
		folio_lock(f);
		explore_assert(!f->mapping || f->idx == 0);
		folio_unlock(f);
		scene_put(s, f);
	}
}

static void reuse(struct scene *s)
{
	(void)tr_invalidate(s->file, 0, PAGE);
	scene_write(s, 'b', PAGE, PAGE, 0);
	(void)tr_invalidate(s->file, 0, PAGE);
}

static void reused(void *arg UNUSED)
{
	struct scene s;

	scene_begin(&s, &(struct scene_options){ .size = PAGE });
	scene_read(&s, 0, 100, 0, "o");
	scene_expect(&s, PAGE, PAGE, "b");
	SCENE_RUN(&s, look, reuse);
	scene_end(&s);
}

int main(int argc, char **argv)
{
	const struct explore_options o = SCENE_OPTIONS;
	const struct explore_options many = SCENE_OPTIONS_MANY;
	/* A lookup, the reuse, the lookup, the reuse. */
	struct explore_options three = o;

	three.preemptions = 3;
	const struct explore_test tests[] = {
		{ "two-callers", two_callers, NULL, o },
		{ "three-callers", three_callers, NULL, many },
		{ "direct-caller", direct_caller, NULL, o },
		{ "flusher-first", flusher_first, NULL, o },
		{ "kicked", kicked, NULL, many },
		{ "reused", reused, NULL, three },
	};

	return explore_main(argc, argv, tests, ARRAY_SIZE(tests));
}

/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Goal: a truncation leaves exactly the bytes below the new end of file, the
 * device's file at exactly that size, and nothing that comes back when it
 * grows, whatever a flusher has gathered, submitted or given up meanwhile:
 * races 9 and 13 of the fault list. The same for punched holes.
 * Method: some dirty pages or one large folio; a flush or a sync of them
 * against a truncation; the device refuses writes that extend the file.
 *
 * Seen to fail: with the size not looked at when a write is sent (13: it
 * extends the file), with truncation not waiting for those who prepare (13: the
 * file is larger for good), or for device writes in flight, or cutting the
 * store first; with what was given up not written again by the sync that gave
 * it up; with a large folio removed as a whole (data below the new end is
 * lost); with the boundary not zeroed; with a folio made that is closed.
 */
#include "scene.h"

#include "device.h"

#define PAGES 4
#define LEN (PAGES * PAGE)
#define CUT 6000

/* Dirty pages of a new file, each of its own or one large folio. */
static void begin(struct scene *s, bool large, unsigned flags)
{
	scene_begin(s, &(struct scene_options){ .size = 0 });
	if (large)
		scene_write(s, 'c', 0, LEN, flags);
	for (int64_t i = 0; i < PAGES && !large; i++)
		scene_write(s, 'c', i * PAGE, PAGE, flags);
	scene_expect(s, 0, LEN, "c");
}

/* The first page, which no truncation here touches, is on the medium then. */
static void sync(struct scene *s)
{
	const char *durable = device_durable(s->store);

	explore_assert(!tr_fsync(s->file));
	for (int64_t i = 0; i < PAGE; i++)
		explore_assert(durable[i] == 'c');
}

static void cut(struct scene *s)
{
	explore_assert(!tr_truncate(s->file, CUT));
}

static void cut_at_page(struct scene *s)
{
	explore_assert(!tr_truncate(s->file, PAGE));
}

static void cut_all(struct scene *s)
{
	explore_assert(!tr_truncate(s->file, 0));
}

static void cut_and_grow(struct scene *s)
{
	cut(s);
	explore_assert(!tr_truncate(s->file, LEN));
}

struct variant {
	bool large;
	unsigned flags; /* of the writes */
	void (*out)(struct scene *s);
	void (*cut)(struct scene *s);
	int64_t size; /* after it */
};

static void flushed(void *arg)
{
	const struct variant *v = arg;
	struct scene s;

	begin(&s, v->large, v->flags);
	s.size = v->size;
	SCENE_RUN(&s, v->out, v->cut);
	scene_end(&s);
}

static void regrown(void *arg)
{
	const struct variant *v = arg;
	struct scene s;

	begin(&s, v->large, v->flags);
	scene_expect(&s, CUT, LEN - CUT, "0");
	SCENE_RUN(&s, v->out, cut_and_grow);
	scene_end(&s);
}

/* The size, but nothing that the pass writes, is beyond the new end. */
static void prepared(void *arg UNUSED)
{
	struct scene s;

	scene_begin(&s, &(struct scene_options){ .size = 0 });
	scene_write(&s, 'c', 0, PAGE, 0);
	scene_write(&s, 'e', 2 * PAGE, 100, TR_DONTCACHE);
	scene_expect(&s, 0, PAGE, "c");
	SCENE_RUN(&s, scene_flush, cut_at_page);
	scene_end(&s);
}

static void three(void *arg UNUSED)
{
	struct scene s;

	begin(&s, false, 0);
	s.size = CUT;
	SCENE_RUN(&s, scene_flush, sync, cut);
	scene_end(&s);
}

static void append(struct scene *s)
{
	scene_write(s, 'a', LEN, 100, 0);
}

/* The append comes before, or after a hole. */
static void appended(void *arg UNUSED)
{
	struct scene s;

	begin(&s, false, 0);
	scene_expect(&s, CUT, LEN - CUT, "0");
	scene_expect(&s, LEN, 100, "a");
	s.other_size = CUT;
	SCENE_RUN(&s, append, cut, scene_flush);
	scene_end(&s);
}

/* A page that is mapped beyond the new end. */
static void stored(void *arg UNUSED)
{
	struct scene s;

	begin(&s, false, 0);
	scene_map(&s, 3 * PAGE);
	s.size = PAGE;
	SCENE_RUN(&s, scene_store, cut_at_page, scene_flush);
	scene_end(&s);
}

/* A page that is mapped across the new end. */
static void stored_across(void *arg UNUSED)
{
	struct scene s;

	begin(&s, false, 0);
	scene_map(&s, PAGE);
	scene_expect(&s, PAGE, PAGE, "cn");
	s.size = CUT;
	SCENE_RUN(&s, scene_store, cut, scene_flush);
	scene_end(&s);
}

static void punch(struct scene *s)
{
	explore_assert(!tr_punch(s->file, PAGE, 2 * PAGE));
}

static void punched(void *arg)
{
	const struct variant *v = arg;
	struct scene s;

	begin(&s, v->large, v->flags);
	scene_expect(&s, PAGE, 2 * PAGE, "0");
	SCENE_RUN(&s, v->out, punch);
	scene_end(&s);
}

static void read_all(struct scene *s)
{
	static char got[LEN];
	ssize_t n = tr_read(s->file, got, LEN, 0, 0);

	explore_assert(n == LEN || n == CUT);
	for (ssize_t i = 0; i < n; i++)
		explore_assert(got[i] == 'c' || (i >= CUT && !got[i]));
}

/* A reader sees old bytes or zeros, and keeps nothing of what it saw. */
static void read_while_cut(void *arg UNUSED)
{
	struct scene s;

	begin(&s, true, TR_DONTCACHE | TR_DSYNC);
	s.size = CUT;
	SCENE_RUN(&s, read_all, cut);
	scene_end(&s);
}

int main(int argc, char **argv)
{
	static struct variant page = { false, 0, scene_flush, cut_at_page,
				       PAGE },
			      page_sync = { false, 0, sync, cut_at_page, PAGE },
			      part = { false, 0, scene_flush, cut, CUT },
			      part_sync = { false, 0, sync, cut, CUT },
			      large = { true, 0, scene_flush, cut, CUT },
			      large_sync = { true, 0, sync, cut, CUT },
			      large_page = { true, 0, scene_flush, cut_at_page,
					     PAGE },
			      uncached = { false, TR_DONTCACHE, scene_flush,
					   cut, CUT },
			      all = { false, TR_DONTCACHE, scene_flush, cut_all,
				      0 };
	const struct explore_options o = SCENE_OPTIONS;
	const struct explore_options many = SCENE_OPTIONS_MANY;
	const struct explore_test tests[] = {
		{ "page", flushed, &page, o },
		{ "page-sync", flushed, &page_sync, many },
		{ "part", flushed, &part, o },
		{ "part-sync", flushed, &part_sync, many },
		{ "large", flushed, &large, o },
		{ "large-sync", flushed, &large_sync, many },
		{ "large-page", flushed, &large_page, o },
		{ "uncached", flushed, &uncached, many },
		{ "all", flushed, &all, many },
		{ "regrown", regrown, &part, o },
		{ "regrown-large", regrown, &large_sync, many },
		{ "prepared", prepared, NULL, o },
		{ "three", three, NULL, many },
		{ "appended", appended, NULL, many },
		{ "stored", stored, NULL, many },
		{ "stored-across", stored_across, NULL, many },
		{ "punched", punched, &part, o },
		{ "punched-large", punched, &large_sync, many },
		{ "read-while-cut", read_while_cut, NULL, o },
	};

	return explore_main(argc, argv, tests, ARRAY_SIZE(tests));
}

/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * A scene: one file of a small cache on a device of memory, a few tasks at
 * work on it, and what must hold when they have ended.
 *
 * Bytes of the file are letters, so that a test says what may be left of a
 * range by a string. The device is told apart from the ram store in that it
 * has no task: a request reaches it when its submitter waits for it, which
 * keeps the schedules few. It fails the schedule on a write that extends the
 * file and on one that overlaps another in flight.
 *
 * scene_begin() and scene_end() are calm: only what scene_run() starts is
 * explored. All fail the schedule, they return nothing.
 */
#ifndef TR_TEST_RACE_SCENE_H
#define TR_TEST_RACE_SCENE_H

#include "base/explore.h"
#include "cache/file.h"
#include "cache/io.h"
#include "cache/lookup.h"
#include "folio/state.h"

#include <tailrace/cache.h>

#define SCENE_LEN (64u << 10) /* of the device, the longest file */
#define SCENE_TASKS_MAX 4
#define SCENE_EXPECT_MAX 32
#define PAGE ((int64_t)PAGE_SIZE)

/* A schedule takes some 0.1 ms, under ASan ten times that. */
#ifdef __has_feature
#if __has_feature(address_sanitizer)
#define SCENE_SCHEDULES 1000
#endif
#endif
#if defined(__SANITIZE_ADDRESS__)
#define SCENE_SCHEDULES 1000
#endif
#ifndef SCENE_SCHEDULES
#define SCENE_SCHEDULES 20000
#endif

/* Locks of lists, slabs and the arena are not what these tests are about. */
#define SCENE_OPTIONS                                                          \
	{                                                                      \
		.inner_rank = LOCK_WB, .schedules_max = SCENE_SCHEDULES,       \
		.random_nr = SCENE_SCHEDULES / 10                              \
	}

/* For races with more schedules than there is time for: fewer of those in
 * order, which differ at their ends only, and more at random. */
#define SCENE_OPTIONS_MANY                                                     \
	{                                                                      \
		.inner_rank = LOCK_WB, .schedules_max = SCENE_SCHEDULES / 4,   \
		.random_nr = SCENE_SCHEDULES / 5                               \
	}

struct scene_options {
	int64_t size; /* of the file at the beginning, of letter 'o' */
	uint32_t block; /* 0: 4096 */
	bool flushers;
};

struct scene {
	struct tr_store *store;
	struct tr_cache *cache;
	struct tr_file *file;
	struct mapping *m;
	struct wb *root;
	bool flushers;
	bool read_ahead; /* marked pages may stay that nobody has used up */
	bool lossy; /* the test took dirt away: cache and device may differ */
	struct tr_file *other; /* another opening, the test's own */
	struct tr_map *map; /* scene_map() */
	char *mapped;
	struct tr_map *second; /* of the same page, the test's own */
	/* What bytes may be at the end; the last that has a byte counts. */
	struct expect {
		int64_t off, len;
		const char *letters;
	} expect[SCENE_EXPECT_MAX];
	unsigned nr_expect;
	/* At the end: the file's size, or the other one if that is not 0, and
	 * how many pages may still be cached. */
	int64_t size, other_size;
	int64_t cached_max;
};

/* What a scene runs, as scene_run() takes it. */
#define SCENE_RUN(s, ...)                                                      \
	scene_run(s, (void (*const[])(struct scene *)){ __VA_ARGS__, NULL })

void scene_begin(struct scene *s, const struct scene_options *options);
/* Runs the functions as tasks, each with s, until all have ended; up to the
 * first that is NULL. */
void scene_run(struct scene *s, void (*const fn[])(struct scene *s));
/* Checks everything and takes the scene down. */
void scene_end(struct scene *s);

/* Opens the file again if the test has closed it (and set s->file to NULL). */
void scene_open(struct scene *s);

/* Bytes [off, off + len) must be one of the letters at the end; '0' is a zero
 * byte. The file ends there or later. */
void scene_expect(struct scene *s, int64_t off, int64_t len,
		  const char *letters);

/* ---- steps; each must succeed as a whole ---- */

void scene_write(struct scene *s, char letter, int64_t off, size_t len,
		 unsigned flags);
/* Reads and checks that every byte is one of the letters. */
void scene_read(struct scene *s, int64_t off, size_t len, unsigned flags,
		const char *letters);
/* What a flusher's pass does with the file, and its drops. */
void scene_flush(struct scene *s);
/* The folio of a page, which must be cached, referenced. */
struct folio *scene_folio(struct scene *s, uint64_t idx);
void scene_put(struct scene *s, struct folio *f);
/* Maps the page at off: s->map, s->mapped. */
void scene_map(struct scene *s, int64_t off);
/* A mapped store of 'n' over all of it, and the end of the map. */
void scene_store(struct scene *s);
/* Marks the folio of the first page, which must be cached. */
void scene_mark(struct scene *s);
/* The same if it is cached, and drops it if it may be clean. */
void scene_mark_cached(struct scene *s);

#endif

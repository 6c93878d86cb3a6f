/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Scenes: the cache part. The device is in device.c.
 */
#include "scene.h"

#include "base/clock.h"
#include "base/task.h"
#include "device.h"
#include "folio/check.h"
#include "writeback/writeout.h"

#include <fcntl.h>
#include <limits.h>
#include <stdlib.h>
#include <string.h>

/* Rounds in which everything queued must have been dropped. */
#define DROP_ROUNDS 100

/* Longer than a flusher sleeps before it tries again to drop. */
#define SETTLE_NS (20 * NS_PER_MS)

struct part {
	struct scene *s;
	void (*fn)(struct scene *s);
};

void scene_open(struct scene *s)
{
	if (!s->file)
		explore_assert(!tr_file_open(s->cache, s->store, "f", O_RDWR, 0,
					     &s->file));
	s->m = cache_file_mapping(s->file);
}

void scene_begin(struct scene *s, const struct scene_options *options)
{
	struct tr_cache_options o = {
		.struct_size = sizeof(o),
		.size = 4 << 20,
		.no_flushers = !options->flushers,
	};

	explore_calm(true);
	memset(s, 0, sizeof(*s));
	s->flushers = options->flushers;
	s->size = options->size;
	s->cached_max = SCENE_LEN / PAGE;
	s->store = device_create(options->block ?: PAGE_SIZE, options->size);
	explore_assert(!tr_cache_create(&o, &s->cache));
	scene_open(s);
	s->root = s->m->bdi->root;
	scene_expect(s, 0, options->size, "o");
}

static void part_main(void *arg)
{
	struct part *p = arg;

	p->fn(p->s);
}

void scene_run(struct scene *s, void (*const fn[])(struct scene *s))
{
	struct part parts[SCENE_TASKS_MAX];
	struct task *tasks[SCENE_TASKS_MAX];
	unsigned nr = 0;

	for (; nr < SCENE_TASKS_MAX && fn[nr]; nr++) {
		static const char *const names[] = { "A", "B", "C", "D" };

		parts[nr] = (struct part){ s, fn[nr] };
		explore_assert(!task_create(&tasks[nr], names[nr], part_main,
					    &parts[nr]));
	}
	explore_calm(false);
	while (nr--)
		task_join(tasks[nr]);
	explore_calm(true);
}

/* What was queued to be dropped is, by now. */
static void settle(struct scene *s)
{
	unsigned rounds = 0;

	if (s->flushers)
		clock_sleep(SETTLE_NS);
	while (wb_run_drops(s->m->bdi->root))
		explore_assert(rounds++ < DROP_ROUNDS);
}

static void check_counters(struct scene *s, bool synced)
{
	struct tr_statistics st;

	explore_assert(!tr_cache_check(s->cache));
	tr_cache_statistics(s->cache, &st);
	explore_assert(st.reclaimable >= 0 && st.edge_dirty >= 0);
	explore_assert(st.dontcache_dirty >= 0 && st.writeback == 0);
	if (synced)
		explore_assert(!st.reclaimable && !st.edge_dirty &&
			       !st.dontcache_dirty);
}

/* A marked folio that is clean has nobody left who would drop it. */
static void check_kept(struct scene *s)
{
	uint64_t idx = 0;
	struct folio *f;

	explore_assert((int64_t)s->m->index.nr_pages <= s->cached_max);
	mutex_lock(&s->m->index_lock);
	while ((f = index_next(&s->m->index, &idx, INDEX_MAX))) {
		unsigned marked = folio_test(f, FOLIO_DROPBEHIND);

		mutex_unlock(&s->m->index_lock);
		explore_assert(!marked || s->read_ahead);
		mutex_lock(&s->m->index_lock);
		idx = f->idx + folio_nr_pages(f);
	}
	mutex_unlock(&s->m->index_lock);
}

static const char *allowed(const struct scene *s, int64_t at)
{
	unsigned i = s->nr_expect;

	while (i--)
		if (at >= s->expect[i].off &&
		    at < s->expect[i].off + s->expect[i].len)
			return s->expect[i].letters;
	return "";
}

static void check_bytes(struct scene *s)
{
	static char got[SCENE_LEN];
	const char *data = device_data(s->store);
	int64_t size = device_size(s->store), i;

	explore_assert(mapping_size(s->m) == size);
	explore_assert(size == s->size ||
		       (s->other_size && size == s->other_size));
	for (i = 0; i < size; i++)
		explore_assert(strchr(allowed(s, i), data[i] ?: '0'));
	explore_assert(tr_read(s->file, got, sizeof(got), 0, 0) == size);
	explore_assert(s->lossy || !memcmp(got, data, size));
	explore_assert(device_all_durable(s->store));
}

void scene_end(struct scene *s)
{
	explore_calm(true);
	scene_open(s);
	settle(s);
	check_counters(s, false);
	explore_assert(!tr_fsync(s->file));
	settle(s);
	check_counters(s, true);
	check_kept(s);
	check_bytes(s);
	explore_assert(!tr_file_close(s->file));
	explore_assert(!tr_cache_destroy(s->cache));
	tr_store_destroy(s->store);
}

void scene_expect(struct scene *s, int64_t off, int64_t len,
		  const char *letters)
{
	explore_assert(s->nr_expect < SCENE_EXPECT_MAX);
	s->expect[s->nr_expect++] = (struct expect){ off, len, letters };
	s->size = max_of(s->size, off + len);
}

/* ---- steps ---- */

/* Aligned memory full of one letter, made once. */
static const char *letters_of(char letter)
{
	static char *all[26];
	unsigned i = letter - 'a';

	if (!all[i]) {
		all[i] = aligned_alloc(PAGE_SIZE, SCENE_LEN);
		memset(all[i], letter, SCENE_LEN);
	}
	return all[i];
}

void scene_write(struct scene *s, char letter, int64_t off, size_t len,
		 unsigned flags)
{
	explore_assert(tr_write(s->file, letters_of(letter), len, off, flags) ==
		       (ssize_t)len);
}

void scene_read(struct scene *s, int64_t off, size_t len, unsigned flags,
		const char *letters)
{
	char *got = aligned_alloc(PAGE_SIZE, align_up(len, PAGE_SIZE));
	ssize_t n = tr_read(s->file, got, len, off, flags);

	explore_assert(n == (ssize_t)len);
	for (size_t i = 0; i < len; i++)
		explore_assert(strchr(letters, got[i] ?: '0'));
	free(got);
}

void scene_flush(struct scene *s)
{
	struct writeout wo = { .tag = TAG_DIRTY,
			       .last = INDEX_MAX,
			       .nr_pages = LONG_MAX,
			       .tail = true };
	struct writer *w;

	explore_assert(!writer_create(s->m->bdi, 4, &w));
	writeout(w, s->m, &wo);
	writer_destroy(w);
	(void)wb_run_drops(s->m->bdi->root);
}

struct folio *scene_folio(struct scene *s, uint64_t idx)
{
	struct folio *f = cache_find(s->m, idx);

	explore_assert(f);
	return f;
}

void scene_put(struct scene *s, struct folio *f)
{
	folio_put(f, s->cache);
}

void scene_map(struct scene *s, int64_t off)
{
	void *at;
	size_t len;

	explore_assert(!tr_map(s->file, off, &s->map, &at, &len));
	explore_assert(len >= PAGE_SIZE);
	s->mapped = at;
}

void scene_store(struct scene *s)
{
	memset(s->mapped, 'n', PAGE_SIZE);
	tr_map_dirty(s->map);
	tr_unmap(s->map);
}

static void mark(struct scene *s, struct folio *f)
{
	folio_lock(f);
	if (f->mapping == s->m)
		folio_mark_dropbehind(f);
	folio_unlock(f);
}

void scene_mark(struct scene *s)
{
	struct folio *f = scene_folio(s, 0);

	mark(s, f);
	scene_put(s, f);
}

void scene_mark_cached(struct scene *s)
{
	struct folio *f = cache_find(s->m, 0);

	if (!f)
		return;
	mark(s, f);
	folios_drop_behind(s->m, &f, 1);
	scene_put(s, f);
}

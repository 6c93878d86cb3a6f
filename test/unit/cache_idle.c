/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Goal: the cache keeps no file of the host open for longer than it has a use
 * for it, so that the space of removed files comes back.
 * Method: files in a directory are written, closed, perhaps removed; the
 * process's descriptors tell which of them are open.
 */
#include "lib/cachetest.h"
#include "lib/test.h"

#include <dirent.h>
#include <fcntl.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

static const struct rig_options by_hand = { .host = true, .no_flushers = true };
static const struct rig_options on_host = { .host = true };

/* Whether a descriptor is of the rig's file. */
static bool is_held(struct rig *r)
{
	char path[4096], link[512];
	DIR *fds = opendir("/proc/self/fd");
	struct dirent *e;
	bool held = false;
	ssize_t n;

	assert_non_null(fds);
	snprintf(path, sizeof(path), "%s/%s", r->dir, RIG_FILE);
	while ((e = readdir(fds))) {
		n = readlinkat(dirfd(fds), e->d_name, link, sizeof(link) - 1);
		link[n > 0 ? n : 0] = 0;
		held |= !strncmp(link, path, strlen(path));
	}
	closedir(fds);
	return held;
}

static void close_file(struct rig *r)
{
	assert_int_equal(tr_file_close(r->file), 0);
	r->file = NULL;
}

/* With no pages left it is let go at once, though no flusher ever looked at a
 * file that only syncs wrote back. */
static void without_pages(void **state)
{
	struct rig r;

	rig_init(&r, &by_hand);
	rig_write(r.file, 6000, 0, 1, TR_DONTCACHE | TR_DSYNC);
	rig_write(r.file, 6000, 6000, 1, TR_DONTCACHE | TR_DSYNC);
	assert_true(is_held(&r));
	close_file(&r);
	assert_false(is_held(&r));
	rig_fini(&r);
}

static void with_pages_when_removed(void **state)
{
	char path[4096];
	struct rig r;

	rig_init(&r, &on_host);
	assert_int_equal(tr_cache_set(r.cache, "flush_interval", 10), 0);
	rig_write(r.file, 6000, 0, 1, 0);
	close_file(&r);
	assert_true(is_held(&r));
	snprintf(path, sizeof(path), "%s/%s", r.dir, RIG_FILE);
	assert_int_equal(unlink(path), 0);
	/* The interval that was set counts from the next look on. */
	while (is_held(&r))
		usleep(10000);
	rig_fini(&r);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(without_pages),
		cmocka_unit_test(with_pages_when_removed),
	};

	return cmocka_run_group_tests(tests, leak_setup, leak_check);
}

/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Goal: handles of the server's own making open the file they were made of,
 * wherever it went inside the root, and nothing else.
 *
 * Method: a small tree; handles are opened by a map that saw the file, by one
 * that saw nothing (a restart), after renames on the host, after removal, and
 * after another file took the name.
 */
#include "lib/test.h"

#include "base/clock.h"
#include "fs/pathmap.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

struct tree {
	char dir[32];
	int fd;
};

static void make(struct tree *t, const char *name, bool directory)
{
	int fd;

	if (directory) {
		assert_int_equal(mkdirat(t->fd, name, 0755), 0);
		return;
	}
	fd = openat(t->fd, name, O_CREAT | O_EXCL | O_WRONLY, 0644);
	assert_true(fd >= 0);
	close(fd);
}

static void tree_make(struct tree *t)
{
	strcpy(t->dir, "/tmp/tr-pathmap.XXXXXX");
	assert_non_null(mkdtemp(t->dir));
	t->fd = open(t->dir, O_RDONLY | O_DIRECTORY);
	make(t, "d", true);
	make(t, "d/e", true);
	make(t, "d/e/f", false);
	assert_int_equal(symlinkat("d/e/f", t->fd, "link"), 0);
}

static void tree_remove(struct tree *t)
{
	char command[64];

	close(t->fd);
	snprintf(command, sizeof(command), "rm -r %s", t->dir);
	assert_int_equal(system(command), 0);
}

static void opens_as(struct pathmap *p, const struct fs_handle *h,
		     struct tree *t, const char *name)
{
	struct stat a, b;
	int fd = pathmap_open(p, h);

	assert_true(fd >= 0);
	assert_int_equal(fstat(fd, &a), 0);
	assert_int_equal(fstatat(t->fd, name, &b, AT_SYMLINK_NOFOLLOW), 0);
	assert_int_equal(a.st_ino, b.st_ino);
	close(fd);
}

static void finds(void **state)
{
	struct fs_handle f, e, link, root;
	struct pathmap *p, *fresh;
	struct tree t;

	(void)state;
	tree_make(&t);
	assert_int_equal(pathmap_create(t.fd, &p), 0);
	assert_int_equal(pathmap_handle(p, t.fd, "", 0, NULL, &root), 0);
	assert_int_equal(pathmap_handle(p, t.fd, "d/e/f", 0, NULL, &f), 0);
	assert_int_equal(pathmap_handle(p, t.fd, "d/e", 0, NULL, &e), 0);
	assert_int_equal(pathmap_handle(p, t.fd, "link", 0, NULL, &link), 0);
	opens_as(p, &root, &t, ".");
	opens_as(p, &f, &t, "d/e/f");
	opens_as(p, &link, &t, "link");

	/* A new map knows nothing and searches; a second search has to wait,
	 * but what the first met is known. */
	assert_int_equal(pathmap_create(t.fd, &fresh), 0);
	opens_as(fresh, &f, &t, "d/e/f");
	opens_as(fresh, &e, &t, "d/e");
	opens_as(fresh, &link, &t, "link");
	pathmap_destroy(fresh);
	pathmap_destroy(p);
	tree_remove(&t);
}

static void follows_renames(void **state)
{
	struct fs_handle f;
	struct pathmap *p;
	struct tree t;

	(void)state;
	clock_sim_start(1000 * NS_PER_S);
	tree_make(&t);
	assert_int_equal(pathmap_create(t.fd, &p), 0);
	assert_int_equal(pathmap_handle(p, t.fd, "d/e/f", 0, NULL, &f), 0);
	opens_as(p, &f, &t, "d/e/f");
	clock_sim_advance(10 * NS_PER_S);
	assert_int_equal(renameat(t.fd, "d/e/f", t.fd, "d/g"), 0);
	opens_as(p, &f, &t, "d/g");
	clock_sim_advance(10 * NS_PER_S);
	assert_int_equal(renameat(t.fd, "d", t.fd, "D"), 0);
	opens_as(p, &f, &t, "D/g");

	/* Another file of that name is not it. */
	assert_int_equal(unlinkat(t.fd, "D/g", 0), 0);
	make(&t, "D/g", false);
	clock_sim_advance(10 * NS_PER_S);
	assert_int_equal(pathmap_open(p, &f), -ESTALE);
	pathmap_destroy(p);
	tree_remove(&t);
	clock_sim_stop();
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(finds),
		cmocka_unit_test(follows_renames),
	};
	return cmocka_run_group_tests(tests, leak_setup, leak_check);
}

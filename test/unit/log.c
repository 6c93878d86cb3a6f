/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Goal: lines reach the sink or stderr whole, filtered by level, with the
 * prefix that journald reads where stderr is its stream. Method: a sink that
 * keeps the line; a pipe in stderr's place, named in JOURNAL_STREAM.
 */
#include "lib/test.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/log.h"

static char kept[2048];
static int nr_kept;

static void keep(enum log_level level, const char *line, void *arg)
{
	assert_ptr_equal(arg, kept);
	nr_kept++;
	snprintf(kept, sizeof(kept), "%d %s", (int)level, line);
}

static void levels_filter(void **state)
{
	char longer[2000];

	log_set_sink(keep, kept);
	log_line(LOG_ERROR, "n=%d", 5);
	assert_string_equal(kept, "0 n=5");
	log_line(LOG_DEBUG, "not by default");
	assert_int_equal(nr_kept, 1);
	log_set_level(LOG_DEBUG);
	log_line(LOG_DEBUG, "now");
	assert_string_equal(kept, "4 now");
	log_set_level(LOG_ERROR);
	log_line(LOG_WARNING, "not now");
	assert_int_equal(nr_kept, 2);
	log_set_level(LOG_INFO);
	memset(longer, 'x', sizeof(longer) - 1);
	longer[sizeof(longer) - 1] = 0;
	log_line(LOG_INFO, "%s", longer);
	assert_int_equal(strlen(kept), 2 + 1024 - 2);
	log_set_sink(NULL, NULL);
}

/* What a line writes to stderr, which is fd for so long. */
static void written(int fd, int from, char *buf, size_t len)
{
	int old = dup(STDERR_FILENO);
	ssize_t n;

	dup2(fd, STDERR_FILENO);
	log_line(LOG_WARNING, "hello");
	dup2(old, STDERR_FILENO);
	close(old);
	n = read(from, buf, len - 1);
	buf[n > 0 ? n : 0] = 0;
}

static void stderr_and_journal(void **state)
{
	char name[64], buf[64];
	struct stat st;
	int fds[2];

	assert_int_equal(pipe(fds), 0);
	unsetenv("JOURNAL_STREAM");
	written(fds[1], fds[0], buf, sizeof(buf));
	assert_string_equal(buf, "hello\n");
	setenv("JOURNAL_STREAM", "1:1", 1);
	written(fds[1], fds[0], buf, sizeof(buf));
	assert_string_equal(buf, "hello\n");
	fstat(fds[1], &st);
	snprintf(name, sizeof(name), "%llu:%llu", (unsigned long long)st.st_dev,
		 (unsigned long long)st.st_ino);
	setenv("JOURNAL_STREAM", name, 1);
	written(fds[1], fds[0], buf, sizeof(buf));
	assert_string_equal(buf, "<4>hello\n");
	unsetenv("JOURNAL_STREAM");
	close(fds[0]);
	close(fds[1]);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(levels_filter),
		cmocka_unit_test(stderr_and_journal),
	};

	return cmocka_run_group_tests(tests, leak_setup, leak_check);
}

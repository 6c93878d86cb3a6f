/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Goal: numbers, sizes and times mean what the manual says and nothing else is
 * accepted; a table's options land in their fields in every spelling. Method:
 * a table with one option of each type, good and bad words.
 */
#include "lib/test.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "cmd/options.h"

static void sizes(void **state)
{
	static const char *const bad[] = { "",	 "K",	"1KK", "1KB",
					   "-1", "1.5", "1X",  "16777216T",
					   " 1", "1 " };
	uint64_t n = 5;

	assert_int_equal(parse_size("4096", &n), 0);
	assert_int_equal(n, 4096);
	assert_int_equal(parse_size("3k", &n), 0);
	assert_int_equal(n, 3072);
	assert_int_equal(parse_size("2T", &n), 0);
	assert_int_equal(n, 2ull << 40);
	for (size_t i = 0; i < sizeof(bad) / sizeof(bad[0]); i++)
		assert_true(parse_size(bad[i], &n) < 0);
	assert_int_equal(n, 2ull << 40);
}

static void times_and_counts(void **state)
{
	uint64_t n = 0;

	assert_int_equal(parse_time("250ms", &n), 0);
	assert_int_equal(n, 250);
	assert_int_equal(parse_time("3s", &n), 0);
	assert_int_equal(n, 3000);
	assert_int_equal(parse_time("2m", &n), 0);
	assert_int_equal(n, 120000);
	assert_true(parse_time("2", &n) < 0);
	assert_true(parse_time("2h", &n) < 0);
	assert_int_equal(parse_count("18446744073709551615", &n), 0);
	assert_true(parse_count("18446744073709551616", &n) < 0);
	assert_true(parse_count("1K", &n) < 0);
}

struct fields {
	bool flag;
	uint64_t count, size, time;
	int choice;
	const char *string;
	struct option_list list;
};

static const char *const colours[] = { "red", "green", NULL };
#define FIELD(f) offsetof(struct fields, f)
static const struct option_row rows[] = {
	{ "flag", 'f', OPTION_FLAG, FIELD(flag), NULL, "", NULL, 0, 0 },
	{ "count", 'c', OPTION_COUNT, FIELD(count), "N", "", NULL, 1, 9 },
	{ "size", 's', OPTION_SIZE, FIELD(size), "S", "", NULL, 4096, 0 },
	{ "time", 0, OPTION_TIME, FIELD(time), "T", "", NULL, 0, 0 },
	{ "choice", 0, OPTION_CHOICE, FIELD(choice), "C", "", colours, 0, 0 },
	{ "string", 'S', OPTION_STRING, FIELD(string), "X", "", NULL, 0, 0 },
	{ "list", 0, OPTION_LIST, FIELD(list), "L", "", NULL, 0, 0 },
};
static const struct option_usage usage = { "test", NULL, "", "", rows, 7 };

static enum option_result parse(struct fields *f, int argc,
				const char *const *words)
{
	char *argv[16] = { (char *)"test" };

	for (int i = 0; i < argc; i++)
		argv[i + 1] = (char *)words[i];
	return options_parse(&usage, argc + 1, argv, f);
}

static void every_spelling(void **state)
{
	static const char *const words[] = {
		"-f",	 "-c3", "--size", "8K",	      "--time=2s", "--choice",
		"green", "-S",	"--x",	  "--list=a", "--list",	   "b",
	};
	struct fields f = { .choice = 7 };

	assert_int_equal(parse(&f, 12, words), OPTIONS_DONE);
	assert_true(f.flag);
	assert_int_equal(f.count, 3);
	assert_int_equal(f.size, 8192);
	assert_int_equal(f.time, 2000);
	assert_int_equal(f.choice, 1);
	assert_string_equal(f.string, "--x");
	assert_int_equal(f.list.nr, 2);
	assert_string_equal(f.list.values[0], "a");
	assert_string_equal(f.list.values[1], "b");
}

static void wrong_words(void **state)
{
	static const char *const wrong[] = {
		"--nothing",   "-x",	   "word",	    "-",
		"--flag=1",    "--count",  "--count=0",	    "-c10",
		"--size=4095", "--time=1", "--choice=blue", "--cou=3",
		"--counts=3",
	};
	struct fields f = { .count = 5 };

	for (size_t i = 0; i < sizeof(wrong) / sizeof(wrong[0]); i++)
		assert_int_equal(parse(&f, 1, &wrong[i]), OPTIONS_WRONG);
	assert_int_equal(f.count, 5);
}

/* The messages are stderr's business. */
static int quiet(void **state)
{
	return freopen("/dev/null", "w", stderr) ? 0 : -1;
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(sizes),
		cmocka_unit_test(times_and_counts),
		cmocka_unit_test(every_spelling),
		cmocka_unit_test_setup(wrong_words, quiet),
	};
	return cmocka_run_group_tests(tests, leak_setup, leak_check);
}

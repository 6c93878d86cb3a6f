/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Goal: any string survives as a word, what is no word is refused, and a text
 * keeps its limit. Method: all bytes, random lines, a small limit, memory that
 * runs out.
 */
#include "lib/test.h"

#include <errno.h>
#include <string.h>

#include "base/mem.h"
#include "ctl/text.h"

static void every_byte(void **state)
{
	char all[256], *words[4];
	struct text t;

	for (int i = 0; i < 255; i++)
		all[i] = (char)(i + 1);
	all[255] = 0;
	text_init(&t, 4096);
	text_add(&t, "x ", 2);
	text_word(&t, all);
	text_add(&t, " ", 1);
	text_word(&t, "");
	text_add(&t, "", 1);
	assert_false(t.full);
	assert_null(memchr(t.data, '\n', t.len));
	assert_int_equal(text_split(t.data, words, 4), 3);
	assert_string_equal(words[0], "x");
	assert_string_equal(words[1], all);
	assert_string_equal(words[2], "");
	text_fini(&t);
}

static int split(const char *line)
{
	char copy[64], *words[3];

	strcpy(copy, line);
	return text_split(copy, words, 3);
}

static void no_words(void **state)
{
	assert_int_equal(split("a b c"), 3);
	assert_int_equal(split("a b c d"), -E2BIG);
	assert_int_equal(split(""), -EINVAL);
	assert_int_equal(split(" a"), -EINVAL);
	assert_int_equal(split("a "), -EINVAL);
	assert_int_equal(split("a  b"), -EINVAL);
	assert_int_equal(split("\\"), -EINVAL);
	assert_int_equal(split("\\04"), -EINVAL);
	assert_int_equal(split("\\048"), -EINVAL);
	assert_int_equal(split("\\777"), -EINVAL);
	assert_int_equal(split("\\377"), 1);
}

static void random_lines(void **state)
{
	static const char bytes[] = "ab \\0147\n\t";
	uint64_t r = 0x7461696c72616365ull;
	char line[40], *words[8];

	for (int i = 0; i < 20000; i++) {
		size_t len;

		r = r * 6364136223846793005ull + 1442695040888963407ull;
		len = (r >> 33) % (sizeof(line) - 1);
		for (size_t j = 0; j < len; j++) {
			r = r * 6364136223846793005ull + 1442695040888963407ull;
			line[j] = bytes[(r >> 33) % (sizeof(bytes) - 1)];
		}
		line[len] = 0;
		assert_true(text_split(line, words, 8) <= 8);
	}
}

static void limit(void **state)
{
	struct text t;

	text_init(&t, 10);
	text_printf(&t, "%s", "12345678");
	text_add(&t, "abc", 3);
	assert_true(t.full);
	assert_int_equal(t.len, 8);
	/* Full is full, until it is cleared. */
	text_add(&t, "a", 1);
	assert_int_equal(t.len, 8);
	text_clear(&t);
	text_add(&t, "1234567890", 10);
	assert_false(t.full);
	text_drop(&t, 4);
	text_drop(&t, 0);
	assert_int_equal(t.len, 6);
	assert_memory_equal(t.data, "567890", 6);
	text_fini(&t);
}

static void no_memory(void **state)
{
	struct text t;

	text_init(&t, 100000);
	mem_fail_at(1, true);
	text_word(&t, "word");
	mem_fail_at(0, false);
	assert_true(t.full);
	assert_int_equal(t.len, 0);
	text_fini(&t);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(every_byte),	cmocka_unit_test(no_words),
		cmocka_unit_test(random_lines), cmocka_unit_test(limit),
		cmocka_unit_test(no_memory),
	};

	return cmocka_run_group_tests(tests, leak_setup, leak_check);
}

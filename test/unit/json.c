/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Goal: what is written is JSON. Method: a document with every kind of value,
 * nested and empty containers and characters that need escapes, compared with
 * the text it must be.
 */
#include "lib/test.h"

#include <math.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>

#include "cmd/json.h"

static void document(void **state)
{
	char *text = NULL;
	size_t len = 0;
	struct json j;
	FILE *f = open_memstream(&text, &len);

	assert_non_null(f);
	json_init(&j, f);
	json_object_start(&j, NULL);
	json_string(&j, "s", "a\"b\\c\n");
	json_int(&j, "i", -3);
	json_array_start(&j, "a");
	json_object_start(&j, NULL);
	json_object_end(&j);
	json_object_start(&j, NULL);
	json_bool(&j, "t", true);
	json_null(&j, "n");
	json_object_end(&j);
	json_array_end(&j);
	json_array_start(&j, "e");
	json_array_end(&j);
	json_real(&j, "r", 1.26, 1);
	json_real(&j, "x", NAN, 1);
	json_object_end(&j);
	fclose(f);
	assert_string_equal(text, "{\"s\":\"a\\\"b\\\\c\\u000a\",\"i\":-3,"
				  "\"a\":[{},{\"t\":true,\"n\":null}],\"e\":[],"
				  "\"r\":1.3,\"x\":null}");
	free(text);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(document),
	};
	return cmocka_run_group_tests(tests, leak_setup, leak_check);
}

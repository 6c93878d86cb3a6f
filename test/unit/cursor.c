/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Goal: each client with unstable writes is told of an error exactly once; when
 * the table overflows, at least once.
 *
 * Method: a few clients against a model that remembers who is owed what, and
 * many clients for the overflow.
 */
#include "lib/test.h"

#include "fs/cursor.h"

#include <errno.h>

static const uint8_t a[16] = { 1 }, b[16] = { 2 }, stranger[16] = { 3 };

static void once_each(void **state)
{
	struct cursors c = { 0 };

	(void)state;
	cursor_start(&c, a);
	cursor_start(&c, b);
	assert_int_equal(cursor_check(&c, a), 0);
	cursor_error(&c, -EIO);
	assert_int_equal(cursor_check(&c, a), -EIO);
	assert_int_equal(cursor_check(&c, a), 0);
	cursor_start(&c, b);
	assert_int_equal(cursor_check(&c, b), -EIO);
	assert_int_equal(cursor_check(&c, b), 0);
	assert_int_equal(cursor_check(&c, stranger), 0);
	cursor_start(&c, stranger);
	assert_int_equal(cursor_check(&c, stranger), 0);
	cursor_error(&c, -ENOSPC);
	assert_int_equal(cursor_check(&c, stranger), -ENOSPC);
}

static void overflow(void **state)
{
	struct cursors c = { 0 };
	uint8_t client[16] = { 0 };
	int i;

	(void)state;
	for (i = 0; i < 3 * CURSORS_MAX; i++) {
		client[5] = (uint8_t)i;
		cursor_start(&c, client);
	}
	cursor_error(&c, -EIO);
	for (i = 0; i < 3 * CURSORS_MAX; i++) {
		client[5] = (uint8_t)i;
		assert_int_equal(cursor_check(&c, client), -EIO);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(once_each),
		cmocka_unit_test(overflow),
	};
	return cmocka_run_group_tests(tests, leak_setup, leak_check);
}

/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Goal: the harness notices what it is there to notice. Method: leak a
 * descriptor on purpose and see it counted; set the seed and get it back.
 */
#include "lib/test.h"

#include <stdlib.h>
#include <unistd.h>

static void leak_is_counted(void **state)
{
	struct leak leak;
	int fd;

	leak_start(&leak);
	fd = dup(1);
	assert_true(fd >= 0);
	assert_int_equal(leak_end(&leak), 1);
	close(fd);
	assert_int_equal(leak_end(&leak), 0);
}

static void seed_is_taken(void **state)
{
	const char *old = getenv("TR_SEED");

	setenv("TR_SEED", "0x1234", 1);
	assert_int_equal(seed_draw(), 0x1234);
	if (old)
		setenv("TR_SEED", old, 1);
	else
		unsetenv("TR_SEED");
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(leak_is_counted),
		cmocka_unit_test(seed_is_taken),
	};

	return cmocka_run_group_tests(tests, leak_setup, leak_check);
}

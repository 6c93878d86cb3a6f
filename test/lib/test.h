/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * What a unit test includes first: cmocka with the headers it needs, the leak
 * check, and seeds.
 *
 *	int main(void)
 *	{
 *		const struct CMUnitTest tests[] = {
 *			cmocka_unit_test(insert_finds),
 *		};
 *		return cmocka_run_group_tests(tests, leak_setup, leak_check);
 *	}
 */
#ifndef TR_TEST_TEST_H
#define TR_TEST_TEST_H

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "lib/leak.h"
#include "lib/seed.h"

#endif

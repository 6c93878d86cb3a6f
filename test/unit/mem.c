/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Goal: allocations are what their names say, and the failure point fails the
 * one asked for. Method: look at the memory; count which of a row of
 * allocations fail.
 */
#include "lib/test.h"

#include <string.h>

#include "base/mem.h"

static void allocations(void **state)
{
	static const uint8_t zero[100];
	/* Kept from the compiler, which would refuse the overflow. */
	volatile size_t huge = SIZE_MAX / 2;
	void *p;
	char *s;

	p = mem_alloc(100);
	assert_non_null(p);
	mem_free(p);
	p = mem_zalloc(100);
	assert_memory_equal(p, zero, 100);
	mem_free(p);
	p = mem_zalloc_array(10, 10);
	assert_memory_equal(p, zero, 100);
	mem_free(p);
	assert_null(mem_zalloc_array(huge, 4));
	p = mem_zalloc_aligned(64, 100);
	assert_memory_equal(p, zero, 100);
	assert_int_equal((uintptr_t)p % 64, 0);
	mem_free(p);
	s = mem_strdup("text");
	assert_string_equal(s, "text");
	mem_free(s);
	mem_free(NULL);
}

/* One bit for each of five requests: whether it failed. */
static unsigned failures(uint64_t nth, bool lasting)
{
	unsigned bits = 0;
	void *p[4];
	int i;

	mem_fail_at(nth, lasting);
	p[0] = mem_alloc(1);
	p[1] = mem_zalloc_array(1, 1);
	p[2] = mem_zalloc_aligned(8, 8);
	p[3] = mem_strdup("");
	for (i = 0; i < 4; i++) {
		bits |= (unsigned)!p[i] << i;
		mem_free(p[i]);
	}
	bits |= (unsigned)mem_should_fail() << 4;
	assert_int_equal(mem_fail_at(0, false), nth ? 5 : 0);
	return bits;
}

static void the_nth_fails(void **state)
{
	assert_int_equal(failures(0, false), 0);
	assert_int_equal(failures(1, false), 1);
	assert_int_equal(failures(3, false), 4);
	assert_int_equal(failures(3, true), 4 + 8 + 16);
	assert_int_equal(failures(6, true), 0);
	assert_false(mem_should_fail());
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(allocations),
		cmocka_unit_test(the_nth_fails),
	};

	return cmocka_run_group_tests(tests, leak_setup, leak_check);
}

/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * What ThreadSanitizer is told before a test begins. liburcu is built without
 * it: the sanitizer sees its calls of malloc() and free() but none of the
 * atomics that order them. base/rcu.h says what follows what instead.
 */
const char *__tsan_default_suppressions(void);

__attribute__((visibility("default"))) const char *__tsan_default_suppressions(
	void)
{
	return "called_from_lib:liburcu-bp.so\n"
	       "called_from_lib:liburcu-common.so\n";
}

/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * Allocation by the C library, with a failure point in front.
 *
 * Outside tests the failure point is one load of a flag that nobody writes.
 */
#include "base/mem.h"

#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>

static struct {
	atomic_bool armed;
	atomic_uint_fast64_t asked; /* since armed */
	atomic_uint_fast64_t nth;
	atomic_bool lasting;
} fault;

bool mem_should_fail(void)
{
	uint64_t n, nth;

	if (likely(!atomic_load_explicit(&fault.armed, memory_order_relaxed)))
		return false;
	n = atomic_fetch_add(&fault.asked, 1) + 1;
	nth = atomic_load(&fault.nth);
	return n == nth || (n > nth && atomic_load(&fault.lasting));
}

uint64_t mem_fail_at(uint64_t nth, bool lasting)
{
	uint64_t asked;

	atomic_store(&fault.armed, false);
	asked = atomic_exchange(&fault.asked, 0);
	atomic_store(&fault.nth, nth);
	atomic_store(&fault.lasting, lasting);
	atomic_store(&fault.armed, nth != 0);
	return asked;
}

void *mem_alloc(size_t len)
{
	return mem_should_fail() ? NULL : malloc(len);
}

void *mem_zalloc(size_t len)
{
	return mem_should_fail() ? NULL : calloc(1, len);
}

void *mem_zalloc_array(size_t nr, size_t size)
{
	size_t len;

	/* calloc() would see it too, but ASan's dies of it. */
	if (__builtin_mul_overflow(nr, size, &len))
		return NULL;
	return mem_zalloc(len);
}

void *mem_zalloc_aligned(size_t align, size_t len)
{
	void *p;

	if (mem_should_fail() || posix_memalign(&p, align, len))
		return NULL;
	memset(p, 0, len);
	return p;
}

char *mem_strdup(const char *s)
{
	return mem_should_fail() ? NULL : strdup(s);
}

void mem_free(void *p)
{
	free(p);
}

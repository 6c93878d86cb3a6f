/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * Memory for structures (folio memory comes from the cache's arena).
 *
 * All allocations of the library go through here so that tests can fail the
 * Nth one, once or from then on, and see that nothing is left behind.
 */
#ifndef TR_BASE_MEM_H
#define TR_BASE_MEM_H

#include "base/compiler.h"

#include <stdbool.h>

void *mem_alloc(size_t len) MUST_CHECK;
void *mem_zalloc(size_t len) MUST_CHECK;
void *mem_zalloc_array(size_t nr, size_t size) MUST_CHECK;
/* align is a power of two, at least sizeof(void *). Zeroed. */
void *mem_zalloc_aligned(size_t align, size_t len) MUST_CHECK;
char *mem_strdup(const char *s) MUST_CHECK;
void mem_free(void *p);

/*
 * Tests: whether the next failure point should fail. Every allocation asks,
 * and so does every other place that can fail for want of a resource
 * (arena_alloc, slab_alloc, task_create).
 */
bool mem_should_fail(void);

/* Tests: fails the nth request from now (1: the next), and later ones too if
 * lasting. 0 switches it off. Returns how many were asked since last set
 * (they are not counted while it is off). */
uint64_t mem_fail_at(uint64_t nth, bool lasting);

#endif

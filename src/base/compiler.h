/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * What C lacks in a word each: branch hints, attributes, size arithmetic and
 * the two words that document locking.
 *
 * GUARDED(x) stands behind a field that only the holder of x may touch;
 * REQUIRES(x) behind a function whose caller holds x. Both are for the reader:
 * the ranked locks of base/lock.h check order, the race explorer the rest.
 */
#ifndef TR_BASE_COMPILER_H
#define TR_BASE_COMPILER_H

#include <stddef.h>
#include <stdint.h>

#define likely(x) __builtin_expect(!!(x), 1)
#define unlikely(x) __builtin_expect(!!(x), 0)

#define MUST_CHECK __attribute__((warn_unused_result))
#define PRINTF(fmt, first) __attribute__((format(printf, fmt, first)))
#define NOINLINE __attribute__((noinline))
#define ALIGNED(n) __attribute__((aligned(n)))
#define UNUSED __attribute__((unused))

#define GUARDED(lock)
#define REQUIRES(lock)

/* Bytes in a line of the CPU's caches: what separate writers keep apart. */
#define CACHE_LINE 64

#define ARRAY_SIZE(a) (sizeof(a) / sizeof((a)[0]))

#define container_of(ptr, type, member)                                        \
	((type *)((char *)(ptr)-offsetof(type, member)))

/* Each argument is evaluated once; the names differ so that calls nest. */
#define PASTE_(a, b) a##b
#define PASTE(a, b) PASTE_(a, b)
#define PICK_(a, b, x, y, op)                                                  \
	({                                                                     \
		__typeof__(a) x = (a);                                         \
		__typeof__(b) y = (b);                                         \
		x op y ? x : y;                                                \
	})
#define min_of(a, b)                                                           \
	PICK_(a, b, PASTE(a_, __COUNTER__), PASTE(b_, __COUNTER__), <)
#define max_of(a, b)                                                           \
	PICK_(a, b, PASTE(a_, __COUNTER__), PASTE(b_, __COUNTER__), >)

/* a is a power of two. */
static inline uint64_t align_down(uint64_t x, uint64_t a)
{
	return x & ~(a - 1);
}

static inline uint64_t align_up(uint64_t x, uint64_t a)
{
	return (x + a - 1) & ~(a - 1);
}

static inline int is_power_of_two(uint64_t x)
{
	return x && !(x & (x - 1));
}

#endif

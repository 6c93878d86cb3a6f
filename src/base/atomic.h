/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * Atomics that the race explorer sees: words of state bits and counts of
 * references. In every other build they are C11's and nothing else.
 *
 * Loads acquire; everything that changes is sequentially consistent, so that
 * "change the word, then waitq_wake_all()" and "waitq_prepare(), then look at
 * the word" need no further argument. All that return a value return the one
 * from before.
 *
 * In the explorer's build another task may run before each of them, and after
 * those that give something up (state_and, state_store, count_sub): what the
 * caller still does with the object then meets the worst case.
 */
#ifndef TR_BASE_ATOMIC_H
#define TR_BASE_ATOMIC_H

#include "base/compiler.h"

#include <stdatomic.h>
#include <stdbool.h>

#ifdef TR_EXPLORE
/* Another task may run here; addr is what is about to be touched. */
void explore_point(const volatile void *addr);
#else
static inline void explore_point(const volatile void *addr UNUSED)
{
}
#endif

static inline unsigned state_load(const atomic_uint *p)
{
	explore_point(p);
	return atomic_load_explicit(p, memory_order_acquire);
}

static inline void state_store(atomic_uint *p, unsigned v)
{
	explore_point(p);
	atomic_store(p, v);
	explore_point(p);
}

static inline unsigned state_or(atomic_uint *p, unsigned bits)
{
	explore_point(p);
	return atomic_fetch_or(p, bits);
}

static inline unsigned state_and(atomic_uint *p, unsigned bits)
{
	unsigned old;

	explore_point(p);
	old = atomic_fetch_and(p, bits);
	explore_point(p);
	return old;
}

static inline unsigned state_xchg(atomic_uint *p, unsigned v)
{
	explore_point(p);
	return atomic_exchange(p, v);
}

/* On failure *old becomes the value found. Fails only if they differ. */
static inline bool state_cas(atomic_uint *p, unsigned *old, unsigned v)
{
	explore_point(p);
	return atomic_compare_exchange_strong(p, old, v);
}

static inline int count_load(const atomic_int *p)
{
	explore_point(p);
	return atomic_load_explicit(p, memory_order_acquire);
}

static inline int count_add(atomic_int *p, int n)
{
	explore_point(p);
	return atomic_fetch_add(p, n);
}

static inline int count_sub(atomic_int *p, int n)
{
	int old;

	explore_point(p);
	old = atomic_fetch_sub(p, n);
	explore_point(p);
	return old;
}

static inline bool count_cas(atomic_int *p, int *old, int v)
{
	explore_point(p);
	return atomic_compare_exchange_strong(p, old, v);
}

/* Takes a reference unless there is none left to share. */
static inline bool count_inc_unless_zero(atomic_int *p)
{
	int old = count_load(p);

	while (old)
		if (count_cas(p, &old, old + 1))
			return true;
	return false;
}

#endif

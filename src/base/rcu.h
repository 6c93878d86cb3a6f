/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * Read-copy-update, by liburcu's "bp" flavour: a thread needs no registration
 * by whoever made it, so any thread may call the library. Read sections nest,
 * never sleep, and are a few instructions.
 *
 * The explorer's build runs a callback as soon as no task is inside a read
 * section, so that a use after the end of the section is found by ASan.
 */
#ifndef TR_BASE_RCU_H
#define TR_BASE_RCU_H

#include "base/compiler.h"

/*
 * ThreadSanitizer does not see into liburcu, so it is told: what a reader did
 * before the end of its section, or a writer before call_rcu(), comes before
 * what the callback does, and that before the end of rcu_barrier(). A callback
 * says so itself, first with rcu_callback_start(), last with rcu_callback_end().
 * Under any sanitizer liburcu's calls are not inlined: its records of readers
 * are less aligned than it says.
 */
#ifdef __has_feature
#if __has_feature(thread_sanitizer)
#define RCU_TSAN
#elif __has_feature(address_sanitizer)
#define RCU_ASAN
#endif
#endif
#ifdef __SANITIZE_THREAD__
#define RCU_TSAN
#endif
#ifdef __SANITIZE_ADDRESS__
#define RCU_ASAN
#endif

#ifdef TR_EXPLORE

struct rcu_head {
	struct rcu_head *next;
	void (*func)(struct rcu_head *head);
};
void rcu_read_lock(void);
void rcu_read_unlock(void);
void call_rcu(struct rcu_head *head, void (*func)(struct rcu_head *head));
void rcu_barrier(void);
void synchronize_rcu(void);
#define rcu_dereference(p) __atomic_load_n(&(p), __ATOMIC_CONSUME)
#define rcu_assign_pointer(p, v) __atomic_store_n(&(p), (v), __ATOMIC_RELEASE)
#define rcu_callback_start() ((void)0)
#define rcu_callback_end() ((void)0)

#else

#if !defined(_LGPL_SOURCE) && !defined(RCU_TSAN) && !defined(RCU_ASAN)
#define _LGPL_SOURCE
#endif
#include <urcu-bp.h>

#ifdef RCU_TSAN
void __tsan_acquire(void *addr);
void __tsan_release(void *addr);

/* Any address that all files agree on. */
#define rcu_order ((void *)urcu_bp_barrier)

#define rcu_callback_start() __tsan_acquire(rcu_order)
#define rcu_callback_end() __tsan_release(rcu_order)
#undef rcu_barrier
#define rcu_barrier() (urcu_bp_barrier(), __tsan_acquire(rcu_order))
#undef rcu_read_unlock
#define rcu_read_unlock() (__tsan_release(rcu_order), urcu_bp_read_unlock())
#undef call_rcu
#define call_rcu(head, func)                                                   \
	(__tsan_release(rcu_order), urcu_bp_call_rcu(head, func))
#undef rcu_dereference
#define rcu_dereference(p) __atomic_load_n(&(p), __ATOMIC_ACQUIRE)
#undef rcu_assign_pointer
#define rcu_assign_pointer(p, v) __atomic_store_n(&(p), (v), __ATOMIC_RELEASE)
#else
#define rcu_callback_start() ((void)0)
#define rcu_callback_end() ((void)0)
#endif

#endif
#endif

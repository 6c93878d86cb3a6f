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

#ifdef TR_EXPLORE

struct rcu_head {
	struct rcu_head *next;
	void (*func)(struct rcu_head *head);
};
void rcu_read_lock(void);
void rcu_read_unlock(void);
void call_rcu(struct rcu_head *head, void (*func)(struct rcu_head *head));
void rcu_barrier(void);
#define rcu_dereference(p) __atomic_load_n(&(p), __ATOMIC_CONSUME)
#define rcu_assign_pointer(p, v) __atomic_store_n(&(p), (v), __ATOMIC_RELEASE)

#else

#ifndef _LGPL_SOURCE
#define _LGPL_SOURCE
#endif
#include <urcu/urcu-bp.h>

#endif
#endif

/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * The mutexes a task holds, for the checks of base/lock.h in test builds.
 *
 * A record belongs to one task, which alone touches it: a thread's is thread
 * local, a coroutine's of the race explorer is part of the coroutine.
 */
#ifndef TR_BASE_HELD_H
#define TR_BASE_HELD_H

#include "base/compiler.h"

struct mutex;

/* Deepest nesting: ranks are few and only try_lock may repeat one. */
#define HELD_MAX 32

struct held {
	unsigned nr;
	const struct mutex *m[HELD_MAX];
};

/* The calling task's record. */
struct held *held_self(void);

/* Aborts if waiting for m, with what h says is held, breaks the order. */
void held_check(const struct held *h, const struct mutex *m);

void held_push(struct held *h, const struct mutex *m);

/* Aborts if m is not held. */
void held_pop(struct held *h, const struct mutex *m);

void held_assert(const struct held *h, const struct mutex *m);
void held_assert_none(const struct held *h);

/* A rank's name, for messages. */
const char *lock_rank_name(unsigned rank);

#endif

/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * Ranked mutexes on POSIX threads.
 *
 * Adaptive ones: the sections they guard are shorter than a sleep and a
 * wake-up. Without TR_LOCK_CHECK a lock is the C library's and nothing else.
 * The C library reports no failure for a mutex used rightly, so any is a bug.
 */
#include "base/lock.h"

#include <assert.h>
#include <errno.h>

#include "base/held.h"

#ifdef TR_LOCK_CHECK
#define LOCK_CHECKED 1
#else
#define LOCK_CHECKED 0
#endif

struct held *held_self(void)
{
	static _Thread_local struct held held;

	return &held;
}

void mutex_init(struct mutex *m, enum lock_rank rank)
{
	pthread_mutexattr_t attr;
	int rc;

	pthread_mutexattr_init(&attr);
	pthread_mutexattr_settype(&attr, PTHREAD_MUTEX_ADAPTIVE_NP);
	rc = pthread_mutex_init(&m->m, &attr);
	assert(rc == 0);
	pthread_mutexattr_destroy(&attr);
	m->rank = rank;
}

void mutex_fini(struct mutex *m)
{
	int rc = pthread_mutex_destroy(&m->m);

	assert(rc == 0);
}

void mutex_lock(struct mutex *m)
{
	int rc;

	if (LOCK_CHECKED)
		held_check(held_self(), m);
	rc = pthread_mutex_lock(&m->m);
	assert(rc == 0);
	if (LOCK_CHECKED)
		held_push(held_self(), m);
}

bool mutex_try_lock(struct mutex *m)
{
	int rc = pthread_mutex_trylock(&m->m);

	assert(rc == 0 || rc == EBUSY);
	if (LOCK_CHECKED && !rc)
		held_push(held_self(), m);
	return !rc;
}

void mutex_unlock(struct mutex *m)
{
	int rc;

	if (LOCK_CHECKED)
		held_pop(held_self(), m);
	rc = pthread_mutex_unlock(&m->m);
	assert(rc == 0);
}

void mutex_assert_held(const struct mutex *m)
{
	if (LOCK_CHECKED)
		held_assert(held_self(), m);
}

void lock_assert_none(void)
{
	if (LOCK_CHECKED)
		held_assert_none(held_self());
}

/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * Sleeping until a condition holds.
 *
 * A struct waitq is an event count: a sleeper notes the count, tests its
 * condition, and sleeps only while the count is unchanged; whoever makes a
 * condition true calls waitq_wake_all() (or _one) afterwards. No wake-up can
 * be lost, and waking costs one load when nobody sleeps. The queue must live
 * until the waker's call returns: a sleeper that saw the condition true does
 * not know whether the waker is done with the queue.
 *
 *	wait_event(&wq, condition);
 *
 * The condition is evaluated without any lock held by wait_event itself and
 * may be evaluated often. No mutex may be held across a sleep (checked in
 * test builds).
 */
#ifndef TR_BASE_WAIT_H
#define TR_BASE_WAIT_H

#include "base/compiler.h"

#include <stdatomic.h>
#include <stdbool.h>

struct waitq {
	atomic_uint seq;
	atomic_uint sleepers;
};

static inline void waitq_init(struct waitq *wq)
{
	atomic_init(&wq->seq, 0);
	atomic_init(&wq->sleepers, 0);
}

/* Registers the caller as a sleeper and returns the count to sleep on. */
unsigned waitq_prepare(struct waitq *wq);

/* Ends what waitq_prepare() began without sleeping. */
void waitq_cancel(struct waitq *wq);

/*
 * Sleeps while the count is seen, and ends what waitq_prepare() began.
 * Returns false only when deadline_ns (clock_ns(), 0: none) has passed.
 */
bool waitq_sleep(struct waitq *wq, unsigned seen, uint64_t deadline_ns);

void waitq_wake_all(struct waitq *wq);
void waitq_wake_one(struct waitq *wq);

#define wait_event(wq, cond)                                                   \
	do {                                                                   \
		unsigned seen_;                                                \
                                                                               \
		while (!(cond)) {                                              \
			seen_ = waitq_prepare(wq);                             \
			if (cond) {                                            \
				waitq_cancel(wq);                              \
				break;                                         \
			}                                                      \
			waitq_sleep(wq, seen_, 0);                             \
		}                                                              \
	} while (0)

/* As wait_event; evaluates to false if deadline_ns passed with cond false. */
#define wait_event_until(wq, cond, deadline_ns)                                \
	({                                                                     \
		bool met_ = true;                                              \
		unsigned seen_;                                                \
                                                                               \
		while (!(cond)) {                                              \
			seen_ = waitq_prepare(wq);                             \
			if (cond) {                                            \
				waitq_cancel(wq);                              \
				break;                                         \
			}                                                      \
			if (!waitq_sleep(wq, seen_, deadline_ns)) {            \
				met_ = (cond);                                 \
				break;                                         \
			}                                                      \
		}                                                              \
		met_;                                                          \
	})

#endif

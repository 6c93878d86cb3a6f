/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * Event counts on futexes.
 *
 * Why no wake-up is lost. A sleeper S and a waker W do
 *
 *	S1 sleepers++		W1 make the condition true
 *	S2 read seq		W2 fence
 *	S3 test the condition	W3 read sleepers; 0: done
 *	S4 sleep while seq same	W4 seq++, futex wake
 *
 * S1 is a sequentially consistent read-modify-write and W2 a sequentially
 * consistent fence. If W3 reads 0 it precedes S1, so W1 precedes S3, which
 * then sees the condition true. Else W4 happens: if it comes after S2, the
 * kernel compares seq under its bucket lock and S4 does not sleep or is woken;
 * if it comes before S2, S2 reads what W4 wrote and so S3 sees W1.
 *
 * seq would have to go round, 2^32 wake-ups between S2 and S4, to fool S4.
 * sleepers counts S until it has returned, so a waker may do a needless system
 * call, never miss a needed one. A queue must outlive its wakers' calls, not
 * just its sleepers.
 */
#include "base/wait.h"

#include <assert.h>
#include <errno.h>
#include <limits.h>
#include <linux/futex.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/lock.h"
#include "base/sim.h"

/* gcc refuses fences under TSan, which does not model them. */
#if defined(__SANITIZE_THREAD__)
#define WAIT_TSAN 1
#elif defined(__has_feature)
#if __has_feature(thread_sanitizer)
#define WAIT_TSAN 1
#endif
#endif

static void futex_wake(atomic_uint *word, int nr)
{
	long rc =
		syscall(SYS_futex, word, FUTEX_WAKE_PRIVATE, nr, NULL, NULL, 0);

	assert(rc >= 0);
}

/*
 * Sleeps while *word is seen, until the monotonic deadline_ns (0: none).
 * Returns 0 or -ETIMEDOUT; early returns are allowed.
 */
static int futex_wait(atomic_uint *word, unsigned seen, uint64_t deadline_ns)
{
	struct timespec ts = {
		.tv_sec = (time_t)(deadline_ns / NS_PER_S),
		.tv_nsec = (long)(deadline_ns % NS_PER_S),
	};
	long rc;

	/* The BITSET form is the one whose timeout is absolute. */
	rc = syscall(SYS_futex, word, FUTEX_WAIT_BITSET_PRIVATE, seen,
		     deadline_ns ? &ts : NULL, NULL, FUTEX_BITSET_MATCH_ANY);
	if (!rc)
		return 0;
	assert(errno == EAGAIN || errno == EINTR || errno == ETIMEDOUT);
	return errno == ETIMEDOUT ? -ETIMEDOUT : 0;
}

unsigned waitq_prepare(struct waitq *wq)
{
	atomic_fetch_add(&wq->sleepers, 1);
	return atomic_load(&wq->seq);
}

void waitq_cancel(struct waitq *wq)
{
	atomic_fetch_sub(&wq->sleepers, 1);
}

bool waitq_sleep(struct waitq *wq, unsigned seen, uint64_t deadline_ns)
{
	struct sim_sleeper s = { .wq = wq, .deadline_ns = deadline_ns };
	int rc, simulated = -ENODEV;

	lock_assert_none();
	if (deadline_ns)
		simulated = sim_sleep_start(&s);
	if (simulated < 0) {
		rc = futex_wait(&wq->seq, seen, deadline_ns);
	} else if (simulated) {
		rc = futex_wait(&wq->seq, seen, 0);
		if (clock_ns() >= deadline_ns)
			rc = -ETIMEDOUT;
		sim_sleep_end(&s);
	} else {
		rc = -ETIMEDOUT;
	}
	atomic_fetch_sub(&wq->sleepers, 1);
	return !rc;
}

void waitq_bump(struct waitq *wq)
{
	atomic_fetch_add(&wq->seq, 1);
	futex_wake(&wq->seq, INT_MAX);
}

/* W2 and W3 of the opening comment. */
static inline bool waitq_slept_on(struct waitq *wq)
{
#ifdef WAIT_TSAN
	return atomic_fetch_add(&wq->sleepers, 0) != 0;
#else
	atomic_thread_fence(memory_order_seq_cst);
	return atomic_load_explicit(&wq->sleepers, memory_order_relaxed) != 0;
#endif
}

void waitq_wake_all(struct waitq *wq)
{
	if (unlikely(waitq_slept_on(wq)))
		waitq_bump(wq);
}

void waitq_wake_one(struct waitq *wq)
{
	if (likely(!waitq_slept_on(wq)))
		return;
	atomic_fetch_add(&wq->seq, 1);
	futex_wake(&wq->seq, 1);
}

/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * Folio references, the folio lock and waiting for folio states. The
 * accounting is in account.c.
 *
 * A sleeper sets FOLIO_WAITERS, looks again, and sleeps on the queue that the
 * folio's address picks; whoever clears a bit that others may wait for wakes
 * that queue if FOLIO_WAITERS is set. The waker clears FOLIO_WAITERS, and
 * sleepers that find their state still unwanted set it again. Waking another
 * folio's sleepers on the same queue costs them a look.
 */
#include "folio/state.h"

#include "folio/lru.h"

#include <assert.h>

/*
 * Sleepers of all folios share these by the folio's address, as in Linux: a
 * queue in each descriptor would double it for what is rare. Zero is the
 * initial state of a waitq.
 */
#define FOLIO_WAITQ_BITS 8
static struct waitq folio_waitqs[1 << FOLIO_WAITQ_BITS];

static struct waitq *folio_waitq(const struct folio *f)
{
	uint64_t h = (uintptr_t)f / sizeof(*f) * 0x9e3779b97f4a7c15ull;

	return &folio_waitqs[h >> (64 - FOLIO_WAITQ_BITS)];
}

bool folio_try_get(struct folio *f)
{
	return count_inc_unless_zero(&f->refs);
}

void folio_put(struct folio *f, struct tr_cache *c)
{
	if (count_sub(&f->refs, 1) != 1)
		return;
	assert(!f->mapping);
	assert(!folio_test(f, FOLIO_LRU | FOLIO_DROP_QUEUED));
	assert(!f->edge && !f->blocks);
	arena_free(c->arena, f);
	waitq_wake_all(&c->memory);
}

bool folio_try_lock(struct folio *f)
{
	return !(state_or(&f->state, FOLIO_LOCKED) & FOLIO_LOCKED);
}

/*
 * Sleeps while any of the bits is set. The bits are tested after FOLIO_WAITERS
 * is set, so whoever clears them afterwards sees it.
 */
static void folio_sleep(struct folio *f, unsigned bits)
{
	struct waitq *wq = folio_waitq(f);
	unsigned seen = waitq_prepare(wq);

	if (state_or(&f->state, FOLIO_WAITERS) & bits)
		waitq_sleep(wq, seen, 0);
	else
		waitq_cancel(wq);
}

void folio_lock(struct folio *f)
{
	while (!folio_try_lock(f))
		folio_sleep(f, FOLIO_LOCKED);
}

void folio_clear_wake(struct folio *f, unsigned bits)
{
	struct waitq *wq = folio_waitq(f);
	unsigned was = state_and(&f->state, ~(bits | FOLIO_WAITERS));

	assert((was & bits) == bits);
	if (was & FOLIO_WAITERS)
		waitq_wake_all(wq);
}

void folio_unlock(struct folio *f)
{
	folio_clear_wake(f, FOLIO_LOCKED);
}

void folio_wait(struct folio *f, unsigned bits)
{
	while (folio_test(f, bits))
		folio_sleep(f, bits);
}

void folio_lock_idle(struct folio *f)
{
	for (;;) {
		folio_wait(f, FOLIO_WRITEBACK | FOLIO_FILLING);
		folio_lock(f);
		if (!folio_test(f, FOLIO_WRITEBACK | FOLIO_FILLING))
			return;
		folio_unlock(f);
	}
}

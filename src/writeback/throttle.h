/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * Holding writers back: dirty data stays below its limits, and a writer above
 * them sleeps as long as the device needs for as much as it is about to write.
 *
 * Waiters stand in two lines, cached and uncached. As device writes end, as many
 * are let go as fit below the limit, so each waits in proportion to its size
 * and they never wake all at once: first come first served, but for the
 * writers of one file, of whom the one at the lowest offset goes first.
 *
 * Incomplete edges do not count: flushers leave them alone. They have a limit
 * of their own, edge_max_pages and half of dirty_background at most. From a
 * quarter of it on, writers of parts of units that are far ahead of the lowest
 * edge of their file wait for their neighbours.
 */
#ifndef TR_WRITEBACK_THROTTLE_H
#define TR_WRITEBACK_THROTTLE_H

#include "folio/mapping.h"

int throttle_init(struct tr_cache *c) MUST_CHECK;
void throttle_fini(struct tr_cache *c);

/*
 * Called before a write of [off, off + len) takes its first folio lock. Starts
 * the flusher above dirty_background; sleeps above dirty_limit, or, uncached,
 * above dontcache_limit and for edges; paces large writes from a quarter of
 * their limit on. nowait: -EAGAIN instead of sleeping, and no pace.
 *
 * After a 0 the room it may need is kept for it until throttle_wrote(), with
 * the same len, so that many writers at once do not pass the limits.
 */
int throttle_write(struct mapping *m, int64_t off, size_t len, bool uncached,
		   bool nowait) MUST_CHECK;
void throttle_wrote(struct mapping *m, size_t len, bool uncached);

/* Something became clean: lets waiters go. Any context. */
void throttle_release(struct tr_cache *c);

/* An edge of m was completed: lets writers go that ran ahead of it. */
void throttle_edges_gone(struct mapping *m);

/* Pages that count for dirty_limit: dirty or under writeback, but for edges. */
long throttle_dirty_pages(const struct tr_cache *c);

/* Whether a writer sleeps: then flushers leave nothing alone. */
bool throttle_has_waiters(const struct tr_cache *c);

/* Whether uncached data is worth writing in short runs: a writer sleeps, or
 * half of what may be dirty is. */
bool throttle_presses(struct tr_cache *c);

/* Whether dirty data is above dirty_background. */
bool throttle_over_background(struct tr_cache *c);

/* Whether there are as many incomplete edges as there may be. */
bool throttle_over_edges(struct tr_cache *c);

#endif

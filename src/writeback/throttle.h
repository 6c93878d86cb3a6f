/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * Holding writers back: dirty data stays below its limits, and a writer above
 * them sleeps as long as the device needs for as much as it is about to write.
 *
 * Waiters stand in two lines, cached and uncached, first come first served. As
 * device writes end, as many are let go as fit below the limit, so each waits
 * in proportion to its size and they never wake all at once.
 *
 * Incomplete edges do not count: flushers leave them alone. They have a limit
 * of their own, edge_max_pages.
 */
#ifndef TR_WRITEBACK_THROTTLE_H
#define TR_WRITEBACK_THROTTLE_H

#include "folio/mapping.h"

int throttle_init(struct tr_cache *c) MUST_CHECK;
void throttle_fini(struct tr_cache *c);

/*
 * Called before a write of so many pages takes its first folio lock. Starts the
 * flusher above dirty_background; sleeps above dirty_limit, or, uncached, above
 * dontcache_limit. nowait: -EAGAIN instead of sleeping.
 */
int throttle_write(struct mapping *m, unsigned long pages, bool uncached,
		   bool nowait) MUST_CHECK;

/* Something became clean: lets waiters go. Any context. */
void throttle_release(struct tr_cache *c);

/* Whether a writer sleeps: then flushers leave nothing alone. */
bool throttle_has_waiters(const struct tr_cache *c);

/* Whether dirty data is above dirty_background. */
bool throttle_over_background(struct tr_cache *c);

/* Whether there are as many incomplete edges as there may be. */
bool throttle_over_edges(struct tr_cache *c);

#endif

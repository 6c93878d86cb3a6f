/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * Flushers: one thread per writeback domain that writes back what is dirty for
 * the reasons of enum wb_reason, ages edges, and drops what could not be
 * dropped at the end of writeback.
 *
 * It sleeps on wb.wake. Whoever wants something sets a bit of wb.state and
 * wakes it if the bit was clear; the flusher clears the bit first and looks at
 * what there is to do afterwards, so nothing asked for during a pass is lost.
 */
#ifndef TR_WRITEBACK_FLUSH_H
#define TR_WRITEBACK_FLUSH_H

#include "folio/wb.h"

int flusher_start(struct wb *wb) MUST_CHECK;
/* Ends the thread; what is dirty stays dirty. */
void flusher_stop(struct wb *wb);

/*
 * Ends the incomplete edges of a mapping, for its last close, and writes out
 * the file if it had any. Returns the first error of a fill; write errors are on
 * the mapping.
 */
int flush_edges_of(struct mapping *m);

#endif

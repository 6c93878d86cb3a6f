/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * One line on stderr, rewritten ten times a second, once the command has taken
 * two seconds and if stderr is a terminal; it is wiped at the end.
 */
#include "cmd/bench/bench.h"

#include <stdio.h>
#include <unistd.h>

#define PROGRESS_AFTER_NS 2000000000u
#define PROGRESS_EVERY_NS 100000000u

void progress_show(struct progress *p, uint64_t done)
{
	uint64_t now = now_ns();
	double seconds = (double)(now - p->started_ns) * 1e-9;
	double rate = seconds > 0 ? (double)done / MIB / seconds : 0;

	if (now - p->since_ns < PROGRESS_AFTER_NS ||
	    now - p->shown_ns < PROGRESS_EVERY_NS || !isatty(STDERR_FILENO))
		return;
	fprintf(stderr,
		"\r%s %s %u/%u: %.0f of %.0f MiB, %.0f MiB/s, %.0f s "
		"left\033[K",
		p->side, p->flags, p->round, p->rounds, (double)done / MIB,
		(double)p->total / MIB, rate,
		rate > 0 ? (double)(p->total - done) / MIB / rate : 0);
	p->shown_ns = now;
}

void progress_end(struct progress *p)
{
	if (p->shown_ns)
		fprintf(stderr, "\r\033[K");
	p->shown_ns = 0;
}

/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Statistics in the format and order that people know from Linux's bdi stats,
 * in kB, then the counters that Linux has not, by the names and units of
 * TR_STATISTICS. A side without statistics prints nothing.
 */
#include "cmd/bench/bench.h"

#include <stdio.h>

static void print_kb(const char *name, int64_t bytes)
{
	printf("%-20s%10jd kB\n", name, (intmax_t)(bytes / 1024));
}

void statistics_print(const struct side *side)
{
	struct side *s = (struct side *)side;
	struct tr_statistics t;
	int64_t limit;

	if (!side->ops->statistics(s, &t))
		return;
	limit = side->ops->parameter(s, "dirty_limit");
	printf("\n");
	print_kb("BdiWriteback:", t.writeback * 4096);
	print_kb("BdiReclaimable:", t.reclaimable * 4096);
	print_kb("BdiDontcacheDirty:", t.dontcache_dirty * 4096);
	print_kb("BdiDirtyThresh:", limit);
	print_kb("DirtyThresh:", limit);
	print_kb("BackgroundThresh:",
		 side->ops->parameter(s, "dirty_background"));
	print_kb("BdiDirtied:", t.dirtied * 4096);
	print_kb("BdiWritten:", t.written * 4096);
#define PRINT_ROW(name, unit, sentence)                                        \
	printf("%-20s%10jd %s\n", #name ":", (intmax_t)t.name, unit);
	TR_STATISTICS(PRINT_ROW)
#undef PRINT_ROW
}

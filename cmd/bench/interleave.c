/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Interleave: T writers take turns in one file, writer i records i, i + T,
 * ..., as clients do whose requests a server's threads serve. Records that do
 * not fill whole units share their first and last with a neighbour.
 */
#include "base/compiler.h"
#include "cmd/bench/bench.h"
#include "cmd/bench/tables.h"

static const struct option_row rows[] = {
	ROW_DIR,
	ROW_THREADS("writers (32)"),
	ROW_RECORD("bytes of a record (47008)"),
	ROW_SIZE("bytes of the file (1G)"),
	ROW_FLAGS("dontcache, cached or direct[,dsync|,sync]"),
	ROW_REWRITE,
	ROW_READAHEAD,
	ROWS_COMMON,
};

static const struct option_usage usage = {
	.command = "tailrace bench interleave",
	.synopsis = "--dir DIR [OPTION]...",
	.summary = "Writers take turns in one file, record by record.",
	.rows = rows,
	.nr_rows = ARRAY_SIZE(rows),
};

int bench_interleave(int argc, char **argv)
{
	struct bench_options opt = {
		.threads = 32,
		.record = 47008,
		.size = 1ull << 30,
		.flags = "dontcache",
		.runs = 1,
		.cache = BENCH_CACHE_DEFAULT,
		.against = -1,
	};
	struct load load = { .workload = "interleave",
			     .opt = &opt,
			     .interleaved = true,
			     .nr_files = 1 };
	int status = bench_parse(&usage, argc, argv, &opt);

	if (status >= 0)
		return status;
	bench_flags_parse(opt.flags, &load.flags);
	load.nr_threads = (unsigned)opt.threads;
	load.records = opt.size / opt.record;
	return bench_main(&load);
}

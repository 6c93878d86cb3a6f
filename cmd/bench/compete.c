/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Compete: an uncached writer and a cached one, each in a file of its own on
 * one device, until the first has written its file: does either take the
 * other's share, and what does a write cost each.
 */
#include "base/compiler.h"
#include "cmd/bench/bench.h"
#include "cmd/bench/tables.h"

static const struct option_row rows[] = {
	ROW_DIR,
	ROW_RECORD("bytes of a record (64K)"),
	ROW_SIZE("bytes of each file (1G)"),
	ROW_FLAGS("of the first writer (dontcache)"),
	ROWS_COMMON,
};

static const struct option_usage usage = {
	.command = "tailrace bench compete",
	.synopsis = "--dir DIR [OPTION]...",
	.summary = "An uncached and a cached writer, each with its own file.",
	.rows = rows,
	.nr_rows = ARRAY_SIZE(rows),
};

int bench_compete(int argc, char **argv)
{
	struct bench_options opt = {
		.record = 64 << 10,
		.size = 1ull << 30,
		.flags = "dontcache",
		.runs = 1,
		.cache = BENCH_CACHE_DEFAULT,
		.against = -1,
	};
	struct load load = { .workload = "compete",
			     .opt = &opt,
			     .compete = true,
			     .nr_files = 2,
			     .nr_threads = 2 };
	int status = bench_parse(&usage, argc, argv, &opt);

	if (status >= 0)
		return status;
	bench_flags_parse(opt.flags, &load.flags);
	load.records = opt.size / opt.record;
	return bench_main(&load);
}

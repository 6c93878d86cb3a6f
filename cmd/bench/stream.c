/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Stream: one writer, in order or not, and how long each of its writes took.
 * Multi: as many writers and files, or fewer writers than files, each turning
 * from file to file record by record.
 */
#include "base/compiler.h"
#include "cmd/bench/bench.h"
#include "cmd/bench/tables.h"

#define STREAM_DEFAULTS                                                        \
	.record = 1 << 20, .size = 1ull << 30, .flags = "dontcache",           \
	.runs = 1, .cache = BENCH_CACHE_DEFAULT, .against = -1

static const struct option_row stream_rows[] = {
	ROW_DIR,
	ROW_RECORD("bytes of a record (1M)"),
	ROW_SIZE("bytes of the file (1G)"),
	ROW_FLAGS("dontcache, cached or direct[,dsync|,sync]"),
	ROW_RANDOM,
	ROW_REWRITE,
	ROWS_COMMON,
};

static const struct option_usage stream_usage = {
	.command = "tailrace bench stream",
	.synopsis = "--dir DIR [OPTION]...",
	.summary = "One writer, in order or at random.",
	.rows = stream_rows,
	.nr_rows = ARRAY_SIZE(stream_rows),
};

int bench_stream(int argc, char **argv)
{
	struct bench_options opt = { STREAM_DEFAULTS };
	struct load load = { .workload = "stream",
			     .opt = &opt,
			     .nr_files = 1,
			     .nr_threads = 1 };
	int status = bench_parse(&stream_usage, argc, argv, &opt);

	if (status >= 0)
		return status;
	bench_flags_parse(opt.flags, &load.flags);
	load.records = opt.size / opt.record;
	return bench_main(&load);
}

static const struct option_row multi_rows[] = {
	ROW_DIR,
	ROW_FILES,
	ROW_THREADS("writers (one for each file)"),
	ROW_RECORD("bytes of a record (1M)"),
	ROW_SIZE("bytes of all files together (1G)"),
	ROW_FLAGS("dontcache, cached or direct[,dsync|,sync]"),
	ROW_RANDOM,
	ROW_REWRITE,
	ROWS_COMMON,
};

static const struct option_usage multi_usage = {
	.command = "tailrace bench multi",
	.synopsis = "--dir DIR [OPTION]...",
	.summary = "A writer for each of several files.",
	.rows = multi_rows,
	.nr_rows = ARRAY_SIZE(multi_rows),
};

int bench_multi(int argc, char **argv)
{
	struct bench_options opt = { STREAM_DEFAULTS, .files = 4 };
	struct load load = { .workload = "multi", .opt = &opt };
	int status = bench_parse(&multi_usage, argc, argv, &opt);

	if (status >= 0)
		return status;
	bench_flags_parse(opt.flags, &load.flags);
	load.nr_files = (unsigned)opt.files;
	load.nr_threads = (unsigned)min_of(
		opt.threads ? opt.threads : opt.files, opt.files);
	load.records = max_of(opt.size / opt.files / opt.record, (uint64_t)1);
	return bench_main(&load);
}

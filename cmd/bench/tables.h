/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Rows of option tables that several workloads share: a workload's table
 * lists the ones it takes, so each option is described once.
 */
#ifndef TAILRACE_TABLES_H
#define TAILRACE_TABLES_H

#include "cmd/bench/bench.h"

#define BENCH_FIELD(field) offsetof(struct bench_options, field)

/* The names of enum bench_choice, enum bench_against and enum tr_engine, in
 * command.c. */
extern const char *const bench_side_names[];
extern const char *const bench_against_names[];
extern const char *const bench_engine_names[];

/* clang-format off */
#define ROW_DIR { "dir", 'd', OPTION_STRING, BENCH_FIELD(dir), "DIR", \
	"directory on the device to measure; needed", NULL, 0, 0 }
#define ROW_THREADS(text) { "threads", 't', OPTION_COUNT, \
	BENCH_FIELD(threads), "N", text, NULL, 1, BENCH_THREADS_MAX }
#define ROW_FILES { "files", 'n', OPTION_COUNT, BENCH_FIELD(files), "N", \
	"files (4)", NULL, 1, BENCH_FILES_MAX }
#define ROW_RECORD(text) { "record", 'r', OPTION_SIZE, BENCH_FIELD(record), \
	"SIZE", text, NULL, 1, 64 << 20 }
#define ROW_SIZE(text) { "size", 's', OPTION_SIZE, BENCH_FIELD(size), \
	"SIZE", text, NULL, 1, 0 }
#define ROW_FLAGS(text) { "flags", 'f', OPTION_STRING, BENCH_FIELD(flags), \
	"FLAGS", text, NULL, 0, 0 }
#define ROW_RANDOM { "random", 0, OPTION_FLAG, BENCH_FIELD(random), NULL, \
	"records in random order", NULL, 0, 0 }
#define ROW_REWRITE { "rewrite", 'w', OPTION_FLAG, BENCH_FIELD(rewrite), \
	NULL, "over data that is there", NULL, 0, 0 }
#define ROW_READAHEAD { "readahead-first", 0, OPTION_FLAG, \
	BENCH_FIELD(readahead_first), NULL, \
	"over a file just read through the cache", NULL, 0, 0 }
#define ROW_BLOCK { "block", 'b', OPTION_SIZE, BENCH_FIELD(block), "SIZE", \
	"do not run unless DIR has blocks of SIZE", NULL, 512, 65536 }
#define ROW_SIDE { "side", 0, OPTION_CHOICE, BENCH_FIELD(side), "SIDE", \
	"tailrace or kernel: whom to measure", bench_side_names, 0, 0 }
#define ROW_AGAINST { "against", 'a', OPTION_CHOICE, BENCH_FIELD(against), \
	"WHAT", "kernel or cached (own writes): run it in turn", \
	bench_against_names, 0, 0 }
#define ROW_RUNS { "runs", 'N', OPTION_COUNT, BENCH_FIELD(runs), "N", \
	"runs of each side; the first is dropped (1)", NULL, 1, 1000 }
#define ROW_CACHE(text) { "cache", 'c', OPTION_SIZE, BENCH_FIELD(cache), \
	"SIZE", text, NULL, 4 << 20, 0 }
#define ROW_ENGINE { "engine", 'e', OPTION_CHOICE, BENCH_FIELD(engine), \
	"NAME", "auto, uring or threads (auto)", bench_engine_names, 0, 0 }
#define ROW_SET { "set", 0, OPTION_LIST, BENCH_FIELD(set), "NAME=VALUE", \
	"set a parameter of the cache", NULL, 0, 0 }
#define ROW_DROP { "drop-caches", 0, OPTION_FLAG, BENCH_FIELD(drop_caches), \
	NULL, "drop all of the host's cache before runs; root", NULL, 0, 0 }
#define ROW_NO_CEILING { "no-ceiling", 0, OPTION_FLAG, \
	BENCH_FIELD(no_ceiling), NULL, "do not measure the ceiling", \
	NULL, 0, 0 }
#define ROW_STATS { "stats", 0, OPTION_FLAG, BENCH_FIELD(stats), NULL, \
	"statistics of the cache at the end", NULL, 0, 0 }
#define ROW_JSON { "json", 'j', OPTION_FLAG, BENCH_FIELD(json), NULL, \
	"one JSON document instead of tables", NULL, 0, 0 }

/* What every writing workload takes last. */
#define ROWS_COMMON ROW_BLOCK, ROW_SIDE, ROW_AGAINST, ROW_RUNS, \
	ROW_CACHE("cache of Tailrace's side (1G)"), ROW_ENGINE, ROW_SET, \
	ROW_DROP, ROW_NO_CEILING, ROW_STATS, ROW_JSON
/* clang-format on */

#define BENCH_CACHE_DEFAULT (1ull << 30)

#endif

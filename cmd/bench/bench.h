/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * The frame that all writing workloads share.
 *
 * A workload fills a load (which files, which writers, which records) and
 * calls bench_main(). That runs every contender (a side with flags) in turn,
 * as many rounds as asked for, each run on files just made, measures, verifies
 * every byte from the device, and reports. All of it is driven by one thread;
 * writers are threads of one run.
 */
#ifndef TAILRACE_BENCH_H
#define TAILRACE_BENCH_H

#include <stdbool.h>
#include <stdint.h>
#include <time.h>

#include "cmd/bench/device.h"
#include "cmd/bench/hist.h"
#include "cmd/bench/pattern.h"
#include "cmd/bench/side.h"
#include "cmd/options.h"

#define MIB 1048576.0

struct bench_options {
	const char *dir;
	const char *flags;
	uint64_t threads;
	uint64_t files;
	uint64_t record;
	uint64_t size;
	uint64_t block;
	uint64_t runs;
	uint64_t cache;
	bool random;
	bool rewrite;
	bool readahead_first;
	bool drop_caches;
	bool no_ceiling;
	bool json;
	bool stats;
	int side; /* enum bench_choice */
	int against; /* enum bench_against; -1: nothing */
	int engine; /* enum tr_engine */
	struct option_list set;
};

/* --side; also the index in struct bench's sides. */
enum bench_choice { SIDE_TAILRACE, SIDE_KERNEL, SIDES };

/* --against: the host kernel, or the same side's cached writes. */
enum bench_against { AGAINST_KERNEL, AGAINST_CACHED };

/* Files at once; 32 is the widest workload of the published figures. */
#define BENCH_FILES_MAX 256
#define BENCH_THREADS_MAX 1024

struct load {
	const char *workload;
	const struct bench_options *opt;
	struct bench_flags flags;
	unsigned nr_files;
	unsigned nr_threads;
	uint64_t records; /* of each file */
	/* Thread i of T writes records i, i + T, ... of the one file; otherwise
	 * all records of files i, i + T, ..., turning from file to file. */
	bool interleaved;
	/* Writer 1 is cached whatever flags say, a row for each writer, and the
	 * first to finish ends the run. */
	bool compete;
};

/* A side with flags; the reference is the kernel's plain buffered write. */
struct contender {
	unsigned nr; /* in the order of reports */
	enum bench_choice side;
	struct bench_flags flags;
	bool reference;
};
#define CONTENDERS_MAX 3

struct bench_row {
	struct contender contender;
	const char *writer; /* compete: which of the two; else NULL */
	unsigned round;
	uint64_t writes, bytes;
	uint64_t
		run_bytes; /* of all writers: what the device counters are of */
	double seconds, cpu_seconds;
	uint64_t p50_ns, p99_ns, p999_ns, max_ns;
	struct device_counters device;
	int64_t peak_dirty, host_cache_growth, rss_growth;
	int64_t cached_pages_after, dontcache_dirty_after, edges_after;
	int64_t kicks, edges_aged, lazy_fills;
	int64_t extents;
	bool verified;
};

struct bench {
	const struct load *load;
	struct device device;
	struct pattern pattern;
	struct side *sides[SIDES]; /* NULL: not taking part */
	int signal_fd;
	bool interrupted;
	uint64_t started_ns;
	unsigned nr_runs; /* of all contenders, without the ceiling's */
	unsigned serial; /* of runs, from 1: their seeds differ by it */
	struct bench_row *rows;
	unsigned nr_rows;
	double *ceilings; /* MiB/s by round; 0: not measured */
	const char *ceiling_what;
};

static inline uint64_t now_ns(void)
{
	struct timespec t;

	clock_gettime(CLOCK_MONOTONIC, &t);
	return (uint64_t)t.tv_sec * 1000000000u + (uint64_t)t.tv_nsec;
}

/* Runs and reports; the program's exit status. */
int bench_main(const struct load *load);

/* One run of one contender; adds its rows if keep is set. 0, -EINTR after
 * SIGINT, -EUCLEAN when data differs; what failed is on stderr. */
int run_contender(struct bench *b, const struct contender *c, unsigned round,
		  bool keep);

/* Blocks SIGINT and SIGTERM and makes the descriptor that tells of them, before
 * any thread is made. 0 or -errno. */
int bench_signals_init(struct bench *b);

/* True once SIGINT or SIGTERM has come. */
bool bench_interrupted(struct bench *b);

/* DIR/tailrace-bench.N into out. */
#define BENCH_PATH_MAX 4096
void bench_path(const struct bench *b, unsigned file, char *out);

/* Bytes of each file. */
static inline uint64_t load_file_bytes(const struct load *l)
{
	return l->records * l->opt->record;
}

/*
 * Writes the file's first size bytes, rounded up to 4 KiB, with O_DIRECT, in
 * order, 1 MiB at a time, eight at once, and syncs; then cuts it to size.
 * seconds is the time without the cut. Makes the file if create is set.
 */
int sequential_write(const char *path, uint64_t size, bool create,
		     double *seconds, const char **what);

/* Reads the file with O_DIRECT and compares. -EUCLEAN: differs at *wrong. */
int verify_file(struct bench *b, const char *path, uint64_t seed,
		uint64_t bytes, uint64_t *wrong);

/* ---- progress, on a terminal and after two seconds ---- */

struct progress {
	const char *side, *flags;
	unsigned round, rounds;
	uint64_t since_ns; /* the command's start */
	uint64_t total, started_ns, shown_ns;
};
void progress_show(struct progress *p, uint64_t done);
void progress_end(struct progress *p);

/* ---- report ---- */

/* Sorts the rows. */
void report_table(struct bench *b);
void report_json(const struct bench *b);

/* Statistics as `tailrace stat` prints them. */
void statistics_print(const struct side *side);

/* ---- workloads: see the table in command.c ---- */

int bench_interleave(int argc, char **argv);
int bench_stream(int argc, char **argv);
int bench_multi(int argc, char **argv);
int bench_compete(int argc, char **argv);
int bench_nfs(int argc, char **argv);
int bench_scale(int argc, char **argv);

/* Parses; the exit status if the workload must not run, else -1. */
int bench_parse(const struct option_usage *usage, int argc, char **argv,
		struct bench_options *opt);

#endif

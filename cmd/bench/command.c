/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * `tailrace bench`: finds the workload's row, and what workloads check of
 * their options alike.
 */
#include "cmd/bench/bench.h"

#include <stdio.h>
#include <string.h>

#include "base/compiler.h"
#include "cmd/bench/tables.h"
#include "cmd/commands.h"

const char *const bench_side_names[] = { "tailrace", "kernel", NULL };
const char *const bench_against_names[] = { "kernel", "cached", NULL };
const char *const bench_engine_names[] = { "auto", "uring", "threads", NULL };

struct workload {
	const char *name;
	const char *summary;
	int (*run)(int argc, char **argv);
};

/* One line a workload, so that branches merge. */
static const struct workload workloads[] = {
	{ "interleave", "writers take turns in one file", bench_interleave },
	{ "stream", "one writer; throughput and latency", bench_stream },
	{ "multi", "a writer for each of several files", bench_multi },
	{ "compete", "an uncached and a cached writer", bench_compete },
	{ "nfs", "load on an NFS server by its address", bench_nfs },
	{ "scale", "cost of an operation as the work grows", bench_scale },
};

int bench_parse(const struct option_usage *usage, int argc, char **argv,
		struct bench_options *opt)
{
	struct bench_flags flags;

	switch (options_parse(usage, argc, argv, opt)) {
	case OPTIONS_HELP:
		return EXIT_DONE;
	case OPTIONS_WRONG:
		return EXIT_USAGE;
	case OPTIONS_DONE:
		break;
	}
	if (opt->flags && bench_flags_parse(opt->flags, &flags)) {
		fprintf(stderr,
			"%s: --flags: '%s' is not dontcache, cached or direct, "
			"then ,dsync or ,sync or nothing\n",
			usage->command, opt->flags);
		return EXIT_USAGE;
	}
	if (opt->flags && flags.mode == MODE_DIRECT && opt->record % 512) {
		fprintf(stderr,
			"%s: --record: direct writes are multiples of the "
			"device's sector\n",
			usage->command);
		return EXIT_USAGE;
	}
	if (opt->size && opt->record && opt->size < opt->record) {
		fprintf(stderr, "%s: --size: less than one record\n",
			usage->command);
		return EXIT_USAGE;
	}
	for (int i = 0; i < usage->nr_rows; i++) {
		if (strcmp(usage->rows[i].name, "dir") || opt->dir)
			continue;
		fprintf(stderr,
			"%s: --dir is missing: a directory on the "
			"device to measure\n",
			usage->command);
		return EXIT_USAGE;
	}
	return -1;
}

static void print_workloads(FILE *f, const char *separator, bool summaries)
{
	for (size_t i = 0; i < ARRAY_SIZE(workloads); i++) {
		if (summaries)
			fprintf(f, "  %-12s %s\n", workloads[i].name,
				workloads[i].summary);
		else
			fprintf(f, "%s%s", i ? separator : " ",
				workloads[i].name);
	}
}

int command_bench(int argc, char **argv)
{
	if (argc > 1 &&
	    (!strcmp(argv[1], "--help") || !strcmp(argv[1], "-h"))) {
		printf("usage: tailrace bench WORKLOAD [OPTION]...\n\n"
		       "Measure against this machine's kernel, on one device, "
		       "side by side.\n\nworkloads:\n");
		print_workloads(stdout, "", true);
		printf("\n'tailrace bench WORKLOAD --help' lists its "
		       "options.\n");
		return EXIT_DONE;
	}
	for (size_t i = 0; argc > 1 && i < ARRAY_SIZE(workloads); i++) {
		if (!strcmp(workloads[i].name, argv[1]))
			return workloads[i].run(argc - 1, argv + 1);
	}
	if (argc > 1)
		fprintf(stderr, "tailrace bench: unknown workload '%s'; one of",
			argv[1]);
	else
		fprintf(stderr,
			"tailrace bench: a workload is missing: one of");
	print_workloads(stderr, ", ", false);
	fputc('\n', stderr);
	return EXIT_USAGE;
}

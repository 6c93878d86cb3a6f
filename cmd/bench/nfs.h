/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Bench nfs: what was asked for, and what each run came to. The server may be
 * any; what is known of it beyond its replies comes from its process (--pid)
 * and from the folder that it exports (--dir), where those are on this host.
 */
#ifndef TAILRACE_BENCH_NFS_H
#define TAILRACE_BENCH_NFS_H

#include "cmd/bench/bench.h"
#include "cmd/bench/nfs_load.h"

#define NFS_CONNECTIONS_MAX 1024

struct nfs_options {
	const char *server, *export, *dir, *name;
	uint64_t port, mount_port;
	uint64_t connections, depth, threads;
	uint64_t record, size, runs, passes, commit_every, pid;
	int stable; /* enum nfs_stable */
	int calls; /* enum nfs_calls */
	bool random, rewrite, read, keep, json;
};

extern const char *const nfs_stable_names[];
extern const char *const nfs_calls_names[];

struct nfs_row {
	unsigned run;
	struct nfs_result result;
	double seconds; /* to the end of the last COMMIT */
	double commit_seconds; /* of it */
	double cpu_seconds; /* the server's; with --pid */
	double client_cpu_seconds; /* of this process */
	int64_t rss, rss_growth; /* the server's at its peak; with --pid */
	struct device_counters device; /* with --dir */
	int64_t host_cache_growth; /* with --dir */
	bool verified;
};

struct nfs_bench {
	const struct nfs_options *opt;
	struct bench frame; /* its signals, device and pattern */
	struct nfs_handle root;
	struct rpc_context **rpcs;
	uint64_t records;
	unsigned serial; /* of runs: their data differ by it */
	struct nfs_row *rows;
	unsigned nr_rows;
};

void nfs_report_table(const struct nfs_bench *b);
void nfs_report_json(const struct nfs_bench *b);

#endif

/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * The load: N connections, each with a number of records on their way, over
 * the records of one file. Connection i of N has records i, i + N, ...
 * A few threads serve all connections, so that clients cost little of a
 * machine that they share with the server.
 */
#ifndef TAILRACE_NFS_LOAD_H
#define TAILRACE_NFS_LOAD_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

#include "cmd/bench/hist.h"
#include "cmd/bench/nfs_client.h"
#include "cmd/bench/pattern.h"

/* RFC 1813, stable_how. */
enum nfs_stable { NFS_UNSTABLE, NFS_DATA_SYNC, NFS_FILE_SYNC, NFS_STABLES };

/* How a record goes out. */
enum nfs_calls { CALLS_ONE, CALLS_ROW, CALLS_PAIR };

struct nfs_load {
	struct rpc_context **rpcs;
	unsigned nr_connections, depth, nr_threads;
	struct nfs_handle file;
	const struct pattern *pattern;
	uint64_t seed;
	uint64_t records;
	uint64_t passes; /* over them all */
	enum nfs_stable stable;
	enum nfs_calls calls;
	uint64_t commit_every; /* records of a connection; 0: never */
	bool read, random;
	/* What is read is compared in samples: the client shares the machine
	 * with the server. */
	bool sampled;
};

struct nfs_result {
	uint64_t calls, bytes, commits;
	struct hist latency, commit_latency;
	uint64_t committed[NFS_STABLES]; /* what WRITE replies said */
	char verifier[NFS_VERIFIER_LEN];
	bool verifier_changed;
};

struct nfs_progress {
	_Atomic uint64_t bytes;
	atomic_bool stop;
	int done_fd; /* an eventfd, written when the last thread ends */
};

struct nfs_run;

/* The file's records by the load's threads. Fills nothing yet. */
int nfs_load_start(const struct nfs_load *load, struct nfs_progress *progress,
		   struct nfs_run **out);

/* Waits for its end and frees it. -EUCLEAN: what was read is wrong; another
 * -errno of a call; -EINTR after a stop. After an error the connections are
 * closed and good for nothing but nfs_client_disconnect(). */
int nfs_load_finish(struct nfs_run *run, struct nfs_result *out);

#endif

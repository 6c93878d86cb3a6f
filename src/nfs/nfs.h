/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * The NFS programs on the file layer: what a server gives to rpc/ at start.
 *
 *	nfs_create(fs, &nfs);
 *	options.programs = nfs_programs(nfs, &options.nr_programs);
 *
 * NFSv3 and MOUNT v3 are served on every port alike. Programs that are not in
 * the table (NLM, NFS_ACL) are answered PROG_UNAVAIL at once by rpc/: clients
 * do without access lists, and a lock fails at once with ENOLCK.
 */
#ifndef TR_NFS_NFS_H
#define TR_NFS_NFS_H

#include "fs/server.h"
#include "nfs/buffers.h"
#include "rpc/call.h"

#define NFS_PROGRAM 100003u
#define MOUNT_PROGRAM 100005u

/* File systems with a limit of their own; further ones share the last. */
#define NFS_GAUGES_MAX 64

struct nfs {
	struct fs_server *fs; /* (C) */
	struct buffers buffers;
	/* One for each file system, so that a hung one leaves workers for the
	 * others. Rows are only added, and published by nr_gauges. */
	struct nfs_gauge {
		const struct fs_volume *volume;
		struct rpc_gauge *gauge;
	} gauges[NFS_GAUGES_MAX];
	atomic_int nr_gauges; /* (A) */
	struct mutex lock; /* LOCK_LEAF: who adds */
	unsigned nr_workers; /* (C) */
	struct rpc_program programs[2]; /* (C) */
};

/* 0 or -ENOMEM. fs stays the caller's. */
int nfs_create(struct fs_server *fs, unsigned nr_workers,
	       struct nfs **out) MUST_CHECK;
/* After the RPC server was destroyed. */
void nfs_destroy(struct nfs *nfs);

const struct rpc_program *nfs_programs(const struct nfs *nfs, unsigned *nr);

/* The tables of procedures. */
extern const struct rpc_proc nfs3_procs[];
extern const unsigned nfs3_nr_procs;
extern const struct rpc_proc mount3_procs[];
extern const unsigned mount3_nr_procs;

/*
 * The call is about to block on the file system of a handle (any bytes). False:
 * too many do already; return RPC_AGAIN, before anything was written.
 */
bool nfs_try_block(struct rpc_call *call,
		   const struct xdr_opaque *fh) MUST_CHECK;

/* Who calls, as the file layer wants it; NONE is anonymous. */
void nfs_cred(const struct rpc_call *call, struct fs_cred *out);

static inline struct nfs *nfs_of(const struct rpc_call *call)
{
	return call->program->arg;
}

#endif

/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * Putting the programs together. Happy path: two rows, NFS and MOUNT, that
 * point to the tables of their procedures.
 */
#include "nfs/nfs.h"

#include "base/mem.h"

#include <errno.h>
#include <string.h>

/* The id of who gave no credential: exports(5)'s default anonymous one. */
#define NFS_NOBODY 65534u

int nfs_create(struct fs_server *fs, unsigned nr_workers, struct nfs **out)
{
	struct nfs *nfs = mem_zalloc(sizeof(*nfs));

	if (!nfs)
		return -ENOMEM;
	nfs->gauge = rpc_gauge_create(nr_workers);
	if (!nfs->gauge) {
		mem_free(nfs);
		return -ENOMEM;
	}
	nfs->fs = fs;
	buffers_init(&nfs->buffers);
	nfs->programs[0] = (struct rpc_program){ .prog = NFS_PROGRAM,
						 .vers = 3,
						 .procs = nfs3_procs,
						 .nr_procs = nfs3_nr_procs,
						 .arg = nfs };
	nfs->programs[1] = (struct rpc_program){ .prog = MOUNT_PROGRAM,
						 .vers = 3,
						 .procs = mount3_procs,
						 .nr_procs = mount3_nr_procs,
						 .arg = nfs };
	*out = nfs;
	return 0;
}

void nfs_destroy(struct nfs *nfs)
{
	rpc_gauge_destroy(nfs->gauge);
	buffers_fini(&nfs->buffers);
	mem_free(nfs);
}

const struct rpc_program *nfs_programs(const struct nfs *nfs, unsigned *nr)
{
	*nr = ARRAY_SIZE(nfs->programs);
	return nfs->programs;
}

void nfs_cred(const struct rpc_call *call, struct fs_cred *out)
{
	const struct rpc_cred *c = &call->head.cred;

	_Static_assert(RPC_GIDS_MAX <= FS_GROUPS_MAX, "groups fit");
	*out = (struct fs_cred){ .uid = NFS_NOBODY, .gid = NFS_NOBODY };
	if (c->flavor != RPC_AUTH_SYS)
		return;
	out->uid = c->uid;
	out->gid = c->gid;
	out->nr_groups = c->nr_gids;
	memcpy(out->groups, c->gids, c->nr_gids * sizeof(c->gids[0]));
}

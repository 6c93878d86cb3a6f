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
	nfs->fs = fs;
	nfs->nr_workers = nr_workers;
	mutex_init(&nfs->lock, LOCK_LEAF);
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
	int i;

	for (i = 0; i < atomic_load(&nfs->nr_gauges); i++)
		rpc_gauge_destroy(nfs->gauges[i].gauge);
	mutex_fini(&nfs->lock);
	buffers_fini(&nfs->buffers);
	mem_free(nfs);
}

const struct rpc_program *nfs_programs(const struct nfs *nfs, unsigned *nr)
{
	*nr = ARRAY_SIZE(nfs->programs);
	return nfs->programs;
}

static struct rpc_gauge *find_gauge(struct nfs *nfs, const struct fs_volume *v)
{
	int nr = atomic_load(&nfs->nr_gauges), i;

	for (i = 0; i < nr; i++)
		if (nfs->gauges[i].volume == v || i + 1 == NFS_GAUGES_MAX)
			return nfs->gauges[i].gauge;
	return NULL;
}

static struct rpc_gauge *add_gauge(struct nfs *nfs, const struct fs_volume *v)
{
	struct rpc_gauge *g = rpc_gauge_create(nfs->nr_workers), *other;
	int nr;

	if (!g)
		return NULL;
	mutex_lock(&nfs->lock);
	other = find_gauge(nfs, v);
	nr = atomic_load(&nfs->nr_gauges);
	if (!other) {
		nfs->gauges[nr] = (struct nfs_gauge){ v, g };
		atomic_store(&nfs->nr_gauges, nr + 1);
	}
	mutex_unlock(&nfs->lock);
	if (!other)
		return g;
	rpc_gauge_destroy(g);
	return other;
}

bool nfs_try_block(struct rpc_call *call, const struct xdr_opaque *fh)
{
	struct nfs *nfs = nfs_of(call);
	struct rpc_gauge *g = NULL;
	struct fs_export *x = NULL;
	struct fs_handle h;

	if (!handle_decode(&nfs->fs->options.key, fh->data, fh->len, &h))
		x = fs_export_find(nfs->fs, h.export_id);
	if (x)
		g = find_gauge(nfs, x->volume);
	if (x && !g)
		g = add_gauge(nfs, x->volume);
	if (g)
		return rpc_try_block(call, g);
	rpc_about_to_block(call);
	return true;
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

/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * MOUNT version 3 (RFC 1813, appendix I).
 *
 * Happy path of MNT: the path names an export or a directory below one, the
 * client may use it, and is told the directory's handle. No list of mounts is
 * kept: it would be a guess, as clients that die do not unmount.
 *
 * Failure modes: the status codes of the protocol, which have NFS's numbers.
 */
#include "nfs/mount3_xdr.h"
#include "nfs/nfs.h"
#include "nfs/status.h"

#include "fs/exports.h"
#include "fs/name.h"

#include <errno.h>
#include <string.h>

static enum rpc_status mount3_null(struct rpc_call *call, void *args)
{
	return RPC_SUCCESS;
}

static int find(struct rpc_call *call, const char *path, struct fs_handle *out)
{
	struct fs_server *fs = nfs_of(call)->fs;
	struct fs_request r = { .xid = call->head.xid };
	struct fs_export *x;
	struct fs_cred cred;
	struct fs_file *f;
	const char *rest;
	int ret;

	x = fs_export_by_path(fs, path, &rest);
	if (!x)
		return -ENOENT;
	nfs_cred(call, &cred);
	ret = fs_request_init(
		&r, fs, x, (const struct sockaddr *)rpc_call_peer(call), &cred);
	if (!ret)
		ret = name_walk(&r, rest, &f);
	if (ret)
		return ret;
	*out = f->handle;
	out->export_id = x->id;
	file_put(f);
	return 0;
}

/* mountstat3 has fewer codes than nfsstat3. */
static uint32_t mount_status(int error)
{
	enum nfs3_status s = nfs3_status(error);

	switch (s) {
	case NFS3_OK:
	case NFS3ERR_PERM:
	case NFS3ERR_NOENT:
	case NFS3ERR_IO:
	case NFS3ERR_ACCES:
	case NFS3ERR_NOTDIR:
	case NFS3ERR_INVAL:
	case NFS3ERR_NAMETOOLONG:
	case NFS3ERR_NOTSUPP:
		return s;
	case NFS3ERR_STALE:
		return NFS3ERR_NOENT;
	default:
		return NFS3ERR_SERVERFAULT;
	}
}

static enum rpc_status mount3_mnt(struct rpc_call *call, void *args)
{
	const struct mount3_path_args *a = args;
	char path[MOUNT3_PATH_MAX + 1];
	uint8_t wire[HANDLE_WIRE_MAX];
	struct fs_handle h;
	size_t len;
	int ret;

	memcpy(path, a->path.data, a->path.len);
	path[a->path.len] = 0;
	rpc_about_to_block(call);
	ret = strlen(path) == a->path.len ? find(call, path, &h) : -EINVAL;
	xdr_out_u32(&call->out, mount_status(ret));
	if (ret)
		return RPC_SUCCESS;
	len = handle_encode(&nfs_of(call)->fs->options.key, &h, wire);
	xdr_out_opaque(&call->out, wire, (uint32_t)len);
	xdr_out_u32(&call->out, 1);
	xdr_out_u32(&call->out, RPC_AUTH_SYS);
	return RPC_SUCCESS;
}

/* DUMP: nobody, see above. */
static enum rpc_status mount3_dump(struct rpc_call *call, void *args)
{
	xdr_out_bool(&call->out, false);
	return RPC_SUCCESS;
}

static enum rpc_status mount3_done(struct rpc_call *call, void *args)
{
	return RPC_SUCCESS;
}

static size_t entry_size(const struct export_entry *e)
{
	size_t len = 8 + xdr_size_opaque_len((uint32_t)strlen(e->path));
	int i;

	for (i = 0; i < e->nr_clients; i++)
		len += 4 + xdr_size_opaque_len(
				   (uint32_t)strlen(e->clients[i].name));
	return len;
}

static void put_string(struct xdr_out *out, const char *s)
{
	xdr_out_opaque(out, s, (uint32_t)strlen(s));
}

static void put_entry(struct xdr_out *out, const struct export_entry *e)
{
	int i;

	xdr_out_bool(out, true);
	put_string(out, e->path);
	for (i = 0; i < e->nr_clients; i++) {
		xdr_out_bool(out, true);
		put_string(out, e->clients[i].name);
	}
	xdr_out_bool(out, false);
}

static enum rpc_status mount3_export(struct rpc_call *call, void *args)
{
	struct fs_server *fs = nfs_of(call)->fs;
	int nr = atomic_load(&fs->nr_exports), i;
	const struct export_entry *e;
	size_t len = 4;

	rcu_read_lock();
	for (i = 0; i < nr; i++) {
		e = rcu_dereference(fs->exports[i]->entry);
		len += e ? entry_size(e) : 0;
	}
	/* Entries that a reload adds meanwhile do not fit and are not shown. */
	if (rpc_reply_reserve(call, len)) {
		rcu_read_unlock();
		return RPC_SYSTEM_ERR;
	}
	for (i = 0; i < nr; i++) {
		e = rcu_dereference(fs->exports[i]->entry);
		if (e && xdr_out_room(&call->out) >= entry_size(e) + 4)
			put_entry(&call->out, e);
	}
	rcu_read_unlock();
	xdr_out_bool(&call->out, false);
	return RPC_SUCCESS;
}

#define PATH_ARGS                                                              \
	.decode = xdr_decode_mount3_path_args,                                 \
	.args_size = sizeof(struct mount3_path_args)

const struct rpc_proc mount3_procs[] = {
	{ .name = "NULL", .run = mount3_null, .flags = RPC_ANYBODY },
	{ .name = "MNT", .run = mount3_mnt, .flags = RPC_ANYBODY, PATH_ARGS },
	{ .name = "DUMP", .run = mount3_dump, .flags = RPC_ANYBODY },
	{ .name = "UMNT", .run = mount3_done, .flags = RPC_ANYBODY, PATH_ARGS },
	{ .name = "UMNTALL", .run = mount3_done, .flags = RPC_ANYBODY },
	{ .name = "EXPORT", .run = mount3_export, .flags = RPC_ANYBODY },
};
const unsigned mount3_nr_procs = ARRAY_SIZE(mount3_procs);

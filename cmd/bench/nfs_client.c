/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Each call sends, then serves the connection until its callback has run. The
 * callback keeps what it needs of the reply, which libnfs frees after it.
 */
#include "cmd/bench/nfs_client.h"

#include <errno.h>
#include <poll.h>
#include <stdbool.h>
#include <string.h>

#include <nfsc/libnfs-zdr.h>
#include <nfsc/libnfs.h>
#include <nfsc/libnfs-raw.h>
#include <nfsc/libnfs-raw-mount.h>
#include <nfsc/libnfs-raw-nfs.h>

/* Longer than a server takes to write back what it holds. */
#define REPLY_TIMEOUT_MS 60000

struct call {
	bool done;
	int err;
	struct nfs_handle *handle;
	char *verifier;
};

static int call_wait(struct rpc_context *rpc, struct call *call)
{
	while (!call->done) {
		struct pollfd fd = { .fd = rpc_get_fd(rpc),
				     .events = (short)rpc_which_events(rpc) };
		int n = poll(&fd, 1, REPLY_TIMEOUT_MS);

		if (n < 0 && errno != EINTR)
			return -errno;
		if (!n)
			return -ETIMEDOUT;
		if (n > 0 && rpc_service(rpc, fd.revents) < 0)
			return -EIO;
	}
	return call->err;
}

/* True if the reply can be looked at. */
static bool call_replied(struct call *call, int status)
{
	call->done = true;
	call->err = status == RPC_STATUS_SUCCESS ? 0 : -EIO;
	return !call->err;
}

static void keep_handle(struct call *call, u_int len, const char *bytes)
{
	if (len > NFS_HANDLE_MAX) {
		call->err = -EBADMSG;
		return;
	}
	call->handle->len = len;
	memcpy(call->handle->bytes, bytes, len);
}

static nfs_fh3 wire_handle(const struct nfs_handle *h)
{
	return (nfs_fh3){ .data = { .data_len = h->len,
				    .data_val = (char *)h->bytes } };
}

static void connected(struct rpc_context *rpc, int status, void *data,
		      void *arg)
{
	call_replied(arg, status);
}

int nfs_client_connect(const char *server, uint16_t port,
		       struct rpc_context **out)
{
	struct rpc_context *rpc = rpc_init_context();
	struct call call = { 0 };
	int err;

	if (!rpc)
		return -ENOMEM;
	err = rpc_connect_async(rpc, server, port, connected, &call)
		      ? -EHOSTUNREACH
		      : call_wait(rpc, &call);
	/* libnfs tells no errno. */
	if (err == -EIO)
		err = -ECONNREFUSED;
	if (err)
		rpc_destroy_context(rpc);
	else
		*out = rpc;
	return err;
}

void nfs_client_disconnect(struct rpc_context *rpc)
{
	if (rpc)
		rpc_destroy_context(rpc);
}

static void mounted(struct rpc_context *rpc, int status, void *data, void *arg)
{
	const mountres3 *res = data;
	struct call *call = arg;

	if (!call_replied(call, status))
		return;
	call->err = mountstat3_to_errno((int)res->fhs_status);
	if (!call->err)
		keep_handle(call,
			    res->mountres3_u.mountinfo.fhandle.fhandle3_len,
			    res->mountres3_u.mountinfo.fhandle.fhandle3_val);
}

int nfs_client_mount(const char *server, uint16_t mount_port, const char *path,
		     struct nfs_handle *root)
{
	struct call call = { .handle = root };
	struct rpc_context *rpc = NULL;
	int err = nfs_client_connect(server, mount_port, &rpc);

	if (err)
		return err;
	err = rpc_mount3_mnt_async(rpc, mounted, (char *)path, &call)
		      ? -EIO
		      : call_wait(rpc, &call);
	nfs_client_disconnect(rpc);
	return err;
}

static void created(struct rpc_context *rpc, int status, void *data, void *arg)
{
	const CREATE3res *res = data;
	const post_op_fh3 *obj;
	struct call *call = arg;

	if (!call_replied(call, status))
		return;
	call->err = nfsstat3_to_errno((int)res->status);
	if (call->err)
		return;
	obj = &res->CREATE3res_u.resok.obj;
	/* A server need not send it: the caller then looks it up. */
	call->handle->len = 0;
	if (obj->handle_follows)
		keep_handle(call, obj->post_op_fh3_u.handle.data.data_len,
			    obj->post_op_fh3_u.handle.data.data_val);
}

int nfs_client_create(struct rpc_context *rpc, const struct nfs_handle *dir,
		      const char *name, struct nfs_handle *out)
{
	CREATE3args args = { .where = { .dir = wire_handle(dir),
					.name = (char *)name },
			     .how = { .mode = UNCHECKED } };
	sattr3 *attr = &args.how.createhow3_u.obj_attributes;
	struct call call = { .handle = out };
	int err;

	attr->mode.set_it = 1;
	attr->mode.set_mode3_u.mode = 0644;
	attr->size.set_it = 1;
	err = rpc_nfs3_create_async(rpc, created, &args, &call)
		      ? -EIO
		      : call_wait(rpc, &call);
	return err || out->len ? err : nfs_client_lookup(rpc, dir, name, out);
}

static void looked_up(struct rpc_context *rpc, int status, void *data,
		      void *arg)
{
	const LOOKUP3res *res = data;
	struct call *call = arg;

	if (!call_replied(call, status))
		return;
	call->err = nfsstat3_to_errno((int)res->status);
	if (!call->err)
		keep_handle(call, res->LOOKUP3res_u.resok.object.data.data_len,
			    res->LOOKUP3res_u.resok.object.data.data_val);
}

int nfs_client_lookup(struct rpc_context *rpc, const struct nfs_handle *dir,
		      const char *name, struct nfs_handle *out)
{
	LOOKUP3args args = { .what = { .dir = wire_handle(dir),
				       .name = (char *)name } };
	struct call call = { .handle = out };

	return rpc_nfs3_lookup_async(rpc, looked_up, &args, &call)
		       ? -EIO
		       : call_wait(rpc, &call);
}

static void removed(struct rpc_context *rpc, int status, void *data, void *arg)
{
	const REMOVE3res *res = data;
	struct call *call = arg;

	if (call_replied(call, status))
		call->err = nfsstat3_to_errno((int)res->status);
}

int nfs_client_remove(struct rpc_context *rpc, const struct nfs_handle *dir,
		      const char *name)
{
	REMOVE3args args = { .object = { .dir = wire_handle(dir),
					 .name = (char *)name } };
	struct call call = { 0 };
	int err = rpc_nfs3_remove_async(rpc, removed, &args, &call)
			  ? -EIO
			  : call_wait(rpc, &call);

	return err == -ENOENT ? 0 : err;
}

static void committed(struct rpc_context *rpc, int status, void *data,
		      void *arg)
{
	const COMMIT3res *res = data;
	struct call *call = arg;

	if (!call_replied(call, status))
		return;
	call->err = nfsstat3_to_errno((int)res->status);
	if (!call->err)
		memcpy(call->verifier, res->COMMIT3res_u.resok.verf,
		       NFS_VERIFIER_LEN);
}

int nfs_client_commit(struct rpc_context *rpc, const struct nfs_handle *file,
		      char verifier[NFS_VERIFIER_LEN])
{
	COMMIT3args args = { .file = wire_handle(file) };
	struct call call = { .verifier = verifier };

	return rpc_nfs3_commit_async(rpc, committed, &args, &call)
		       ? -EIO
		       : call_wait(rpc, &call);
}

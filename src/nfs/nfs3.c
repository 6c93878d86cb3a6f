/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * The table of NFSv3's procedures (RFC 1813, section 3.3), in their order.
 *
 * Resent calls of what is not idempotent are answered from the reply cache,
 * WRITE and SETATTR too: running an old one again would undo a newer one.
 */
#include "nfs/nfs3.h"

static enum rpc_status nfs3_null(struct rpc_call *call, void *args)
{
	return RPC_SUCCESS;
}

#define ARGS(T) .decode = xdr_decode_##T, .args_size = sizeof(struct T)
#define PROC(name_, run_, T) .name = name_, .run = run_, ARGS(T)

const struct rpc_proc nfs3_procs[] = {
	{ .name = "NULL", .run = nfs3_null, .flags = RPC_ANYBODY },
	{ PROC("GETATTR", nfs3_getattr, nfs3_fh_args) },
	{ PROC("SETATTR", nfs3_setattr, nfs3_setattr_args), .flags = RPC_ONCE },
	{ PROC("LOOKUP", nfs3_lookup, nfs3_dirop) },
	{ PROC("ACCESS", nfs3_access, nfs3_access_args) },
	{ PROC("READLINK", nfs3_readlink, nfs3_fh_args) },
	{ PROC("READ", nfs3_read, nfs3_read_args) },
	{ PROC("WRITE", nfs3_write, nfs3_write_args), .flags = RPC_ONCE,
	  .place = nfs3_write_place, .unplace = nfs3_write_unplace },
	{ PROC("CREATE", nfs3_create, nfs3_create_args), .flags = RPC_ONCE },
	{ PROC("MKDIR", nfs3_mkdir, nfs3_mkdir_args), .flags = RPC_ONCE },
	{ PROC("SYMLINK", nfs3_symlink, nfs3_symlink_args), .flags = RPC_ONCE },
	{ PROC("MKNOD", nfs3_mknod, nfs3_mknod_args), .flags = RPC_ONCE },
	{ PROC("REMOVE", nfs3_remove, nfs3_dirop), .flags = RPC_ONCE },
	{ PROC("RMDIR", nfs3_rmdir, nfs3_dirop), .flags = RPC_ONCE },
	{ PROC("RENAME", nfs3_rename, nfs3_rename_args), .flags = RPC_ONCE },
	{ PROC("LINK", nfs3_link, nfs3_link_args), .flags = RPC_ONCE },
	{ PROC("READDIR", nfs3_readdir, nfs3_readdir_args) },
	{ PROC("READDIRPLUS", nfs3_readdirplus, nfs3_readdirplus_args) },
	/* What a client asks before it has a credential (RFC 2623, 2.3.2). */
	{ PROC("FSSTAT", nfs3_fsstat, nfs3_fh_args), .flags = RPC_ANYBODY },
	{ PROC("FSINFO", nfs3_fsinfo, nfs3_fh_args), .flags = RPC_ANYBODY },
	{ PROC("PATHCONF", nfs3_pathconf, nfs3_fh_args) },
	{ PROC("COMMIT", nfs3_commit, nfs3_commit_args) },
};
_Static_assert(ARRAY_SIZE(nfs3_procs) <= FS_OPS_MAX, "an export counts each");
const unsigned nfs3_nr_procs = ARRAY_SIZE(nfs3_procs);

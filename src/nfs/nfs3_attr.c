/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * NFSv3 procedures on one file's attributes, and on its file system.
 *
 * Each: open the handle, ask the file layer, write the status and the results
 * that RFC 1813 has for success or failure.
 */
#include "nfs/nfs3.h"

#include "fs/io.h"
#include "fs/name.h"

#include <errno.h>
#include <sys/stat.h>
#include <sys/vfs.h>

enum rpc_status nfs3_getattr(struct rpc_call *call, void *args)
{
	const struct nfs3_fh_args *a = args;
	struct fs_request r;
	struct fs_attr attr;
	struct fs_file *f;
	int ret;

	ret = nfs3_open(call, &a->file, &r, &f);
	if (!ret) {
		ret = attr_get(f, r.export, &attr);
		file_put(f);
	}
	nfs3_put_status(&call->out, ret);
	if (!ret)
		nfs3_put_attr(&call->out, &attr);
	return RPC_SUCCESS;
}

enum rpc_status nfs3_setattr(struct rpc_call *call, void *args)
{
	const struct nfs3_setattr_args *a = args;
	struct timespec guard = { .tv_sec = a->guard.value.seconds,
				  .tv_nsec = a->guard.value.nseconds };
	struct fs_change wcc = { 0 };
	struct fs_request r;
	struct fs_sattr s;
	struct fs_file *f;
	int ret;

	if (!nfs_try_block(call, &a->file))
		return RPC_AGAIN;
	nfs3_sattr_of(&a->attr, &s);
	ret = nfs3_open(call, &a->file, &r, &f);
	if (!ret) {
		ret = setattr_change(&r, f, &s,
				     a->guard.present ? &guard : NULL, &wcc);
		file_put(f);
	}
	nfs3_put_status(&call->out, ret);
	nfs3_put_change(&call->out, &wcc);
	return RPC_SUCCESS;
}

/* RFC 1813, section 3.3.4. */
enum nfs3_access_bit {
	NFS3_ACCESS_READ = 0x01,
	NFS3_ACCESS_LOOKUP = 0x02,
	NFS3_ACCESS_MODIFY = 0x04,
	NFS3_ACCESS_EXTEND = 0x08,
	NFS3_ACCESS_DELETE = 0x10,
	NFS3_ACCESS_EXECUTE = 0x20,
};

static uint32_t access_bits(const struct fs_request *r, struct fs_file *f,
			    unsigned rights)
{
	bool dir = f->type == S_IFDIR;
	uint32_t bits = 0;

	if (rights & ACCESS_READ)
		bits |= NFS3_ACCESS_READ;
	if (rights & ACCESS_EXEC)
		bits |= dir ? NFS3_ACCESS_LOOKUP : NFS3_ACCESS_EXECUTE;
	if ((rights & ACCESS_WRITE) && r->options.writable) {
		bits |= NFS3_ACCESS_MODIFY | NFS3_ACCESS_EXTEND;
		if (dir && (rights & ACCESS_EXEC))
			bits |= NFS3_ACCESS_DELETE;
	}
	return bits;
}

enum rpc_status nfs3_access(struct rpc_call *call, void *args)
{
	const struct nfs3_access_args *a = args;
	struct fs_file *f = NULL;
	struct fs_request r;
	unsigned rights = 0;
	int ret;

	ret = nfs3_open(call, &a->file, &r, &f);
	if (!ret)
		ret = access_rights(f, &r.cred, &rights);
	nfs3_put_status(&call->out, ret);
	nfs3_put_post_attr_of(&call->out, &r, f);
	if (!ret)
		xdr_out_u32(&call->out, a->access & access_bits(&r, f, rights));
	file_put(f);
	return RPC_SUCCESS;
}

enum rpc_status nfs3_readlink(struct rpc_call *call, void *args)
{
	const struct nfs3_fh_args *a = args;
	char target[FS_PATH_MAX + 1];
	struct fs_file *f = NULL;
	struct fs_request r;
	int ret;

	if (!nfs_try_block(call, &a->file))
		return RPC_AGAIN;
	/* Status, attributes and the target with its length. */
	if (rpc_reply_reserve(call, 4 + 88 + 8 + FS_PATH_MAX))
		return RPC_SYSTEM_ERR;
	ret = nfs3_open(call, &a->file, &r, &f);
	if (!ret)
		ret = name_read_link(&r, f, target);
	nfs3_put_status(&call->out, ret < 0 ? ret : 0);
	nfs3_put_post_attr_of(&call->out, &r, f);
	if (ret >= 0)
		xdr_out_opaque(&call->out, target, (uint32_t)ret);
	file_put(f);
	return RPC_SUCCESS;
}

enum rpc_status nfs3_fsstat(struct rpc_call *call, void *args)
{
	const struct nfs3_fh_args *a = args;
	struct xdr_out *out = &call->out;
	struct fs_file *f = NULL;
	struct fs_request r;
	struct statfs s;
	int ret;

	if (!nfs_try_block(call, &a->file))
		return RPC_AGAIN;
	ret = nfs3_open(call, &a->file, &r, &f);
	if (!ret && fstatfs(f->fd, &s))
		ret = -errno;
	nfs3_put_status(out, ret);
	nfs3_put_post_attr_of(out, &r, f);
	if (!ret) {
		uint64_t size = (uint64_t)s.f_bsize;

		xdr_out_u64(out, s.f_blocks * size);
		xdr_out_u64(out, s.f_bfree * size);
		xdr_out_u64(out, s.f_bavail * size);
		xdr_out_u64(out, s.f_files);
		xdr_out_u64(out, s.f_ffree);
		xdr_out_u64(out, s.f_ffree);
		xdr_out_u32(out, 0); /* invarsec: may change at once */
	}
	file_put(f);
	return RPC_SUCCESS;
}

/* The whole result of a failure; of success, what stands before constants of
 * the file system. */
static int put_post_attr(struct rpc_call *call, const xdr_nfs3_fh *fh)
{
	struct fs_file *f = NULL;
	struct fs_request r;
	int ret = nfs3_open(call, fh, &r, &f);

	nfs3_put_status(&call->out, ret);
	nfs3_put_post_attr_of(&call->out, &r, f);
	file_put(f);
	return ret;
}

/* RFC 1813, section 3.3.19: FSF_LINK, SYMLINK, HOMOGENEOUS, CANSETTIME. */
#define NFS3_PROPERTIES (0x01u | 0x02u | 0x08u | 0x10u)

/* A whole directory reply: what Linux asks for at most. */
#define NFS3_DTPREF 65536u

enum rpc_status nfs3_fsinfo(struct rpc_call *call, void *args)
{
	const struct nfs3_fh_args *a = args;
	struct xdr_out *out = &call->out;

	if (!put_post_attr(call, &a->file)) {
		xdr_out_u32(out, FS_IO_MAX); /* rtmax, rtpref, rtmult */
		xdr_out_u32(out, FS_IO_MAX);
		xdr_out_u32(out, 4096);
		xdr_out_u32(out, FS_IO_MAX); /* wtmax, wtpref, wtmult */
		xdr_out_u32(out, FS_IO_MAX);
		xdr_out_u32(out, 4096);
		xdr_out_u32(out, NFS3_DTPREF);
		xdr_out_u64(out, TR_OFFSET_MAX);
		xdr_out_u32(out, 0); /* time_delta: 1 ns */
		xdr_out_u32(out, 1);
		xdr_out_u32(out, NFS3_PROPERTIES);
	}
	return RPC_SUCCESS;
}

enum rpc_status nfs3_pathconf(struct rpc_call *call, void *args)
{
	const struct nfs3_fh_args *a = args;
	struct xdr_out *out = &call->out;

	if (!put_post_attr(call, &a->file)) {
		xdr_out_u32(out, 65000); /* linkmax: ext4's, the lowest */
		xdr_out_u32(out, FS_NAME_MAX);
		xdr_out_bool(out, true); /* no_trunc */
		xdr_out_bool(out, true); /* chown_restricted */
		xdr_out_bool(out, false); /* case_insensitive */
		xdr_out_bool(out, true); /* case_preserving */
	}
	return RPC_SUCCESS;
}

/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * NFSv3 procedures on names.
 *
 * Each opens the directory's handle, copies the name, and lets fs/name.c do
 * it. All may block, so they say so first. Results of failure carry the
 * directory's wcc data as far as it is known.
 */
#include "nfs/nfs3.h"

#include "fs/name.h"

#include <errno.h>
#include <string.h>
#include <sys/stat.h>

/* The directory, and the name in it in FS_NAME_MAX + 1 bytes. The
 * directory is the caller's to put on failure too. */
static int open_dirop(struct rpc_call *call, const struct nfs3_dirop *a,
		      struct fs_request *r, struct fs_file **dir, char *name)
{
	int ret = nfs3_open(call, &a->dir, r, dir);

	return ret ? ret : nfs3_text(&a->name, name, FS_NAME_MAX + 1);
}

enum rpc_status nfs3_lookup(struct rpc_call *call, void *args)
{
	const struct nfs3_dirop *a = args;
	struct fs_file *dir = NULL, *f = NULL;
	struct xdr_out *out = &call->out;
	char name[FS_NAME_MAX + 1];
	struct fs_request r;
	int ret;

	if (!nfs_try_block(call, &a->dir))
		return RPC_AGAIN;
	ret = open_dirop(call, a, &r, &dir, name);
	if (!ret)
		ret = name_lookup(&r, dir, name, &f);
	nfs3_put_status(out, ret);
	if (!ret) {
		nfs3_put_handle(out, &r, &f->handle);
		nfs3_put_post_attr_of(out, &r, f);
		file_put(f);
	}
	nfs3_put_post_attr_of(out, &r, dir);
	file_put(dir);
	return RPC_SUCCESS;
}

/* The four procedures that make something differ in *what only. */
static enum rpc_status make(struct rpc_call *call,
			    const struct nfs3_dirop *where,
			    const struct fs_new *what, int error)
{
	struct fs_file *dir = NULL, *f = NULL;
	struct xdr_out *out = &call->out;
	char name[FS_NAME_MAX + 1];
	struct fs_change wcc = { 0 };
	struct fs_request r;
	int ret;

	if (!nfs_try_block(call, &where->dir))
		return RPC_AGAIN;
	ret = open_dirop(call, where, &r, &dir, name);
	if (!ret)
		ret = error ? error
			    : name_create(&r, dir, name, what, &f, &wcc);
	nfs3_put_status(out, ret);
	if (!ret) {
		xdr_out_bool(out, true);
		nfs3_put_handle(out, &r, &f->handle);
		nfs3_put_post_attr_of(out, &r, f);
		file_put(f);
	}
	nfs3_put_change(out, &wcc);
	file_put(dir);
	return RPC_SUCCESS;
}

enum rpc_status nfs3_create(struct rpc_call *call, void *args)
{
	static const enum create_how hows[] = { CREATE_UNCHECKED,
						CREATE_GUARDED,
						CREATE_EXCLUSIVE };
	const struct nfs3_create_args *a = args;
	struct fs_new what = { .type = S_IFREG, .how = hows[a->how.mode] };

	nfs3_sattr_of(&a->how.attr, &what.attr);
	memcpy(what.verifier, a->how.verifier.data, sizeof(what.verifier));
	return make(call, &a->where, &what, 0);
}

enum rpc_status nfs3_mkdir(struct rpc_call *call, void *args)
{
	const struct nfs3_mkdir_args *a = args;
	struct fs_new what = { .type = S_IFDIR, .how = CREATE_GUARDED };

	nfs3_sattr_of(&a->attr, &what.attr);
	what.attr.set_size = false;
	return make(call, &a->where, &what, 0);
}

enum rpc_status nfs3_symlink(struct rpc_call *call, void *args)
{
	const struct nfs3_symlink_args *a = args;
	struct fs_new what = { .type = S_IFLNK, .how = CREATE_GUARDED };
	char target[FS_PATH_MAX + 1];
	int ret;

	nfs3_sattr_of(&a->attr, &what.attr);
	what.attr.set_size = false;
	ret = nfs3_text(&a->target, target, sizeof(target));
	if (!ret && !target[0])
		ret = -EINVAL;
	what.target = target;
	return make(call, &a->where, &what, ret);
}

enum rpc_status nfs3_mknod(struct rpc_call *call, void *args)
{
	const struct nfs3_mknod_args *a = args;
	struct fs_new what = { .how = CREATE_GUARDED,
			       .rdev_major = a->what.major,
			       .rdev_minor = a->what.minor };
	int ret = 0;

	switch (a->what.type) {
	case NFS3_CHR:
		what.type = S_IFCHR;
		break;
	case NFS3_BLK:
		what.type = S_IFBLK;
		break;
	case NFS3_SOCK:
		what.type = S_IFSOCK;
		break;
	case NFS3_FIFO:
		what.type = S_IFIFO;
		break;
	default:
		ret = -EPROTOTYPE;
	}
	nfs3_sattr_of(&a->what.attr, &what.attr);
	what.attr.set_size = false;
	return make(call, &a->where, &what, ret);
}

static enum rpc_status unmake(struct rpc_call *call, const struct nfs3_dirop *a,
			      bool directory)
{
	struct fs_change wcc = { 0 };
	char name[FS_NAME_MAX + 1];
	struct fs_file *dir = NULL;
	struct fs_request r;
	int ret;

	if (!nfs_try_block(call, &a->dir))
		return RPC_AGAIN;
	ret = open_dirop(call, a, &r, &dir, name);
	if (!ret)
		ret = name_remove(&r, dir, name, directory, &wcc);
	nfs3_put_status(&call->out, ret);
	nfs3_put_change(&call->out, &wcc);
	file_put(dir);
	return RPC_SUCCESS;
}

enum rpc_status nfs3_remove(struct rpc_call *call, void *args)
{
	return unmake(call, args, false);
}

enum rpc_status nfs3_rmdir(struct rpc_call *call, void *args)
{
	return unmake(call, args, true);
}

enum rpc_status nfs3_rename(struct rpc_call *call, void *args)
{
	const struct nfs3_rename_args *a = args;
	char from_name[FS_NAME_MAX + 1], to_name[FS_NAME_MAX + 1];
	struct fs_change from_wcc = { 0 }, to_wcc = { 0 };
	struct fs_file *from = NULL, *to = NULL;
	struct fs_request r, other;
	int ret;

	if (!nfs_try_block(call, &a->from.dir))
		return RPC_AGAIN;
	ret = nfs3_open(call, &a->from.dir, &r, &from);
	if (!ret)
		ret = nfs3_open(call, &a->to.dir, &other, &to);
	if (!ret && other.export != r.export)
		ret = -EXDEV;
	if (!ret)
		ret = nfs3_text(&a->from.name, from_name, sizeof(from_name));
	if (!ret)
		ret = nfs3_text(&a->to.name, to_name, sizeof(to_name));
	if (!ret)
		ret = name_rename(&r, from, from_name, to, to_name, &from_wcc,
				  &to_wcc);
	nfs3_put_status(&call->out, ret);
	nfs3_put_change(&call->out, &from_wcc);
	nfs3_put_change(&call->out, &to_wcc);
	file_put(to);
	file_put(from);
	return RPC_SUCCESS;
}

enum rpc_status nfs3_link(struct rpc_call *call, void *args)
{
	const struct nfs3_link_args *a = args;
	struct fs_file *f = NULL, *dir = NULL;
	struct xdr_out *out = &call->out;
	struct fs_change wcc = { 0 };
	char name[FS_NAME_MAX + 1];
	struct fs_request r, other;
	int ret;

	if (!nfs_try_block(call, &a->file))
		return RPC_AGAIN;
	ret = nfs3_open(call, &a->file, &r, &f);
	if (!ret)
		ret = nfs3_open(call, &a->link.dir, &other, &dir);
	if (!ret && other.export != r.export)
		ret = -EXDEV;
	if (!ret)
		ret = nfs3_text(&a->link.name, name, sizeof(name));
	if (!ret)
		ret = name_link(&r, f, dir, name, &wcc);
	nfs3_put_status(out, ret);
	nfs3_put_post_attr_of(out, &r, f);
	nfs3_put_change(out, &wcc);
	file_put(dir);
	file_put(f);
	return RPC_SUCCESS;
}

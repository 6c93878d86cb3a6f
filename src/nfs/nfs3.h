/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * What the NFSv3 procedures share: from a handle to a file and a request, and
 * the pieces of results.
 */
#ifndef TR_NFS_NFS3_H
#define TR_NFS_NFS3_H

#include "fs/setattr.h"
#include "nfs/nfs.h"
#include "nfs/nfs3_xdr.h"
#include "nfs/status.h"

/* ---- nfs3_common.c ---- */

/*
 * The file of a handle and the request to ask about it with. -EBADFD, -ESTALE,
 * -EACCES (the client may not), or the host's. The reference is the caller's.
 */
int nfs3_open(struct rpc_call *call, const xdr_nfs3_fh *fh,
	      struct fs_request *r, struct fs_file **out) MUST_CHECK;

/* A name of the wire as a C string in buf of size bytes; -ENAMETOOLONG, or
 * -EINVAL for one with a NUL in it. */
int nfs3_text(const xdr_nfs3_string *s, char *buf, size_t size) MUST_CHECK;

void nfs3_sattr_of(const struct nfs3_sattr *in, struct fs_sattr *out);

/* The status word of a result. */
void nfs3_put_status(struct xdr_out *out, int error);
void nfs3_put_attr(struct xdr_out *out, const struct fs_attr *a);
/* post_op_attr: a may be NULL for none. */
void nfs3_put_post_attr(struct xdr_out *out, const struct fs_attr *a);
/* The same of a file; f may be NULL. */
void nfs3_put_post_attr_of(struct xdr_out *out, const struct fs_request *r,
			   struct fs_file *f);
/* wcc_data */
void nfs3_put_wcc(struct xdr_out *out, const struct fs_before *before,
		  const struct fs_attr *after);
void nfs3_put_change(struct xdr_out *out, const struct fs_change *c);
/* nfs_fh3 */
void nfs3_put_handle(struct xdr_out *out, const struct fs_request *r,
		     const struct fs_handle *h);
void nfs3_put_verifier(struct xdr_out *out, uint64_t v);

/* ---- the procedures' handlers, by file ---- */

/* nfs3_attr.c */
enum rpc_status nfs3_getattr(struct rpc_call *call, void *args);
enum rpc_status nfs3_setattr(struct rpc_call *call, void *args);
enum rpc_status nfs3_access(struct rpc_call *call, void *args);
enum rpc_status nfs3_readlink(struct rpc_call *call, void *args);
enum rpc_status nfs3_fsstat(struct rpc_call *call, void *args);
enum rpc_status nfs3_fsinfo(struct rpc_call *call, void *args);
enum rpc_status nfs3_pathconf(struct rpc_call *call, void *args);

/* nfs3_name.c */
enum rpc_status nfs3_lookup(struct rpc_call *call, void *args);
enum rpc_status nfs3_create(struct rpc_call *call, void *args);
enum rpc_status nfs3_mkdir(struct rpc_call *call, void *args);
enum rpc_status nfs3_symlink(struct rpc_call *call, void *args);
enum rpc_status nfs3_mknod(struct rpc_call *call, void *args);
enum rpc_status nfs3_remove(struct rpc_call *call, void *args);
enum rpc_status nfs3_rmdir(struct rpc_call *call, void *args);
enum rpc_status nfs3_rename(struct rpc_call *call, void *args);
enum rpc_status nfs3_link(struct rpc_call *call, void *args);

/* nfs3_dir.c */
enum rpc_status nfs3_readdir(struct rpc_call *call, void *args);
enum rpc_status nfs3_readdirplus(struct rpc_call *call, void *args);

/* nfs3_io.c */
enum rpc_status nfs3_read(struct rpc_call *call, void *args);
enum rpc_status nfs3_write(struct rpc_call *call, void *args);
enum rpc_status nfs3_commit(struct rpc_call *call, void *args);
int nfs3_write_place(struct rpc_call *call, struct xdr_in *args, size_t left,
		     struct rpc_place *place);
void nfs3_write_unplace(struct rpc_call *call, struct rpc_place *place);

#endif

/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * Arguments of NFSv3 (RFC 1813, section 3.3), one list of fields each.
 */
#ifndef TR_NFS_NFS3_XDR_H
#define TR_NFS_NFS3_XDR_H

#include "xdr/fields.h"

/* RFC 1813, section 2.4. */
#define NFS3_FHSIZE 64
#define NFS3_COOKIEVERFSIZE 8
#define NFS3_CREATEVERFSIZE 8
#define NFS3_WRITEVERFSIZE 8

/* Names and paths longer than any host's are decoded so that they can be
 * answered NAMETOOLONG. */
#define NFS3_STRING_MAX 8192

XDR_OPAQUE(nfs3_fh, NFS3_FHSIZE)
XDR_OPAQUE(nfs3_string, NFS3_STRING_MAX)
XDR_FIXED(nfs3_verifier, 8)

#define NFS3_TIME(F)                                                           \
	F(u32, seconds)                                                        \
	F(u32, nseconds)
XDR_STRUCT(nfs3_time, NFS3_TIME)

/* time_how: 0 don't change, 1 the server's time, 2 the time that follows. */
struct nfs3_set_time {
	uint32_t how;
	struct nfs3_time time;
};
typedef struct nfs3_set_time xdr_nfs3_set_time;

MUST_CHECK static inline int xdr_get_nfs3_set_time(struct xdr_in *in,
						   struct nfs3_set_time *v)
{
	*v = (struct nfs3_set_time){ 0 };
	if (xdr_get_u32(in, &v->how) || v->how > 2)
		return -EBADMSG;
	return v->how == 2 ? xdr_get_nfs3_time(in, &v->time) : 0;
}

static inline void xdr_put_nfs3_set_time(struct xdr_out *out,
					 const struct nfs3_set_time *v)
{
	xdr_out_u32(out, v->how);
	if (v->how == 2)
		xdr_put_nfs3_time(out, &v->time);
}

static inline size_t xdr_size_nfs3_set_time(const struct nfs3_set_time *v)
{
	return v->how == 2 ? 12 : 4;
}

XDR_OPTIONAL(nfs3_set_u32, u32)
XDR_OPTIONAL(nfs3_set_u64, u64)

#define NFS3_SATTR(F)                                                          \
	F(nfs3_set_u32, mode)                                                  \
	F(nfs3_set_u32, uid)                                                   \
	F(nfs3_set_u32, gid)                                                   \
	F(nfs3_set_u64, size)                                                  \
	F(nfs3_set_time, atime)                                                \
	F(nfs3_set_time, mtime)
XDR_STRUCT(nfs3_sattr, NFS3_SATTR)

#define NFS3_DIROP(F)                                                          \
	F(nfs3_fh, dir)                                                        \
	F(nfs3_string, name)
XDR_STRUCT(nfs3_dirop, NFS3_DIROP)

/* GETATTR, READLINK, FSSTAT, FSINFO, PATHCONF */
#define NFS3_FH_ARGS(F) F(nfs3_fh, file)
XDR_STRUCT(nfs3_fh_args, NFS3_FH_ARGS)

XDR_OPTIONAL(nfs3_guard, nfs3_time)

#define NFS3_SETATTR_ARGS(F)                                                   \
	F(nfs3_fh, file)                                                       \
	F(nfs3_sattr, attr)                                                    \
	F(nfs3_guard, guard)
XDR_STRUCT(nfs3_setattr_args, NFS3_SETATTR_ARGS)

#define NFS3_ACCESS_ARGS(F)                                                    \
	F(nfs3_fh, file)                                                       \
	F(u32, access)
XDR_STRUCT(nfs3_access_args, NFS3_ACCESS_ARGS)

#define NFS3_READ_ARGS(F)                                                      \
	F(nfs3_fh, file)                                                       \
	F(u64, offset)                                                         \
	F(u32, count)
XDR_STRUCT(nfs3_read_args, NFS3_READ_ARGS)

/* Up to the payload, which the handler reads itself. */
XDR_ENUM(nfs3_stable, 0, 2)
#define NFS3_WRITE_ARGS(F)                                                     \
	F(nfs3_fh, file)                                                       \
	F(u64, offset)                                                         \
	F(u32, count)                                                          \
	F(nfs3_stable, stable)
XDR_STRUCT(nfs3_write_args, NFS3_WRITE_ARGS)

/* createhow3: attributes, or for EXCLUSIVE (2) a verifier. */
struct nfs3_create_how {
	uint32_t mode;
	struct nfs3_sattr attr;
	struct nfs3_verifier verifier;
};
typedef struct nfs3_create_how xdr_nfs3_create_how;

MUST_CHECK static inline int xdr_get_nfs3_create_how(struct xdr_in *in,
						     struct nfs3_create_how *v)
{
	*v = (struct nfs3_create_how){ 0 };
	if (xdr_get_u32(in, &v->mode) || v->mode > 2)
		return -EBADMSG;
	return v->mode == 2 ? xdr_get_nfs3_verifier(in, &v->verifier)
			    : xdr_get_nfs3_sattr(in, &v->attr);
}

static inline void xdr_put_nfs3_create_how(struct xdr_out *out,
					   const struct nfs3_create_how *v)
{
	xdr_out_u32(out, v->mode);
	if (v->mode == 2)
		xdr_put_nfs3_verifier(out, &v->verifier);
	else
		xdr_put_nfs3_sattr(out, &v->attr);
}

static inline size_t xdr_size_nfs3_create_how(const struct nfs3_create_how *v)
{
	return 4 + (v->mode == 2 ? 8 : xdr_size_nfs3_sattr(&v->attr));
}

#define NFS3_CREATE_ARGS(F)                                                    \
	F(nfs3_dirop, where)                                                   \
	F(nfs3_create_how, how)
XDR_STRUCT(nfs3_create_args, NFS3_CREATE_ARGS)

#define NFS3_MKDIR_ARGS(F)                                                     \
	F(nfs3_dirop, where)                                                   \
	F(nfs3_sattr, attr)
XDR_STRUCT(nfs3_mkdir_args, NFS3_MKDIR_ARGS)

#define NFS3_SYMLINK_ARGS(F)                                                   \
	F(nfs3_dirop, where)                                                   \
	F(nfs3_sattr, attr)                                                    \
	F(nfs3_string, target)
XDR_STRUCT(nfs3_symlink_args, NFS3_SYMLINK_ARGS)

/* mknoddata3: devices have attributes and numbers, sockets and pipes
 * attributes, everything else nothing. */
enum nfs3_type {
	NFS3_REG = 1,
	NFS3_DIR,
	NFS3_BLK,
	NFS3_CHR,
	NFS3_LNK,
	NFS3_SOCK,
	NFS3_FIFO,
};

struct nfs3_mknod_what {
	uint32_t type;
	struct nfs3_sattr attr;
	uint32_t major, minor;
};
typedef struct nfs3_mknod_what xdr_nfs3_mknod_what;

MUST_CHECK static inline int xdr_get_nfs3_mknod_what(struct xdr_in *in,
						     struct nfs3_mknod_what *v)
{
	*v = (struct nfs3_mknod_what){ 0 };
	if (xdr_get_u32(in, &v->type))
		return -EBADMSG;
	switch (v->type) {
	case NFS3_CHR:
	case NFS3_BLK:
		if (xdr_get_nfs3_sattr(in, &v->attr))
			return -EBADMSG;
		return xdr_get_u32(in, &v->major) || xdr_get_u32(in, &v->minor)
			       ? -EBADMSG
			       : 0;
	case NFS3_SOCK:
	case NFS3_FIFO:
		return xdr_get_nfs3_sattr(in, &v->attr);
	default:
		return 0;
	}
}

static inline void xdr_put_nfs3_mknod_what(struct xdr_out *out,
					   const struct nfs3_mknod_what *v)
{
	bool device = v->type == NFS3_CHR || v->type == NFS3_BLK;

	xdr_out_u32(out, v->type);
	if (device || v->type == NFS3_SOCK || v->type == NFS3_FIFO)
		xdr_put_nfs3_sattr(out, &v->attr);
	if (device) {
		xdr_out_u32(out, v->major);
		xdr_out_u32(out, v->minor);
	}
}

static inline size_t xdr_size_nfs3_mknod_what(const struct nfs3_mknod_what *v)
{
	bool device = v->type == NFS3_CHR || v->type == NFS3_BLK;

	if (!device && v->type != NFS3_SOCK && v->type != NFS3_FIFO)
		return 4;
	return 4 + xdr_size_nfs3_sattr(&v->attr) + (device ? 8 : 0);
}

#define NFS3_MKNOD_ARGS(F)                                                     \
	F(nfs3_dirop, where)                                                   \
	F(nfs3_mknod_what, what)
XDR_STRUCT(nfs3_mknod_args, NFS3_MKNOD_ARGS)

#define NFS3_RENAME_ARGS(F)                                                    \
	F(nfs3_dirop, from)                                                    \
	F(nfs3_dirop, to)
XDR_STRUCT(nfs3_rename_args, NFS3_RENAME_ARGS)

#define NFS3_LINK_ARGS(F)                                                      \
	F(nfs3_fh, file)                                                       \
	F(nfs3_dirop, link)
XDR_STRUCT(nfs3_link_args, NFS3_LINK_ARGS)

#define NFS3_READDIR_ARGS(F)                                                   \
	F(nfs3_fh, dir)                                                        \
	F(u64, cookie)                                                         \
	F(nfs3_verifier, verifier)                                             \
	F(u32, count)
XDR_STRUCT(nfs3_readdir_args, NFS3_READDIR_ARGS)

#define NFS3_READDIRPLUS_ARGS(F)                                               \
	F(nfs3_fh, dir)                                                        \
	F(u64, cookie)                                                         \
	F(nfs3_verifier, verifier)                                             \
	F(u32, dircount)                                                       \
	F(u32, maxcount)
XDR_STRUCT(nfs3_readdirplus_args, NFS3_READDIRPLUS_ARGS)

#define NFS3_COMMIT_ARGS(F)                                                    \
	F(nfs3_fh, file)                                                       \
	F(u64, offset)                                                         \
	F(u32, count)
XDR_STRUCT(nfs3_commit_args, NFS3_COMMIT_ARGS)

#endif

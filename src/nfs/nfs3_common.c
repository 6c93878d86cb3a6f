/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * From handles to files, and the pieces that results are made of (RFC 1813,
 * section 2.6). Results never overflow: each procedure reserves what exceeds
 * the room that every reply has.
 */
#include "nfs/nfs3.h"

#include <errno.h>
#include <string.h>
#include <sys/stat.h>

/* ---- arguments ---- */

int nfs3_open(struct rpc_call *call, const xdr_nfs3_fh *fh,
	      struct fs_request *r, struct fs_file **out)
{
	struct fs_server *fs = nfs_of(call)->fs;
	struct fs_handle h;
	struct fs_export *x;
	struct fs_cred cred;
	int ret;

	ret = handle_decode(&fs->options.key, fh->data, fh->len, &h);
	if (ret)
		return ret;
	x = fs_export_find(fs, h.export_id);
	if (!x)
		return -ESTALE;
	nfs_cred(call, &cred);
	r->xid = call->head.xid;
	r->traced = &call->handler_bits;
	ret = fs_request_init(
		r, fs, x, (const struct sockaddr *)rpc_call_peer(call), &cred);
	if (ret)
		return ret;
	call->account = &x->ops[call->head.proc];
	return file_get(fs, x, &h, -1, out);
}

int nfs3_text(const xdr_nfs3_string *s, char *buf, size_t size)
{
	if (s->len >= size)
		return -ENAMETOOLONG;
	if (memchr(s->data, 0, s->len))
		return -EINVAL;
	memcpy(buf, s->data, s->len);
	buf[s->len] = 0;
	return 0;
}

static void set_time(const struct nfs3_set_time *in, enum time_how *how,
		     struct timespec *ts)
{
	static const enum time_how hows[] = { TIME_KEEP, TIME_NOW, TIME_GIVEN };

	*how = hows[in->how];
	ts->tv_sec = in->time.seconds;
	ts->tv_nsec = in->time.nseconds;
	/* Nonsense above a second would be refused by the host. */
	if (in->time.nseconds >= 1000000000u)
		ts->tv_nsec = 999999999;
}

void nfs3_sattr_of(const struct nfs3_sattr *in, struct fs_sattr *out)
{
	*out = (struct fs_sattr){
		.set_mode = in->mode.present,
		.set_uid = in->uid.present,
		.set_gid = in->gid.present,
		.set_size = in->size.present,
		.mode = in->mode.value & 07777,
		.uid = in->uid.value,
		.gid = in->gid.value,
		/* What no file can have is negative: FBIG. */
		.size = (int64_t)in->size.value,
	};
	set_time(&in->atime, &out->atime_how, &out->atime);
	set_time(&in->mtime, &out->mtime_how, &out->mtime);
}

/* ---- results ---- */

void nfs3_put_status(struct xdr_out *out, int error)
{
	xdr_out_u32(out, nfs3_status(error));
}

static enum nfs3_type type_of(mode_t mode)
{
	switch (mode & S_IFMT) {
	case S_IFDIR:
		return NFS3_DIR;
	case S_IFBLK:
		return NFS3_BLK;
	case S_IFCHR:
		return NFS3_CHR;
	case S_IFLNK:
		return NFS3_LNK;
	case S_IFSOCK:
		return NFS3_SOCK;
	case S_IFIFO:
		return NFS3_FIFO;
	default:
		return NFS3_REG;
	}
}

static void put_time(struct xdr_out *out, struct timespec t)
{
	xdr_out_u32(out, (uint32_t)t.tv_sec);
	xdr_out_u32(out, (uint32_t)t.tv_nsec);
}

void nfs3_put_attr(struct xdr_out *out, const struct fs_attr *a)
{
	xdr_out_u32(out, type_of(a->mode));
	xdr_out_u32(out, a->mode & 07777);
	xdr_out_u32(out, a->nlink);
	xdr_out_u32(out, a->uid);
	xdr_out_u32(out, a->gid);
	xdr_out_u64(out, (uint64_t)a->size);
	xdr_out_u64(out, a->used);
	xdr_out_u32(out, a->rdev_major);
	xdr_out_u32(out, a->rdev_minor);
	xdr_out_u64(out, a->fsid);
	xdr_out_u64(out, a->fileid);
	put_time(out, a->atime);
	put_time(out, a->mtime);
	put_time(out, a->ctime);
}

void nfs3_put_post_attr(struct xdr_out *out, const struct fs_attr *a)
{
	xdr_out_bool(out, a);
	if (a)
		nfs3_put_attr(out, a);
}

void nfs3_put_post_attr_of(struct xdr_out *out, const struct fs_request *r,
			   struct fs_file *f)
{
	struct fs_attr a;

	nfs3_put_post_attr(out, f && !attr_get(f, r->export, &a) ? &a : NULL);
}

void nfs3_put_wcc(struct xdr_out *out, const struct fs_before *before,
		  const struct fs_attr *after)
{
	xdr_out_bool(out, before->valid);
	if (before->valid) {
		xdr_out_u64(out, (uint64_t)before->size);
		put_time(out, before->mtime);
		put_time(out, before->ctime);
	}
	nfs3_put_post_attr(out, after);
}

void nfs3_put_change(struct xdr_out *out, const struct fs_change *c)
{
	nfs3_put_wcc(out, &c->before, c->after_valid ? &c->after : NULL);
}

void nfs3_put_handle(struct xdr_out *out, const struct fs_request *r,
		     const struct fs_handle *h)
{
	struct fs_handle here = *h;
	uint8_t wire[HANDLE_WIRE_MAX];
	size_t len;

	/* A file may be known through another export of its file system. */
	here.export_id = r->export->id;
	len = handle_encode(&r->fs->options.key, &here, wire);
	xdr_out_opaque(out, wire, (uint32_t)len);
}

void nfs3_put_verifier(struct xdr_out *out, uint64_t v)
{
	xdr_out_u64(out, v);
}

/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * READDIR and READDIRPLUS.
 *
 * Happy path: reserve what the client will take, list from its cookie, stop
 * before the entry that does not fit. The cookie verifier is 0 and not looked
 * at: the host's offsets stay good while the directory changes.
 *
 * Failure modes: a cookie that the host refuses is BAD_COOKIE; a client without
 * room for one entry gets TOOSMALL. Attributes and handles of entries are
 * optional: what cannot be had is left out.
 */
#include "nfs/nfs3.h"

#include "fs/dir.h"

#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/stat.h>

/* Larger replies help nobody: Linux asks for at most this. */
#define LISTING_MAX 65536u

/* Of the results around the entries: status, attributes, verifier, two bools
 * of the list's end. */
#define LISTING_FRAME (4 + 88 + 8 + 8)

struct listing {
	struct rpc_call *call;
	const struct fs_request *r;
	struct fs_file *dir;
	bool plus; /* with attributes and handles */
	bool may_search; /* the caller may see attributes of entries */
	size_t limit; /* bytes of results */
	size_t names_left; /* READDIRPLUS: dircount */
};

static void put_entry_head(struct xdr_out *out, const struct dir_entry *e,
			   uint64_t fileid)
{
	xdr_out_bool(out, true);
	xdr_out_u64(out, fileid);
	xdr_out_opaque(out, e->name, (uint32_t)strlen(e->name));
	xdr_out_u64(out, e->cookie);
}

static int attr_of_entry(const struct listing *l, const struct dir_entry *e,
			 const struct fs_handle *h, struct fs_attr *out)
{
	struct fs_file *f = file_find(l->r->fs, l->r->export->volume, h);
	struct stat st;
	int ret;

	if (f) {
		ret = attr_get(f, l->r->export, out);
		file_put(f);
		return ret;
	}
	if (fstatat(l->dir->fd, e->name, &st, AT_SYMLINK_NOFOLLOW))
		return -errno;
	attr_from_stat(&st, l->r->export, out);
	return 0;
}

/* Attributes and handle behind an entry's head. */
static void put_entry_plus(const struct listing *l, const struct dir_entry *e)
{
	struct xdr_out *out = &l->call->out;
	bool parent = !strcmp(e->name, "..");
	struct fs_handle h;
	struct fs_attr a;

	if (parent || !l->may_search ||
	    fs_export_handle(l->r->export, l->dir->fd, e->name,
			     strcmp(e->name, ".") ? l->dir->ino : 0, e->name,
			     &h) ||
	    attr_of_entry(l, e, &h, &a)) {
		xdr_out_bool(out, false);
		xdr_out_bool(out, false);
		return;
	}
	nfs3_put_post_attr(out, &a);
	xdr_out_bool(out, true);
	nfs3_put_handle(out, l->r, &h);
}

/* False: it did not fit, and nothing was written. */
static bool put_entry(struct listing *l, const struct dir_entry *e)
{
	struct xdr_out *out = &l->call->out;
	size_t start = xdr_out_len(out), names = 0;
	uint64_t fileid = e->fileid;

	/* The export has no parent that a client could see. */
	if (l->dir->ino == l->r->export->root_ino && !strcmp(e->name, ".."))
		fileid = l->dir->ino;
	if (l->plus) {
		names = 24 + strlen(e->name);
		if (names > l->names_left)
			return false;
	}
	put_entry_head(out, e, fileid);
	if (l->plus)
		put_entry_plus(l, e);
	if (out->overflow || xdr_out_len(out) + 8 > l->limit) {
		xdr_out_rewind(out, start);
		return false;
	}
	l->names_left -= names;
	return true;
}

/* Entries, the end of the list and eof; -EMSGSIZE if not one fits. */
static int put_entries(struct listing *l, struct dir_list *list)
{
	struct xdr_out *out = &l->call->out;
	struct dir_entry e;
	bool any = false;
	int ret;

	while ((ret = dir_next(list, &e)) > 0) {
		if (!put_entry(l, &e))
			break;
		any = true;
	}
	if (ret < 0 && !any)
		return ret;
	if (ret > 0 && !any)
		return -EMSGSIZE;
	xdr_out_bool(out, false);
	xdr_out_bool(out, !ret);
	return 0;
}

static enum rpc_status list(struct rpc_call *call, const xdr_nfs3_fh *fh,
			    uint64_t cookie, uint32_t names, uint32_t count,
			    bool plus)
{
	struct listing l = { .call = call, .plus = plus, .names_left = names };
	struct xdr_out *out = &call->out;
	struct fs_file *dir = NULL;
	struct fs_request r;
	struct dir_list host;
	unsigned rights = 0;
	size_t start;
	int ret;

	if (!nfs_try_block(call, fh))
		return RPC_AGAIN;
	l.limit = min_of(count, LISTING_MAX);
	if (rpc_reply_reserve(call, LISTING_MAX + LISTING_FRAME))
		return RPC_SYSTEM_ERR;
	start = xdr_out_len(out);
	l.limit += start;
	ret = nfs3_open(call, fh, &r, &dir);
	if (!ret)
		ret = dir_start(&r, dir, cookie, &host);
	if (!ret) {
		l.r = &r;
		l.dir = dir;
		l.may_search = plus && !access_rights(dir, &r.cred, &rights) &&
			       rights & ACCESS_EXEC;
		nfs3_put_status(out, 0);
		nfs3_put_post_attr_of(out, &r, dir);
		nfs3_put_verifier(out, 0);
		ret = put_entries(&l, &host);
		dir_end(&host);
	}
	if (ret) {
		xdr_out_rewind(out, start);
		nfs3_put_status(out, ret);
		nfs3_put_post_attr_of(out, &r, dir);
	}
	file_put(dir);
	return RPC_SUCCESS;
}

enum rpc_status nfs3_readdir(struct rpc_call *call, void *args)
{
	const struct nfs3_readdir_args *a = args;

	return list(call, &a->dir, a->cookie, 0, a->count, false);
}

enum rpc_status nfs3_readdirplus(struct rpc_call *call, void *args)
{
	const struct nfs3_readdirplus_args *a = args;

	return list(call, &a->dir, a->cookie, a->dircount, a->maxcount, true);
}

/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * READ, WRITE and COMMIT.
 *
 * Happy path: what the cache can do at once is done on the thread that read the
 * request. Only when it answers that it would have to wait does the call say
 * that it is about to block, and is done again; -EINPROGRESS here means that too
 * many are blocked, and that rpc/ is to run the call again later.
 *
 * A WRITE's payload is received into page-aligned memory at the same offset
 * within a page as in the file, so that the middle of a direct WRITE is aligned
 * in memory whatever the file offset. Whole pages are private folios, which
 * become the file's when the WRITE is carried out: all bytes are here then, and
 * rights were checked.
 *
 * Failure modes: the status and the file's attributes as far as they are known.
 */
#include "nfs/nfs3.h"

#include "fs/io.h"

#include <assert.h>
#include <errno.h>
#include <string.h>
#include <sys/stat.h>

/* ---- READ ---- */

/* What has to stay until a reply is sent: in front of the data. */
struct read_memory {
	struct buffer *buf;
	struct iovec iov;
	struct loan loan;
};

#define READ_MEMORY (2 * BUFFER_PAGE)
_Static_assert(sizeof(struct read_memory) <= READ_MEMORY, "it is in front");

static void release_buffer(void *arg)
{
	buffer_put(arg);
}

static void release_loan(void *arg)
{
	struct read_memory *m = arg;

	loan_end(&m->loan);
	buffer_put(m->buf);
}

static int do_read(struct rpc_call *call, const struct nfs3_read_args *a,
		   const struct fs_request *r, struct fs_file *f,
		   struct fs_read *rd)
{
	int ret;

	if (a->offset > INT64_MAX && f->type == S_IFREG) {
		/* Beyond any file's end: nothing is there. */
		rd->eof = true;
		rd->after_valid = !attr_get(f, r->export, &rd->after);
		return access_check(f, &r->cred, ACCESS_READ);
	}
	if (f->type != S_IFREG)
		return f->type == S_IFDIR ? -EISDIR : -EINVAL;
	ret = io_read(r, f, rd, true);
	if (ret != -EAGAIN)
		return ret;
	if (!nfs_try_block(call, &a->file))
		return -EINPROGRESS;
	return io_read(r, f, rd, false);
}

static void put_data(struct rpc_call *call, struct read_memory *m,
		     const struct fs_read *rd)
{
	int ret;

	if (!rd->len) {
		buffer_put(m->buf);
		return;
	}
	if (rd->lent) {
		ret = rpc_reply_bulk(call, m->loan.iov, m->loan.nr, rd->len,
				     release_loan, m);
		assert(!ret);
		return;
	}
	m->iov = (struct iovec){ .iov_base = rd->data, .iov_len = rd->len };
	ret = rpc_reply_bulk(call, &m->iov, 1, rd->len, release_buffer, m->buf);
	/* It is the reply's first piece. */
	assert(!ret);
}

enum rpc_status nfs3_read(struct rpc_call *call, void *args)
{
	const struct nfs3_read_args *a = args;
	struct fs_read rd = { .off = (int64_t)a->offset,
			      .count = min_of(a->count, FS_IO_MAX) };
	struct xdr_out *out = &call->out;
	struct fs_file *f = NULL;
	struct read_memory *m;
	struct fs_request r;
	struct buffer *buf;
	int ret;

	buf = buffer_get(&nfs_of(call)->buffers,
			 READ_MEMORY + FS_READ_ROOM(rd.count));
	if (!buf)
		return RPC_SYSTEM_ERR;
	m = (struct read_memory *)buf->data;
	m->buf = buf;
	rd.buf = buf->data + READ_MEMORY;
	rd.loan = &m->loan;
	ret = nfs3_open(call, &a->file, &r, &f);
	if (!ret)
		ret = do_read(call, a, &r, f, &rd);
	if (ret == -EINPROGRESS) {
		file_put(f);
		buffer_put(buf);
		return RPC_AGAIN;
	}
	nfs3_put_status(out, ret);
	if (ret) {
		nfs3_put_post_attr_of(out, &r, f);
		buffer_put(buf);
	} else {
		nfs3_put_post_attr(out, rd.after_valid ? &rd.after : NULL);
		xdr_out_u32(out, (uint32_t)rd.len);
		xdr_out_bool(out, rd.eof);
		xdr_out_u32(out, (uint32_t)rd.len);
		put_data(call, m, &rd);
	}
	file_put(f);
	return RPC_SUCCESS;
}

/* ---- WRITE ---- */

/* What has to stay while a payload is received and written: in the buffer's
 * first page. */
struct write_memory {
	struct buffer *buf;
	struct gift gift;
	struct iovec iov[GIFT_MAX + 2];
};
_Static_assert(sizeof(struct write_memory) <= BUFFER_PAGE, "it is in front");

/* Whole pages from which on they are received into folios: copying fewer costs
 * less than taking folios that may not be needed. */
#define GIFT_MIN (4 * BUFFER_PAGE)

static struct write_memory *write_memory_get(struct rpc_call *call, size_t len)
{
	struct buffer *buf =
		buffer_get(&nfs_of(call)->buffers, BUFFER_PAGE + len);
	struct write_memory *m = buf ? (struct write_memory *)buf->data : NULL;

	if (!buf)
		return NULL;
	m->buf = buf;
	m->gift.nr = 0;
	return m;
}

/* All of the payload in the buffer, behind its first page. */
static struct write_memory *place_in_buffer(struct rpc_call *call, uint64_t off,
					    uint32_t len, int *nr_iov)
{
	struct write_memory *m = write_memory_get(call, BUFFER_PAGE + len);

	if (!m)
		return NULL;
	m->iov[0] =
		(struct iovec){ m->buf->data + BUFFER_PAGE + off % BUFFER_PAGE,
				len };
	*nr_iov = 1;
	return m;
}

/* Whole pages in folios that may become the file's, what is left at both ends
 * in the buffer's second and third page. NULL: not for this payload. */
static struct write_memory *place_in_gift(struct rpc_call *call, uint64_t off,
					  uint32_t len, int *nr_iov)
{
	uint32_t first = (uint32_t)(-off % BUFFER_PAGE);
	uint32_t pages, last;
	struct write_memory *m;
	int nr = 0, nr_gift;

	if (off > (uint64_t)INT64_MAX - len || len < first + GIFT_MIN)
		return NULL;
	pages = (len - first) / BUFFER_PAGE * BUFFER_PAGE;
	last = len - first - pages;
	m = write_memory_get(call, 2 * BUFFER_PAGE);
	if (!m)
		return NULL;
	if (first)
		m->iov[nr++] =
			(struct iovec){ m->buf->data + 2 * BUFFER_PAGE - first,
					first };
	if (gift_start(nfs_of(call)->fs->options.cache, (int64_t)(off + first),
		       pages, &m->gift, m->iov + nr, &nr_gift)) {
		buffer_put(m->buf);
		return NULL;
	}
	nr += nr_gift;
	if (last)
		m->iov[nr++] =
			(struct iovec){ m->buf->data + 2 * BUFFER_PAGE, last };
	*nr_iov = nr;
	return m;
}

int nfs3_write_place(struct rpc_call *call, struct xdr_in *args, size_t left,
		     struct rpc_place *place)
{
	size_t before = xdr_in_left(args);
	struct nfs3_write_args a;
	struct write_memory *m;
	uint32_t len;

	if (xdr_get_nfs3_write_args(args, &a) || xdr_get_u32(args, &len))
		return before < left ? -EAGAIN : -EBADMSG;
	if (!len || len > FS_IO_MAX)
		return -EBADMSG;
	m = place_in_gift(call, a.offset, len, &place->nr_iov);
	if (!m)
		m = place_in_buffer(call, a.offset, len, &place->nr_iov);
	if (!m)
		return -ENOMEM;
	place->iov = m->iov;
	place->head_len = (uint32_t)(before - xdr_in_left(args));
	place->len = len;
	place->arg = m;
	return 0;
}

void nfs3_write_unplace(struct rpc_call *call, struct rpc_place *place)
{
	struct write_memory *m = place->arg;

	gift_end(&m->gift);
	buffer_put(m->buf);
}

/* The gift that the payload was received into, if it was. */
static struct gift *gift_of(struct rpc_call *call)
{
	struct write_memory *m = call->bulk.arg;

	return call->bulk.len && m->gift.nr ? &m->gift : NULL;
}

static int do_write(struct rpc_call *call, const struct nfs3_write_args *a,
		    const struct fs_request *r, struct fs_file *f,
		    struct fs_write *w)
{
	int ret;

	if (a->offset > INT64_MAX)
		return -EFBIG;
	ret = io_write(r, f, w, true);
	if (ret != -EAGAIN)
		return ret;
	if (!nfs_try_block(call, &a->file)) {
		if (!w->gift || !w->gift->used)
			return -EINPROGRESS;
		/* What is the file's cannot be written anew: it goes on, one
		 * more than are meant to wait. */
		rpc_about_to_block(call);
	}
	return io_write(r, f, w, false);
}

enum rpc_status nfs3_write(struct rpc_call *call, void *args)
{
	const struct nfs3_write_args *a = args;
	struct iovec iov[FS_IOV_MAX];
	struct fs_write w = { .off = (int64_t)a->offset,
			      .iov = iov,
			      .stable = (enum fs_stable)a->stable };
	struct xdr_out *out = &call->out;
	struct fs_file *f = NULL;
	struct fs_request r;
	uint32_t len;
	int ret;

	if (xdr_get_bulk(&call->in, FS_IO_MAX, iov, FS_IOV_MAX, &w.nr_iov,
			 &len))
		return RPC_GARBAGE_ARGS;
	/* RFC 1813, section 3.3.7: count is what is to be written. */
	if (len != a->count)
		return RPC_GARBAGE_ARGS;
	w.len = len;
	w.gift = gift_of(call);
	ret = nfs3_open(call, &a->file, &r, &f);
	if (!ret)
		ret = do_write(call, a, &r, f, &w);
	if (ret == -EINPROGRESS) {
		file_put(f);
		return RPC_AGAIN;
	}
	nfs3_put_status(out, ret);
	if (ret) {
		xdr_out_bool(out, false);
		nfs3_put_post_attr_of(out, &r, f);
	} else {
		nfs3_put_wcc(out, &w.before, w.after_valid ? &w.after : NULL);
		xdr_out_u32(out, (uint32_t)w.written);
		xdr_out_u32(out, w.committed);
		nfs3_put_verifier(out, w.verifier);
	}
	file_put(f);
	return RPC_SUCCESS;
}

/* ---- COMMIT ---- */

enum rpc_status nfs3_commit(struct rpc_call *call, void *args)
{
	const struct nfs3_commit_args *a = args;
	struct xdr_out *out = &call->out;
	struct fs_file *f = NULL;
	bool after_valid = false;
	uint64_t verifier = 0;
	struct fs_attr after;
	struct fs_request r;
	int ret;

	if (!nfs_try_block(call, &a->file))
		return RPC_AGAIN;
	ret = nfs3_open(call, &a->file, &r, &f);
	if (!ret) {
		ret = io_commit(&r, f, a->offset, a->count, &verifier,
				&after_valid, &after);
		file_put(f);
	}
	nfs3_put_status(out, ret);
	/* No attributes from before: others may have written meanwhile. */
	xdr_out_bool(out, false);
	nfs3_put_post_attr(out, after_valid ? &after : NULL);
	if (!ret)
		nfs3_put_verifier(out, verifier);
	return RPC_SUCCESS;
}

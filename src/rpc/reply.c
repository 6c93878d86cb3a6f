/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * The reply under construction.
 *
 * Results are written to one buffer (the head), which starts inside the call
 * and moves to the heap when rpc_reply_reserve() is asked for more. Bulk pieces
 * are remembered with the place in the head where they belong; at the end the
 * head is cut there:
 *
 *	mark header results | bulk 0 | padding results | bulk 1 | ...
 *
 * Failure: what does not fit makes the whole reply SYSTEM_ERR; results that are
 * half written are never sent.
 */
#include "rpc/impl.h"

#include "base/mem.h"

/* The record mark and the header before the results. */
#define HEAD_LEN (4 + RPC_ACCEPTED_LEN)

void rpc_reply_init(struct rpc_call *call)
{
	xdr_out_init(&call->out, call->reply_mem, sizeof(call->reply_mem));
	call->out.p += HEAD_LEN;
	call->nr_bulk = 0;
	call->head_owned = false;
}

int rpc_reply_reserve(struct rpc_call *call, size_t len)
{
	struct xdr_out *out = &call->out;
	size_t used = xdr_out_len(out), cap;
	uint8_t *mem;

	if (xdr_out_room(out) >= len)
		return 0;
	if (len > call->conn->server->record_max - used)
		return -EMSGSIZE;
	cap = used + len;
	mem = mem_alloc(cap);
	if (!mem)
		return -ENOMEM;
	memcpy(mem, out->start, used);
	if (call->head_owned)
		mem_free(out->start);
	call->head_owned = true;
	xdr_out_init(out, mem, cap);
	out->p += used;
	return 0;
}

int rpc_reply_bulk(struct rpc_call *call, const struct iovec *iov, int nr_iov,
		   size_t len, void (*release)(void *arg), void *arg)
{
	struct rpc_reply_bulk *b;
	uint8_t *pad;

	if (call->nr_bulk == RPC_BULK_MAX)
		return -ENOSPC;
	b = &call->bulks[call->nr_bulk++];
	b->head_end = xdr_out_len(&call->out);
	b->iov = iov;
	b->nr_iov = nr_iov;
	b->len = len;
	b->release = release;
	b->arg = arg;
	pad = xdr_out_hole(&call->out, xdr_pad((uint32_t)len));
	if (pad)
		memset(pad, 0, xdr_pad((uint32_t)len));
	return 0;
}

static void reply_release(struct rpc_call *call)
{
	for (int i = 0; i < call->nr_bulk; i++)
		if (call->bulks[i].release)
			call->bulks[i].release(call->bulks[i].arg);
	call->nr_bulk = 0;
}

void rpc_reply_reset(struct rpc_call *call)
{
	reply_release(call);
	xdr_out_rewind(&call->out, HEAD_LEN);
}

void rpc_reply_fini(struct rpc_call *call)
{
	reply_release(call);
	if (call->head_owned)
		mem_free(call->out.start);
	call->head_owned = false;
}

/* The header, behind the mark. Replies other than success have no results. */
static void reply_header(struct rpc_call *call, enum rpc_status status,
			 struct xdr_out *out)
{
	struct rpc_header *h = &call->head;

	switch (status) {
	case RPC_TOOWEAK:
		rpc_put_auth_error(out, h->xid, RPC_AUTH_TOOWEAK);
		break;
	case RPC_SUCCESS:
	case RPC_PROG_UNAVAIL:
	case RPC_PROC_UNAVAIL:
	case RPC_GARBAGE_ARGS:
	case RPC_SYSTEM_ERR:
		rpc_put_accepted(out, h->xid, status);
		break;
	default:
		rpc_put_accepted(out, h->xid, RPC_SYSTEM_ERR);
		break;
	}
}

static void reply_seal(struct rpc_call *call)
{
	uint8_t *start = call->out.start;
	size_t at = 0, total = xdr_out_len(&call->out);

	for (int i = 0; i < call->nr_bulk; i++) {
		struct rpc_reply_bulk *b = &call->bulks[i];

		call->heads[i] = (struct iovec){ start + at, b->head_end - at };
		at = b->head_end;
		total += b->len;
	}
	call->heads[call->nr_bulk] =
		(struct iovec){ start + at, xdr_out_len(&call->out) - at };
	call->reply_len = total;
	xdr_store32(start, (uint32_t)(total - 4) | RPC_LAST_FRAGMENT);
}

/* What rpc/ itself refuses: RFC 5531 checks version, then credential, then
 * program. */
void rpc_reply_refuse(struct rpc_call *call, uint32_t low, uint32_t high)
{
	struct rpc_header *h = &call->head;

	xdr_out_rewind(&call->out, 4);
	if (h->rpcvers != RPC_VERSION)
		rpc_put_rpc_mismatch(&call->out, h->xid);
	else if (h->auth != RPC_AUTH_OK)
		rpc_put_auth_error(&call->out, h->xid, h->auth);
	else
		rpc_put_prog_mismatch(&call->out, h->xid, low, high);
	reply_seal(call);
}

void rpc_reply_finish(struct rpc_call *call, enum rpc_status status)
{
	struct xdr_out head;

	if (status == RPC_SUCCESS && call->out.overflow)
		status = RPC_SYSTEM_ERR;
	if (status != RPC_SUCCESS) {
		reply_release(call);
		xdr_out_rewind(&call->out, 4);
		reply_header(call, status, &call->out);
	} else {
		xdr_out_init(&head, call->out.start + 4, RPC_ACCEPTED_LEN);
		reply_header(call, status, &head);
	}
	reply_seal(call);
}

int rpc_reply_piece(const struct rpc_call *call, int i,
		    const struct iovec **iov)
{
	if (i > 2 * call->nr_bulk)
		return -1;
	if (i % 2) {
		*iov = call->bulks[i / 2].iov;
		return call->bulks[i / 2].nr_iov;
	}
	*iov = &call->heads[i / 2];
	return 1;
}

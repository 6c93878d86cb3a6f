/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * A call, from its header to its results.
 *
 *	header -> row -> reply cache -> arguments -> handler -> reply -> queue
 *
 * Failure: everything that is wrong with a call is answered with RFC 5531's
 * word for it; only a message that is no call at all closes its connection.
 *
 * Invariants: a call holds a reference on its connection; what it holds against
 * the limits is in charge; payload memory is given back by row->unplace()
 * exactly once, unless the handler took it.
 */
#include "rpc/impl.h"

#include "base/clock.h"
#include "base/mem.h"

struct rpc_call *rpc_call_create(struct rpc_conn *c)
{
	struct rpc_call *call = mem_alloc(sizeof(*call));

	if (!call)
		return NULL;
	/* Not the large arrays, which are written before they are read. */
	memset(call, 0, offsetof(struct rpc_call, bulks));
	atomic_fetch_add(&c->refs, 1);
	call->conn = c;
	rpc_reply_init(call);
	return call;
}

void rpc_call_charge(struct rpc_call *call, size_t bytes)
{
	struct rpc_conn *c = call->conn;
	size_t old = call->charge;

	if (bytes == old)
		return;
	call->charge = (uint32_t)bytes;
	/* Modulo 2^64, so that one addition serves both ways. */
	atomic_fetch_add(&c->bytes, (unsigned long long)(bytes - old));
	atomic_fetch_add(&c->server->bytes, (unsigned long long)(bytes - old));
	if (bytes < old)
		rpc_server_released(c->server);
}

bool rpc_call_try_charge(struct rpc_call *call, size_t bytes)
{
	const struct rpc_server *s = call->conn->server;

	rpc_call_charge(call, bytes);
	/* Others may have charged since rpc_conn_over(). */
	if (atomic_load(&s->bytes) <= atomic_load(&s->total_bytes_max) ||
	    atomic_load(&s->bytes) == bytes)
		return true;
	rpc_call_charge(call, 0);
	return false;
}

static void call_unplace(struct rpc_call *call)
{
	if (call->bulk.len)
		call->row->unplace(call, &call->bulk);
	call->bulk.len = 0;
}

/* The request's memory; its results stay. */
static void call_free_request(struct rpc_call *call)
{
	call_unplace(call);
	if (call->tail != call->tail_inline)
		mem_free(call->tail);
	call->tail = NULL;
	mem_free(call->record);
	call->record = NULL;
	if (call->buf)
		rpc_buf_put(call->buf);
	call->buf = NULL;
}

void rpc_call_free(struct rpc_call *call)
{
	struct rpc_conn *c = call->conn;

	if (call->dup)
		rpc_dup_end(c->server->dups, call->dup, NULL, 0);
	call_free_request(call);
	rpc_reply_fini(call);
	rpc_call_charge(call, 0);
	mem_free(call);
	rpc_conn_put(c);
}

/* Finds the row; low and high are the versions that there are. */
static enum rpc_status row_find(const struct rpc_server *s,
				const struct rpc_header *h,
				const struct rpc_program **program,
				const struct rpc_proc **row, uint32_t *low,
				uint32_t *high)
{
	bool known = false;

	*row = NULL;
	*low = UINT32_MAX;
	*high = 0;
	for (unsigned i = 0; i < s->opt.nr_programs; i++) {
		const struct rpc_program *p = &s->opt.programs[i];

		if (p->prog != h->prog)
			continue;
		known = true;
		*low = min_of(*low, p->vers);
		*high = max_of(*high, p->vers);
		if (p->vers != h->vers)
			continue;
		if (h->proc >= p->nr_procs || !p->procs[h->proc].name)
			return RPC_PROC_UNAVAIL;
		*program = p;
		*row = &p->procs[h->proc];
		return RPC_SUCCESS;
	}
	return known ? RPC_PROG_MISMATCH : RPC_PROG_UNAVAIL;
}

int rpc_call_header(struct rpc_server *s, struct xdr_in *in,
		    struct rpc_header *head, const struct rpc_program **program,
		    const struct rpc_proc **row)
{
	uint32_t low, high;

	*row = NULL;
	if (rpc_header_get(in, head))
		return -EBADMSG;
	if (head->rpcvers == RPC_VERSION && head->auth == RPC_AUTH_OK)
		(void)row_find(s, head, program, row, &low, &high);
	return 0;
}

/* Answers a call that has no row. */
static void call_refuse(struct rpc_call *call, struct rpc_counts *counts)
{
	struct rpc_header *h = &call->head;
	uint32_t low = 0, high = 0;
	enum rpc_status status = RPC_PROG_MISMATCH;

	if (h->rpcvers == RPC_VERSION && h->auth == RPC_AUTH_OK)
		status = row_find(call->conn->server, h, &call->program,
				  &call->row, &low, &high);
	if (h->rpcvers == RPC_VERSION && h->auth != RPC_AUTH_OK)
		rpc_count(counts, auth_errors, 1);
	else
		rpc_count(counts, bad_calls, 1);
	if (status == RPC_PROG_MISMATCH)
		rpc_reply_refuse(call, low, high);
	else
		rpc_reply_finish(call, status);
}

/* The first bytes of the call, wherever its pieces lie: the same however they
 * were received. */
static uint64_t call_sum(struct rpc_call *call)
{
	size_t n = min_of((size_t)call->record_len, (size_t)RPC_DUP_SUM_LEN);
	uint8_t bytes[RPC_DUP_SUM_LEN];
	struct xdr_in in;

	if (call->head_len >= n)
		return rpc_dup_sum(call->conn->server->dups, call->start, n);
	xdr_in_init(&in, call->start, call->head_len);
	xdr_in_append(&in, call->bulk.iov, call->bulk.nr_iov, call->tail,
		      call->tail_len);
	if (xdr_get_bytes(&in, bytes, n))
		memset(bytes, 0, sizeof(bytes));
	return rpc_dup_sum(call->conn->server->dups, bytes, n);
}

/* RPC_SUCCESS: run it; RPC_DROP; RPC_AGAIN: the reply is there already. */
static enum rpc_status call_dup(struct rpc_call *call)
{
	struct rpc_counts *counts = call->worker->counts;
	struct rpc_header *h = &call->head;
	struct rpc_dup_key key = {
		.xid = h->xid,
		.prog = h->prog,
		.vers = h->vers,
		.proc = h->proc,
		.len = call->record_len,
		.sum = call_sum(call),
	};
	size_t len;

	memcpy(key.addr, call->conn->addr, sizeof(key.addr));
	switch (rpc_dup_begin(call->conn->server->dups, &key, &call->dup,
			      call->reply_mem, &len)) {
	case RPC_DUP_NEW:
		return RPC_SUCCESS;
	case RPC_DUP_REPLAY:
		rpc_count(counts, dup_replayed, 1);
		xdr_out_rewind(&call->out, len);
		call->heads[0] = (struct iovec){ call->reply_mem, len };
		call->reply_len = len;
		return RPC_AGAIN;
	case RPC_DUP_BUSY:
		rpc_count(counts, dup_dropped, 1);
		return RPC_DROP;
	default:
		/* Out of memory. Running it unprotected might run it twice;
		 * a dropped one is sent again. */
		return RPC_DROP;
	}
}

static enum rpc_status call_handle(struct rpc_call *call)
{
	const struct rpc_proc *row = call->row;
	size_t before = (size_t)(call->args - call->start);

	xdr_in_init(&call->in, call->args, call->head_len - before);
	xdr_in_append(&call->in, call->bulk.iov, call->bulk.nr_iov, call->tail,
		      call->tail_len);
	if (row->decode && row->decode(&call->in, call->args_mem)) {
		rpc_count(call->worker->counts, bad_calls, 1);
		return RPC_GARBAGE_ARGS;
	}
	return row->run(call, call->args_mem);
}

/* Keeps the reply for copies of the call, if it is one slice. */
static void call_dup_end(struct rpc_call *call)
{
	bool keep = !call->nr_bulk && call->reply_len <= RPC_REPLY_INLINE;

	if (call->dup)
		rpc_dup_end(call->conn->server->dups, call->dup,
			    keep ? call->out.start : NULL, call->reply_len);
	call->dup = NULL;
}

/* The handler, again when another left the device between. False: parked, the
 * call is another's now. */
static bool call_run_handler(struct rpc_call *call, enum rpc_status *status)
{
	struct rpc_worker *w = call->worker;
	struct rpc_counts *counts = w->counts;

	for (;;) {
		rpc_lead_enter(w);
		*status = call_handle(call);
		rpc_lead_back(w);
		rpc_gauge_leave(call);
		/* Without having been refused it is answered SYSTEM_ERR. */
		if (*status != RPC_AGAIN || !call->gauge)
			return true;
		rpc_reply_reset(call);
		call->worker = NULL;
		if (rpc_gauge_park(call)) {
			rpc_count(counts, parked, 1);
			return false;
		}
		call->worker = w;
		call->gauge = NULL;
	}
}

static bool call_answer(struct rpc_call *call)
{
	struct rpc_worker *w = call->worker;
	enum rpc_status status = RPC_SUCCESS;

	if (!call->row) {
		call_refuse(call, w->counts);
		return true;
	}
	if (call->head.cred.flavor == RPC_AUTH_NONE &&
	    !(call->row->flags & RPC_ANYBODY)) {
		rpc_count(w->counts, auth_errors, 1);
		rpc_reply_finish(call, RPC_TOOWEAK);
		return true;
	}
	if (call->row->flags & RPC_ONCE && !call->dup) {
		status = call_dup(call);
		if (status == RPC_AGAIN)
			return true;
	}
	if (status == RPC_SUCCESS && !call_run_handler(call, &status))
		return false;
	if (status == RPC_DROP) {
		rpc_call_free(call);
		return false;
	}
	rpc_reply_finish(call, status);
	call_dup_end(call);
	return true;
}

/* Adds the call to its client's and to the handler's accounts. */
static void call_count(struct rpc_call *call)
{
	const struct rpc_program *first = call->conn->server->opt.programs;
	uint64_t ns = clock_ns() - call->start_ns;
	struct rpc_client *c = call->conn->client;

	rpc_client_count(c, ns);
	if (!call->row)
		return;
	if (call->program == first && call->head.proc < RPC_CLIENT_OPS)
		opstat_add(&c->ops[call->head.proc], call->record_len,
			   call->reply_len, ns);
	if (call->account)
		opstat_add(call->account, call->record_len, call->reply_len,
			   ns);
}

void rpc_call_run(struct rpc_worker *w, struct rpc_call *call, bool hold)
{
	call->worker = w;
	/* One that was parked has been counted. */
	if (!call->gauge)
		rpc_count(w->counts, calls, 1);
	call->gauge = NULL;
	if (!call_answer(call))
		return;
	call_free_request(call);
	call_count(call);
	rpc_send(w, call, hold && w->leading);
}

void rpc_about_to_block(struct rpc_call *call)
{
	/* What was answered before must not wait for this one. */
	if (!rpc_lead_give(call->worker))
		return;
	rpc_count(call->conn->client, wakeups, 1);
	rpc_send_flush(call->conn, call->worker->counts, false);
}

const struct sockaddr_storage *rpc_call_peer(const struct rpc_call *call)
{
	return &call->conn->peer;
}

const uint8_t *rpc_call_client(const struct rpc_call *call)
{
	return call->conn->addr;
}

void rpc_count_wakeup(struct rpc_call *call)
{
	rpc_count(call->worker->counts, wakeups, 1);
	rpc_count(call->conn->client, wakeups, 1);
}

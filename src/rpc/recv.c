/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * Receiving. All of it is done by the poller's leader, without locks and
 * without blocking; the state of a half-received record stays in the
 * connection.
 *
 *	receive -> buffer -> record complete in the buffer ---------> run
 *	                  -> long, and its row can place it: payload
 *	                     to its place, the rest to the tail -----> run
 *	                  -> long or in fragments: assembled --------> run
 *
 * A receive takes what there is, up to the buffer's size, so a batch of small
 * calls costs one; while a payload is being received, the vector is payload,
 * tail, buffer, so the next header comes along.
 *
 * Failure: a broken mark or header, the peer's close, an error: the connection
 * is closed and what was received of a record is given back. No memory, or
 * limits reached: the connection is paused, which is not an error.
 *
 * Invariants: a connection is on ready, on paused, or drained and waiting for
 * an edge of epoll; a turn ends in one of the three or in its close.
 */
#include "rpc/impl.h"

#include "base/clock.h"
#include "base/mem.h"

#include <sys/socket.h>

/* What comes of looking at the bytes received so far. */
enum parse {
	PARSE_CALL, /* a complete call */
	PARSE_ON, /* go on with the bytes left */
	PARSE_NEED, /* more bytes are needed */
	PARSE_PAUSE, /* not now */
	PARSE_TURN, /* others are to have their turn */
	PARSE_NONE, /* no placement */
	PARSE_CLOSE,
	PARSE_LOST, /* another leads now: do not touch */
};

/* What a connection has had of its turn. */
struct turn {
	unsigned calls;
	uint64_t since_ns;
};

/* A call whose record starts at start and has len bytes, head of them there. */
static struct rpc_call *conn_call(struct rpc_conn *c, const uint8_t *start,
				  uint32_t head, uint32_t len)
{
	struct rpc_call *call = rpc_call_create(c);

	if (!call)
		return NULL;
	call->start = start;
	call->head_len = head;
	call->record_len = len;
	return call;
}

static enum parse call_parse(struct rpc_call *call)
{
	struct xdr_in in;

	xdr_in_init(&in, call->start, call->head_len);
	if (rpc_call_header(call->conn->server, &in, &call->head,
			    &call->program, &call->row))
		return PARSE_CLOSE;
	call->args = in.p;
	return PARSE_CALL;
}

/* Asks the row where the payload of a long record is to go. */
static enum parse place_ask(struct rpc_conn *c, const uint8_t *p, uint32_t have,
			    uint32_t len)
{
	enum parse need =
		have < min_of(len, RPC_PEEK_MAX) ? PARSE_NEED : PARSE_NONE;
	const struct rpc_program *program;
	const struct rpc_proc *row;
	struct rpc_header head;
	struct rpc_call *call;
	struct xdr_in in;
	int err;

	xdr_in_init(&in, p, have);
	if (rpc_call_header(c->server, &in, &head, &program, &row))
		return need;
	if (!row || !row->place)
		return PARSE_NONE;
	call = conn_call(c, p, have, len);
	if (!call)
		return PARSE_PAUSE;
	call->head = head;
	call->program = program;
	call->row = row;
	call->args = in.p;
	err = row->place(call, &in, len - (size_t)(call->args - p),
			 &call->bulk);
	if (!err) {
		c->placing = call;
		return PARSE_ON;
	}
	call->bulk.len = 0;
	rpc_call_free(call);
	if (err == -EAGAIN)
		return need;
	return err == -ENOMEM ? PARSE_PAUSE : PARSE_NONE;
}

/* Checks what the row said, and turns the connection to the payload. */
static enum parse place_start(struct rpc_conn *c, uint32_t have, uint32_t len)
{
	struct rpc_call *call = c->placing;
	uint32_t before = (uint32_t)(call->args - call->start);
	uint64_t end = (uint64_t)before + call->bulk.head_len + call->bulk.len;
	uint32_t head = before + call->bulk.head_len;
	enum parse r = PARSE_NONE;

	if (!call->bulk.len || call->bulk.head_len > have - before ||
	    end + xdr_pad(call->bulk.len) > len || len - end > RPC_TAIL_MAX)
		goto none;
	call->tail_len = len - (uint32_t)end;
	call->tail = call->tail_len <= sizeof(call->tail_inline)
			     ? call->tail_inline
			     : mem_alloc(call->tail_len);
	if (!call->tail)
		goto none;
	c->want_bytes = sizeof(*call) + c->buf->cap + len;
	if (!rpc_call_try_charge(call, c->want_bytes)) {
		r = PARSE_PAUSE;
		goto none;
	}
	call->head_len = head;
	call->buf = c->buf;
	atomic_fetch_add(&c->buf->refs, 1);
	c->buf->start += 4 + head;
	c->place_iov = 0;
	c->place_off = 0;
	c->place_left = call->bulk.len;
	c->bulk_memory = RPC_BULK_MEMORY;
	return PARSE_ON;
none:
	c->placing = NULL;
	rpc_call_free(call);
	return r;
}

/* Moves the place of the payload by n bytes, copying them from p if given. */
static void place_advance(struct rpc_conn *c, const uint8_t *p, size_t n)
{
	const struct rpc_place *bulk = &c->placing->bulk;
	size_t take;

	c->place_left -= (uint32_t)n;
	while (n) {
		const struct iovec *iov = &bulk->iov[c->place_iov];

		take = min_of(n, iov->iov_len - c->place_off);
		if (p && take) {
			memcpy((uint8_t *)iov->iov_base + c->place_off, p,
			       take);
			p += take;
		}
		n -= take;
		c->place_off += take;
		if (c->place_off == iov->iov_len) {
			c->place_iov++;
			c->place_off = 0;
		}
	}
}

/* Takes payload and tail from the buffer: the call, if that was all. */
static enum parse place_feed(struct rpc_conn *c, struct rpc_call **out,
			     struct rpc_counts *counts)
{
	struct rpc_call *call = c->placing;
	struct rpc_buf *b = c->buf;
	uint32_t n = min_of(rpc_buf_len(b), c->place_left);

	if (n) {
		place_advance(c, b->data + b->start, n);
		b->start += n;
		rpc_count(counts, placed_copied, n);
	}
	n = min_of(rpc_buf_len(b), call->tail_len - call->tail_have);
	if (n) {
		memcpy(call->tail + call->tail_have, b->data + b->start, n);
		call->tail_have += n;
		b->start += n;
	}
	c->want = RPC_BULK_AHEAD;
	if (c->place_left || call->tail_have < call->tail_len)
		return PARSE_NEED;
	c->placing = NULL;
	*out = call;
	rpc_count(counts, placed, 1);
	return PARSE_CALL;
}

/* The next record at the buffer's start, if it needs no other treatment. */
static enum parse record_parse(struct rpc_conn *c, struct rpc_call **out,
			       struct rpc_counts *counts)
{
	struct rpc_buf *b = c->buf;
	uint32_t avail = rpc_buf_len(b), len, have;
	const uint8_t *p = b ? b->data + b->start : NULL;
	enum parse r = PARSE_NONE;

	c->want = 4;
	if (avail < 4)
		return PARSE_NEED;
	len = xdr_load32(p) & ~RPC_LAST_FRAGMENT;
	if (len > c->server->record_max)
		return PARSE_CLOSE;
	if (!(xdr_load32(p) & RPC_LAST_FRAGMENT)) {
		c->assembling = true;
		return PARSE_ON;
	}
	c->want_bytes = sizeof(**out) + len;
	if (rpc_conn_over(c, c->want_bytes))
		return PARSE_PAUSE;
	p += 4;
	have = min_of(avail - 4, len);
	if (len > RPC_PLACE_MIN) {
		c->want_bytes = 0;
		r = place_ask(c, p, have, len);
		if (r == PARSE_ON)
			r = place_start(c, have, len);
	}
	if (r == PARSE_NEED)
		c->want = 4 + min_of(len, RPC_PEEK_MAX);
	if (r != PARSE_NONE)
		return r;
	if (have < len) {
		c->assembling = len > RPC_IN_PLACE_MAX;
		c->want = 4 + len;
		return c->assembling ? PARSE_ON : PARSE_NEED;
	}
	*out = conn_call(c, p, len, len);
	if (!*out)
		return PARSE_PAUSE;
	(*out)->buf = b;
	atomic_fetch_add(&b->refs, 1);
	b->start += 4 + len;
	rpc_call_charge(*out, sizeof(**out) + len);
	return call_parse(*out);
}

/* Feeds the buffer to the record that is put together. */
static enum parse record_assemble(struct rpc_conn *c, struct rpc_call **out,
				  struct rpc_counts *counts)
{
	struct rpc_buf *b = c->buf;
	struct rpc_call *call;
	uint32_t len;
	size_t used;
	int r;

	c->want = 4;
	/* If it has to grow it doubles. */
	c->want_bytes = max_of(c->rec.cap, RPC_BUF_LEN);
	if (c->rec.len + rpc_buf_len(b) > c->rec.cap &&
	    rpc_conn_over(c, c->want_bytes))
		return PARSE_PAUSE;
	c->want_bytes = 0;
	r = rpc_record_feed(&c->rec, b ? b->data + b->start : NULL,
			    rpc_buf_len(b), &used);
	if (r < 0)
		return PARSE_CLOSE;
	if (used)
		b->start += (uint32_t)used;
	rpc_conn_charge_record(c, c->rec.cap);
	if (!r)
		return PARSE_NEED;
	c->assembling = false;
	rpc_count(counts, assembled, 1);
	call = conn_call(c, c->rec.data, c->rec.len, c->rec.len);
	if (!call)
		return PARSE_CLOSE;
	call->record = rpc_record_take(&c->rec, &len);
	rpc_conn_charge_record(c, 0);
	rpc_call_charge(call, sizeof(*call) + len);
	*out = call;
	return call_parse(call);
}

static enum parse call_next(struct rpc_conn *c, struct rpc_call **out,
			    struct rpc_counts *counts)
{
	enum parse r;

	do {
		*out = NULL;
		if (c->placing)
			r = place_feed(c, out, counts);
		else if (c->assembling)
			r = record_assemble(c, out, counts);
		else
			r = record_parse(c, out, counts);
	} while (r == PARSE_ON);
	if (r == PARSE_CLOSE && *out)
		rpc_call_free(*out);
	return r;
}

static void conn_flush(struct rpc_worker *w, struct rpc_conn *c)
{
	if (!c->batch_ns)
		return;
	c->batch_ns = 0;
	rpc_send_flush(c, w->counts, false);
}

/* Runs one call; PARSE_ON: w leads still, and the turn goes on. */
static enum parse conn_run(struct rpc_worker *w, struct rpc_conn *c,
			   struct rpc_call *call, struct turn *turn)
{
	uint64_t now = clock_ns();

	if (c->bulk_memory && !call->bulk.len)
		c->bulk_memory--;
	atomic_store_explicit(&c->record_ns, 0, memory_order_relaxed);
	rpc_conn_charge_record(c, 0);
	if (c->batch_ns && now - c->batch_ns > RPC_BATCH_NS)
		conn_flush(w, c);
	if (!c->batch_ns)
		c->batch_ns = now;
	if (!turn->since_ns)
		turn->since_ns = now;
	call->start_ns = now;
	rpc_call_run(w, call, true);
	if (!w->leading)
		return PARSE_LOST;
	if (++turn->calls == RPC_TURN_CALLS ||
	    now - turn->since_ns > RPC_TURN_NS)
		return PARSE_TURN;
	return PARSE_ON;
}

static enum parse conn_parse(struct rpc_worker *w, struct rpc_conn *c,
			     struct turn *turn)
{
	struct rpc_call *call;
	enum parse r;

	do {
		r = call_next(c, &call, w->counts);
		if (r == PARSE_CALL)
			r = conn_run(w, c, call, turn);
	} while (r == PARSE_ON);
	return r;
}

/* The payload's rest, the tail's, and the buffer's room. */
static int recv_gather(struct rpc_conn *c, struct iovec *iov, size_t *asked)
{
	struct rpc_call *call = c->placing;
	struct rpc_buf *b = c->buf;
	uint32_t ahead = b->cap - b->end, left = 0, need;
	int nr = 0;

	if (call) {
		size_t off = c->place_off;

		left = c->place_left;
		for (int i = c->place_iov; left && nr < RPC_RECV_IOV; i++) {
			iov[nr].iov_base =
				(uint8_t *)call->bulk.iov[i].iov_base + off;
			iov[nr].iov_len = call->bulk.iov[i].iov_len - off;
			left -= (uint32_t)iov[nr++].iov_len;
			off = 0;
		}
	}
	if (call && !left && call->tail_have < call->tail_len)
		iov[nr++] = (struct iovec){ call->tail + call->tail_have,
					    call->tail_len - call->tail_have };
	if (!left) {
		/* Short of memory, too: what is read has to be kept. */
		if ((c->bulk_memory || atomic_load(&c->server->nr_paused)) &&
		    !c->assembling) {
			need = c->want - rpc_buf_len(b);
			need = max_of(need, RPC_BULK_AHEAD);
			ahead = min_of(ahead, need);
		}
		iov[nr++] = (struct iovec){ b->data + b->end, ahead };
	}
	*asked = 0;
	for (int i = 0; i < nr; i++)
		*asked += iov[i].iov_len;
	return nr;
}

/* Accounts n received bytes to payload, tail and buffer, in this order. */
static void recv_spread(struct rpc_conn *c, size_t n)
{
	struct rpc_call *call = c->placing;
	size_t take;

	if (call) {
		take = min_of(n, (size_t)c->place_left);
		place_advance(c, NULL, take);
		n -= take;
		take = min_of(n, (size_t)(call->tail_len - call->tail_have));
		call->tail_have += (uint32_t)take;
		n -= take;
	}
	c->buf->end += (uint32_t)n;
}

/* One receive. PARSE_ON: something came, or there is nothing for now. */
static enum parse conn_recv(struct rpc_conn *c, struct rpc_counts *counts)
{
	struct iovec iov[RPC_RECV_IOV + 2];
	struct msghdr msg = { .msg_iov = iov };
	size_t asked;
	ssize_t n;

	if (rpc_conn_room(c)) {
		c->want_bytes = 0;
		return PARSE_PAUSE;
	}
	msg.msg_iovlen = (size_t)recv_gather(c, iov, &asked);
	n = recvmsg(c->fd, &msg, MSG_DONTWAIT);
	rpc_count(counts, recvs, 1);
	if (n < 0 && errno == EAGAIN) {
		c->drained = true;
		c->hup = false;
		return PARSE_ON;
	}
	if (n < 0 && errno == EINTR)
		return PARSE_ON;
	if (n <= 0)
		return PARSE_CLOSE;
	/* A short count says that there is no more (epoll(7)), unless the
	 * peer's close is behind it. */
	c->drained = (size_t)n < asked && !c->hup;
	atomic_store_explicit(&c->recv_ns, clock_ns(), memory_order_relaxed);
	rpc_count(counts, bytes_in, (unsigned long long)n);
	atomic_fetch_add_explicit(&c->client->bytes_in, (unsigned long long)n,
				  memory_order_relaxed);
	recv_spread(c, (size_t)n);
	return PARSE_ON;
}

/* Everything received is used as far as it goes, and there is no more. */
static void conn_drained(struct rpc_conn *c)
{
	bool partial = c->placing || c->assembling || rpc_buf_len(c->buf);

	if (partial && !atomic_load(&c->record_ns))
		atomic_store(&c->record_ns, clock_ns());
	rpc_conn_buf_shrink(c);
	rpc_conn_charge_record(c, c->rec.cap + (c->buf ? c->buf->cap : 0));
	rpc_conn_unlist(c);
}

bool rpc_conn_turn(struct rpc_worker *w, struct rpc_conn *c)
{
	struct turn turn = { 0 };
	enum parse r;

	for (;;) {
		r = conn_parse(w, c, &turn);
		if (r == PARSE_LOST)
			return false;
		conn_flush(w, c);
		if (r == PARSE_CLOSE)
			rpc_count(w->counts, closed_bad, 1);
		if (r == PARSE_NEED && c->drained) {
			conn_drained(c);
			rpc_near_turn(w, c);
			return true;
		}
		if (r == PARSE_NEED)
			r = conn_recv(c, w->counts);
		/* Of no use to wait for, if its peer has gone. */
		if (r == PARSE_PAUSE && c->hup)
			r = PARSE_CLOSE;
		if (r == PARSE_PAUSE)
			rpc_conn_pause(c, w->counts);
		if (r == PARSE_TURN)
			rpc_conn_rotate(c);
		if (r == PARSE_CLOSE)
			rpc_conn_close(c);
		if (r != PARSE_ON)
			return true;
	}
}

/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * Replies to a socket.
 *
 * Finished replies are queued on their connection. Whoever finds nobody
 * sending becomes the sender: it gathers a vector from the queue under the
 * lock, sends it without the lock and without blocking, and goes on until the
 * queue is empty or the socket takes no more. Then the rest waits for EPOLLOUT,
 * and no thread with it. A worker that has more requests of the connection in
 * hand holds its replies back, for one send (rpc_send's hold).
 *
 * Failure: a send error kills the connection: what is queued is released, and
 * shutdown(2) makes the poller's leader close it.
 *
 * EPOLLOUT may come between a send that found the socket full and the note of
 * that: writable tells the sender to try again.
 *
 * Invariants: while sending is set only the sender takes from the queue's head
 * and uses tx_*; others only append. The queue is bounded by the bytes in
 * flight, for which the connection is not read.
 */
#include "rpc/impl.h"

#include "base/clock.h"

#include <sys/socket.h>

/* Collects the unsent memory of the queue: returns the number of vectors. */
static int out_gather_locked(struct rpc_conn *c, struct iovec *to)
	REQUIRES(c->lock)
{
	int piece = c->tx_piece, at = c->tx_iov, nr = 0, nr_iov;
	size_t off = c->tx_off;
	const struct iovec *iov;
	struct rpc_call *call;

	cds_list_for_each_entry (call, &c->out, link) {
		while ((nr_iov = rpc_reply_piece(call, piece, &iov)) >= 0) {
			for (; at < nr_iov; at++, off = 0) {
				if (nr == RPC_SEND_IOV)
					return nr;
				if (iov[at].iov_len == off)
					continue;
				to[nr].iov_base =
					(uint8_t *)iov[at].iov_base + off;
				to[nr++].iov_len = iov[at].iov_len - off;
			}
			at = 0;
			piece++;
		}
		piece = 0;
	}
	return nr;
}

/* Moves within the first reply by at most n bytes; *n is what is left. True:
 * the reply is sent. */
static bool out_advance_call(struct rpc_conn *c, struct rpc_call *call,
			     size_t *n)
{
	const struct iovec *iov;
	size_t left;
	int nr_iov;

	while ((nr_iov = rpc_reply_piece(call, c->tx_piece, &iov)) >= 0) {
		while (c->tx_iov < nr_iov) {
			left = iov[c->tx_iov].iov_len - c->tx_off;
			if (*n < left) {
				c->tx_off += *n;
				*n = 0;
				return false;
			}
			*n -= left;
			c->tx_off = 0;
			c->tx_iov++;
		}
		c->tx_iov = 0;
		c->tx_piece++;
	}
	c->tx_piece = 0;
	return true;
}

static void out_advance_locked(struct rpc_conn *c, size_t n,
			       struct cds_list_head *done) REQUIRES(c->lock)
{
	struct rpc_call *call;

	c->out_bytes -= n;
	while (!cds_list_empty(&c->out)) {
		call = cds_list_first_entry(&c->out, struct rpc_call, link);
		if (!out_advance_call(c, call, &n))
			return;
		cds_list_del(&call->link);
		cds_list_add_tail(&call->link, done);
	}
}

static void calls_free(struct cds_list_head *calls)
{
	struct rpc_call *call, *next;

	cds_list_for_each_entry_safe (call, next, calls, link)
		rpc_call_free(call);
}

/* Marks it dead and takes its queue, unless a sender will. */
static void conn_kill_locked(struct rpc_conn *c, struct cds_list_head *calls)
	REQUIRES(c->lock)
{
	atomic_store(&c->dead, true);
	if (c->sending)
		return;
	cds_list_splice(&c->out, calls);
	CDS_INIT_LIST_HEAD(&c->out);
	c->out_bytes = 0;
}

void rpc_send_kill(struct rpc_conn *c)
{
	CDS_LIST_HEAD(calls);

	mutex_lock(&c->lock);
	conn_kill_locked(c, &calls);
	mutex_unlock(&c->lock);
	shutdown(c->fd, SHUT_RDWR);
	calls_free(&calls);
}

/* What a send returned, n bytes or -errno: true if there is more to send. */
static bool send_account(struct rpc_conn *c, ssize_t n,
			 struct cds_list_head *done)
{
	bool more = false, bad = false;

	mutex_lock(&c->lock);
	if (n >= 0) {
		atomic_store_explicit(&c->stuck_ns, 0, memory_order_relaxed);
		out_advance_locked(c, (size_t)n, done);
		more = !cds_list_empty(&c->out);
	} else if (n == -EINTR || (n == -EAGAIN && c->writable)) {
		more = true;
	} else if (n == -EAGAIN) {
		c->blocked = true;
		if (!atomic_load_explicit(&c->stuck_ns, memory_order_relaxed))
			atomic_store_explicit(&c->stuck_ns, clock_ns(),
					      memory_order_relaxed);
	} else {
		bad = true;
	}
	if (bad || atomic_load(&c->dead)) {
		c->sending = false;
		conn_kill_locked(c, done);
		more = false;
	}
	c->sending = more;
	mutex_unlock(&c->lock);
	if (bad)
		shutdown(c->fd, SHUT_RDWR);
	return more;
}

void rpc_send_flush(struct rpc_conn *c, struct rpc_counts *counts,
		    bool writable)
{
	struct iovec iov[RPC_SEND_IOV];
	struct msghdr msg = { .msg_iov = iov };
	CDS_LIST_HEAD(done);
	bool more;
	ssize_t n;

	mutex_lock(&c->lock);
	if (writable) {
		c->writable = true;
		c->blocked = false;
	}
	more = !c->sending && !c->blocked && !cds_list_empty(&c->out);
	c->sending |= more;
	mutex_unlock(&c->lock);
	while (more) {
		mutex_lock(&c->lock);
		c->writable = false;
		msg.msg_iovlen = (size_t)out_gather_locked(c, iov);
		mutex_unlock(&c->lock);
		n = sendmsg(c->fd, &msg, MSG_DONTWAIT | MSG_NOSIGNAL);
		rpc_count(counts, sends, 1);
		if (n < 0) {
			n = -errno;
		} else {
			rpc_count(counts, bytes_out, (unsigned long long)n);
			atomic_fetch_add_explicit(&c->sent,
						  (unsigned long long)n,
						  memory_order_relaxed);
			atomic_fetch_add_explicit(&c->client->bytes_out,
						  (unsigned long long)n,
						  memory_order_relaxed);
		}
		more = send_account(c, n, &done);
	}
	calls_free(&done);
}

void rpc_send(struct rpc_worker *w, struct rpc_call *call, bool hold)
{
	struct rpc_conn *c = call->conn;
	bool dead;

	rpc_call_charge(call, call->reply_len);
	mutex_lock(&c->lock);
	dead = atomic_load(&c->dead);
	if (!dead) {
		cds_list_add_tail(&call->link, &c->out);
		c->out_bytes += call->reply_len;
		hold = hold && c->out_bytes < RPC_BATCH_BYTES;
		/* The call may be gone once the lock is: keep c. */
		atomic_fetch_add(&c->refs, 1);
	}
	mutex_unlock(&c->lock);
	if (dead) {
		rpc_call_free(call);
		return;
	}
	if (!hold)
		rpc_send_flush(c, w->counts, false);
	rpc_conn_put(c);
}

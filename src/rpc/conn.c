/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * Connections: their life, their memory, and the lists they are on.
 *
 *	accept -> ready <-> drained (waits for an edge of epoll)
 *	            |  <-> paused  (limits, no memory)
 *	            v
 *	          closed -> freed with the last call that holds it
 *
 * An idle connection costs this structure and no buffer.
 *
 * Invariants: is_ready and is_paused say which of the poller's lists it is on;
 * the number of paused ones is counted in poller and server; bytes is the sum
 * of the charges of its calls and of the record being assembled.
 */
#include "rpc/impl.h"

#include "base/clock.h"
#include "base/mem.h"

#include <netinet/in.h>
#include <sys/socket.h>
#include <unistd.h>

void rpc_buf_put(struct rpc_buf *b)
{
	if (atomic_fetch_sub(&b->refs, 1) == 1)
		mem_free(b);
}

void rpc_address(const struct sockaddr_storage *peer, uint8_t to[16])
{
	const struct sockaddr_in6 *in6 = (const void *)peer;
	const struct sockaddr_in *in4 = (const void *)peer;

	memset(to, 0, 16);
	if (peer->ss_family == AF_INET6) {
		memcpy(to, &in6->sin6_addr, 16);
	} else if (peer->ss_family == AF_INET) {
		to[10] = to[11] = 0xff;
		memcpy(to + 12, &in4->sin_addr, 4);
	}
}

unsigned rpc_conn_client_conns(struct rpc_server *s,
			       const struct sockaddr_storage *peer)
{
	uint8_t addr[16];

	rpc_address(peer, addr);
	return atomic_load(&rpc_client_get(s->clients, addr)->conns);
}

/* Off its poller; epoll still has it. */
static void conn_leave(struct rpc_conn *c)
{
	struct rpc_poller *p = c->poller;

	mutex_lock(&p->lock);
	cds_list_del(&c->link);
	mutex_unlock(&p->lock);
	atomic_fetch_sub(&p->nr_conns, 1);
}

/* It is p's leader's from the moment that epoll has it. */
static int conn_join(struct rpc_conn *c, struct rpc_poller *p)
{
	struct epoll_event ev = { .events = EPOLLIN | EPOLLOUT | EPOLLRDHUP |
					    EPOLLET,
				  .data.ptr = &c->source };
	int err;

	c->poller = p;
	mutex_lock(&p->lock);
	cds_list_add(&c->link, &p->conns);
	mutex_unlock(&p->lock);
	atomic_fetch_add(&p->nr_conns, 1);
	if (!epoll_ctl(p->epfd, EPOLL_CTL_ADD, c->fd, &ev))
		return 0;
	err = -errno;
	conn_leave(c);
	return err;
}

int rpc_conn_create(struct rpc_server *s, int fd,
		    const struct sockaddr_storage *peer)
{
	unsigned at = atomic_fetch_add(&s->next_poller, 1);
	struct rpc_poller *p = &s->pollers[at % s->opt.nr_pollers];
	struct rpc_conn *c = mem_zalloc(sizeof(*c));
	int err;

	if (!c) {
		close(fd);
		return -ENOMEM;
	}
	c->source.kind = RPC_SOURCE_CONN;
	c->fd = fd;
	c->server = s;
	c->peer = *peer;
	rpc_address(peer, c->addr);
	c->client = rpc_client_get(s->clients, c->addr);
	atomic_init(&c->refs, 1);
	atomic_init(&c->recv_ns, clock_ns());
	rpc_record_init(&c->rec, s->record_max);
	mutex_init(&c->lock, LOCK_CONN);
	CDS_INIT_LIST_HEAD(&c->out);
	CDS_INIT_LIST_HEAD(&c->ready);
	atomic_fetch_add(&s->nr_conns, 1);
	atomic_fetch_add(&c->client->conns, 1);

	rpc_near_conn(c);
	err = conn_join(c, p);
	if (err)
		rpc_conn_put(c);
	return err;
}

void rpc_conn_put(struct rpc_conn *c)
{
	if (atomic_fetch_sub(&c->refs, 1) != 1)
		return;
	close(c->fd);
	atomic_fetch_sub(&c->client->conns, 1);
	atomic_fetch_sub(&c->server->nr_conns, 1);
	mutex_fini(&c->lock);
	mem_free(c);
}

static void conn_unpause(struct rpc_conn *c)
{
	if (!atomic_load(&c->is_paused))
		return;
	atomic_store(&c->is_paused, false);
	atomic_fetch_sub(&c->poller->nr_paused, 1);
	atomic_fetch_sub(&c->server->nr_paused, 1);
}

void rpc_conn_unlist(struct rpc_conn *c)
{
	conn_unpause(c);
	cds_list_del_init(&c->ready);
	c->is_ready = false;
}

void rpc_conn_make_ready(struct rpc_conn *c)
{
	c->drained = false;
	if (c->is_ready)
		return;
	rpc_conn_unlist(c);
	c->is_ready = true;
	cds_list_add_tail(&c->ready, &c->poller->ready);
}

void rpc_conn_event(struct rpc_conn *c)
{
	/* A paused one is read again, edge or not, when it is resumed; that
	 * its peer has closed is worth knowing at once. */
	if (!atomic_load(&c->is_paused) || c->hup)
		rpc_conn_make_ready(c);
}

void rpc_conn_charge_record(struct rpc_conn *c, size_t bytes)
{
	size_t old = c->rec_charge;

	if (bytes == old)
		return;
	c->rec_charge = bytes;
	atomic_fetch_add(&c->bytes, (unsigned long long)(bytes - old));
	atomic_fetch_add(&c->server->bytes, (unsigned long long)(bytes - old));
	if (bytes < old)
		rpc_server_released(c->server);
}

/* What its poller's leader held. */
static void conn_end(struct rpc_conn *c)
{
	rpc_send_kill(c);
	if (c->placing)
		rpc_call_free(c->placing);
	c->placing = NULL;
	rpc_record_fini(&c->rec);
	rpc_conn_charge_record(c, 0);
	if (c->buf)
		rpc_buf_put(c->buf);
	c->buf = NULL;
	rpc_conn_put(c);
}

void rpc_conn_close(struct rpc_conn *c)
{
	rpc_conn_unlist(c);
	conn_leave(c);
	(void)epoll_ctl(c->poller->epfd, EPOLL_CTL_DEL, c->fd, NULL);
	conn_end(c);
}

/* Whatever happens meanwhile is told by epoll when it is added. */
void rpc_conn_move(struct rpc_conn *c, struct rpc_poller *to)
{
	(void)epoll_ctl(c->poller->epfd, EPOLL_CTL_DEL, c->fd, NULL);
	conn_leave(c);
	if (conn_join(c, to))
		conn_end(c);
}

/* Others first. */
void rpc_conn_rotate(struct rpc_conn *c)
{
	cds_list_del(&c->ready);
	cds_list_add_tail(&c->ready, &c->poller->ready);
}

/* ---- memory ---- */

/* Whether len more bytes would pass a limit. A connection, and the server,
 * that hold nothing may always take one record. */
bool rpc_conn_over(const struct rpc_conn *c, size_t len)
{
	const struct rpc_server *s = c->server;
	uint64_t mine = atomic_load(&c->bytes);
	uint64_t all = atomic_load(&s->bytes);

	return (mine && mine + len > s->opt.conn_bytes_max) ||
	       (all && all + len > atomic_load(&s->total_bytes_max));
}

/*
 * The order matters: paused is announced before the limit is looked at again,
 * and who releases bytes subtracts before looking for paused ones, so one of
 * the two sees the other.
 */
void rpc_conn_pause(struct rpc_conn *c, struct rpc_counts *counts)
{
	struct rpc_poller *p = c->poller;
	size_t held;

	rpc_conn_unlist(c);
	cds_list_add_tail(&c->ready, &p->paused);
	rpc_conn_buf_shrink(c);
	held = c->rec.cap + rpc_buf_len(c->buf);
	/*
	 * That its record is incomplete is not its fault while it waits, and a
	 * header is too little to count: many of them must not keep out the
	 * record that would come next. Whoever holds more can be cut.
	 */
	if (held <= RPC_PEEK_MAX) {
		held = 0;
		atomic_store(&c->record_ns, 0);
	} else if (!atomic_load(&c->record_ns)) {
		atomic_store(&c->record_ns, clock_ns());
	}
	rpc_conn_charge_record(c, held);
	atomic_store(&c->is_paused, true);
	atomic_fetch_add(&p->nr_paused, 1);
	atomic_fetch_add(&c->server->nr_paused, 1);
	rpc_count(counts, paused, 1);
	if (c->want_bytes && !rpc_conn_over(c, c->want_bytes))
		rpc_conn_make_ready(c);
}

static struct rpc_buf *buf_create(uint32_t cap)
{
	struct rpc_buf *b = mem_alloc(sizeof(*b) + cap);

	if (!b)
		return NULL;
	atomic_init(&b->refs, 1);
	b->start = b->end = 0;
	b->cap = cap;
	return b;
}

/* A full one, that left by the last connection first. */
static struct rpc_buf *buf_get(struct rpc_poller *p)
{
	struct rpc_buf *b = p->spare;

	p->spare = NULL;
	if (!b)
		return buf_create(RPC_BUF_LEN);
	b->start = b->end = 0;
	return b;
}

static void buf_drop(struct rpc_conn *c)
{
	struct rpc_buf *b = c->buf;

	c->buf = NULL;
	if (!c->poller->spare && b->cap == RPC_BUF_LEN &&
	    atomic_load(&b->refs) == 1)
		c->poller->spare = b;
	else
		rpc_buf_put(b);
}

static void buf_move(struct rpc_conn *c, struct rpc_buf *fresh)
{
	struct rpc_buf *b = c->buf;
	uint32_t have = rpc_buf_len(b);

	memcpy(fresh->data, b->data + b->start, have);
	fresh->end = have;
	buf_drop(c);
	c->buf = fresh;
}

void rpc_conn_buf_shrink(struct rpc_conn *c)
{
	struct rpc_buf *b = c->buf, *fresh;
	uint32_t have = rpc_buf_len(b);

	if (!b)
		return;
	if (!have) {
		buf_drop(c);
		return;
	}
	if (have > b->cap / 2)
		return;
	fresh = buf_create(have);
	if (fresh)
		buf_move(c, fresh);
}

int rpc_conn_room(struct rpc_conn *c)
{
	struct rpc_buf *b = c->buf, *fresh;

	if (!b) {
		c->buf = buf_get(c->poller);
		return c->buf ? 0 : -ENOMEM;
	}
	if (b->start == b->end && atomic_load(&b->refs) == 1)
		b->start = b->end = 0;
	if (b->cap - b->start >= c->want && b->cap - b->end >= RPC_BULK_AHEAD)
		return 0;
	fresh = buf_get(c->poller);
	if (!fresh)
		return -ENOMEM;
	buf_move(c, fresh);
	return 0;
}

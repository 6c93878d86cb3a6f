/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * Pollers and the workers that lead them.
 *
 *	idle --promoted--> leading --about to block--> running its call alone
 *	  ^                   |                             |
 *	  +---- stopping -----+         +-------------------+
 *	  |                             v
 *	  +-------- answered, parked calls run, no poller leaderless
 *
 * A poller has one leader, who alone waits in epoll_wait() for it, receives on
 * its connections and runs what it receives. Nobody else waits there, so data
 * that arrives while the leader is busy wakes nobody, and edge-triggered events
 * need no re-arming: a small request costs one receive and one send.
 *
 * Leadership is the word rpc_poller.lead. While the leader is in a handler the
 * word says so, and can be taken: by itself (rpc_about_to_block), or by the
 * ticker when the handler does not return. Taking it is one compare and swap,
 * after which another worker is promoted; the most recently idle one first,
 * its stack and caches are warm. If none is idle the poller is marked
 * leaderless for the next worker that is done.
 */
#include "rpc/impl.h"

#include "base/mem.h"

#include <assert.h>
#include <sys/eventfd.h>
#include <unistd.h>

int rpc_poller_init(struct rpc_poller *p, struct rpc_server *s)
{
	struct epoll_event ev = { .events = EPOLLIN | EPOLLET };

	p->kick.kind = RPC_SOURCE_KICK;
	p->server = s;
	mutex_init(&p->lock, LOCK_LEAF);
	CDS_INIT_LIST_HEAD(&p->ready);
	CDS_INIT_LIST_HEAD(&p->paused);
	CDS_INIT_LIST_HEAD(&p->conns);
	p->kick_fd = -1;
	p->epfd = epoll_create1(EPOLL_CLOEXEC);
	if (p->epfd < 0)
		return -errno;
	p->kick_fd = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
	ev.data.ptr = &p->kick;
	if (p->kick_fd < 0 ||
	    epoll_ctl(p->epfd, EPOLL_CTL_ADD, p->kick_fd, &ev))
		return -errno;
	return 0;
}

void rpc_poller_fini(struct rpc_poller *p)
{
	if (p->kick_fd >= 0)
		close(p->kick_fd);
	if (p->epfd >= 0)
		close(p->epfd);
	if (p->spare)
		rpc_buf_put(p->spare);
	mutex_fini(&p->lock);
}

/* Never read, so it cannot be full before 2^64 kicks; each is an edge. */
void rpc_poller_kick(struct rpc_poller *p)
{
	uint64_t one = 1;
	ssize_t n = write(p->kick_fd, &one, sizeof(one));

	assert(n == sizeof(one));
}

void rpc_poller_promote(struct rpc_poller *p, struct rpc_counts *counts)
{
	struct rpc_server *s = p->server;
	struct rpc_worker *w = NULL;

	mutex_lock(&s->lock);
	if (cds_list_empty(&s->idle)) {
		p->leaderless = true;
	} else {
		w = cds_list_first_entry(&s->idle, struct rpc_worker, idle);
		cds_list_del(&w->idle);
	}
	mutex_unlock(&s->lock);
	if (!w) {
		rpc_count(counts, leaderless, 1);
		return;
	}
	rpc_count(counts, wakeups, 1);
	atomic_store(&w->assigned, p);
	waitq_wake_one(&w->wake);
}

/* ---- the leader's word ---- */

void rpc_lead_enter(struct rpc_worker *w)
{
	struct rpc_poller *p = w->leading;

	if (!p)
		return;
	atomic_fetch_add_explicit(&p->progress, 1, memory_order_relaxed);
	atomic_store(&p->lead, w->id * 2 + 1);
}

bool rpc_lead_back(struct rpc_worker *w)
{
	unsigned running = w->id * 2 + 1;

	if (w->leading && !atomic_compare_exchange_strong(&w->leading->lead,
							  &running, w->id * 2))
		w->leading = NULL;
	return w->leading;
}

bool rpc_lead_give(struct rpc_worker *w)
{
	struct rpc_poller *p = w->leading;
	unsigned running = w->id * 2 + 1;

	if (!p)
		return false;
	w->leading = NULL;
	if (!atomic_compare_exchange_strong(&p->lead, &running, 0))
		return false;
	rpc_count(w->counts, handovers, 1);
	rpc_poller_promote(p, w->counts);
	return true;
}

bool rpc_poller_steal(struct rpc_poller *p)
{
	unsigned lead = atomic_load(&p->lead);

	if (!(lead & 1) || !atomic_compare_exchange_strong(&p->lead, &lead, 0))
		return false;
	rpc_count(p->server->counts, steals, 1);
	rpc_poller_promote(p, p->server->counts);
	return true;
}

/* ---- leading ---- */

static void poller_resume(struct rpc_poller *p)
{
	struct rpc_conn *c, *next;

	cds_list_for_each_entry_safe (c, next, &p->paused, ready)
		rpc_conn_make_ready(c);
}

static void poller_event(struct rpc_worker *w, struct rpc_poller *p,
			 const struct epoll_event *ev)
{
	struct rpc_source *source = ev->data.ptr;
	struct rpc_conn *c;

	switch (source->kind) {
	case RPC_SOURCE_KICK:
		poller_resume(p);
		break;
	case RPC_SOURCE_LISTENER:
		rpc_server_accept(p->server,
				  container_of(source, struct rpc_listener,
					       source));
		break;
	case RPC_SOURCE_CONN:
		c = container_of(source, struct rpc_conn, source);
		if (ev->events & EPOLLOUT)
			rpc_send_flush(c, w->counts, true);
		if (ev->events & (EPOLLRDHUP | EPOLLHUP | EPOLLERR))
			c->hup = true;
		if (c->hup || ev->events & EPOLLIN)
			rpc_conn_event(c);
		break;
	}
}

/* Who woke the leader: the first event's client, if it is a client. */
static void poller_woken(struct rpc_worker *w, struct rpc_source *source)
{
	struct rpc_conn *c = container_of(source, struct rpc_conn, source);

	rpc_count(w->counts, wakeups, 1);
	if (source->kind == RPC_SOURCE_CONN)
		rpc_count(c->client, wakeups, 1);
}

static void poller_poll(struct rpc_worker *w, struct rpc_poller *p, int ms)
{
	int nr = epoll_wait(p->epfd, p->events, RPC_EVENTS, ms);

	rpc_count(w->counts, polls, 1);
	if (ms && nr > 0)
		poller_woken(w, p->events[0].data.ptr);
	/* An event's connection is alive: only the leader closes them, and
	 * there is at most one event of each. */
	for (int i = 0; i < nr; i++)
		poller_event(w, p, &p->events[i]);
}

/* How many turns of ready connections between looks at the others. */
#define LEAD_TURNS 4

static void poller_lead(struct rpc_worker *w, struct rpc_poller *p)
{
	unsigned turns = 0;

	w->leading = p;
	atomic_store(&p->lead, w->id * 2);
	while (!atomic_load(&p->server->stopping)) {
		if (cds_list_empty(&p->ready))
			poller_poll(w, p, -1);
		else if (++turns % LEAD_TURNS == 0)
			poller_poll(w, p, 0);
		if (cds_list_empty(&p->ready))
			continue;
		if (!rpc_conn_turn(w, cds_list_first_entry(&p->ready,
							   struct rpc_conn,
							   ready)))
			return;
	}
	w->leading = NULL;
	atomic_store(&p->lead, 0);
}

/* ---- workers ---- */

/* Calls that waited for what this worker's call has left. */
void rpc_worker_parked(struct rpc_worker *w)
{
	struct rpc_call *call;

	while (w->left) {
		call = rpc_gauge_next(w->left);
		if (call)
			rpc_call_run(w, call, false);
		else
			w->left = NULL;
	}
}

/* A poller to lead; NULL: the server stops. */
static struct rpc_poller *worker_wait(struct rpc_worker *w)
{
	struct rpc_server *s = w->server;
	struct rpc_poller *p = NULL;

	mutex_lock(&s->lock);
	for (unsigned i = 0; i < s->opt.nr_pollers && !p; i++)
		if (s->pollers[i].leaderless)
			p = &s->pollers[i];
	if (p)
		p->leaderless = false;
	else
		cds_list_add(&w->idle, &s->idle);
	mutex_unlock(&s->lock);
	if (!p)
		wait_event(&w->wake, atomic_load(&w->assigned) ||
					     atomic_load(&s->stopping));
	if (atomic_load(&s->stopping))
		return NULL;
	return p ? p : atomic_exchange(&w->assigned, NULL);
}

void rpc_worker_main(void *worker)
{
	struct rpc_worker *w = worker;
	struct rpc_poller *p;

	while ((p = worker_wait(w))) {
		poller_lead(w, p);
		rpc_worker_parked(w);
	}
}

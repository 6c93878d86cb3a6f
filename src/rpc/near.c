/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * Connections from this host: what is sent to them is read by one of the
 * processors that send.
 *
 * A byte that one processor copies into the socket and another one copies out
 * costs both twice as much as when one does both: its cache lines travel. So a
 * connection that is sent much goes to the poller whose processor its client
 * runs on (SO_INCOMING_CPU of socket(7): where its last packet was made), that
 * poller's leader stays on that processor for as long as it sends much, and the
 * socket takes no more at a time than the processor's cache holds.
 *
 * Clients move, too: a client alone is woken on the processor that its server
 * does not use, and would be chased for ever. Each move doubles how many looks
 * must find the client elsewhere before the next one; each that finds it in
 * place takes one off. No poller gets more connections than the one that gives:
 * a client of one thread does not bring all to one processor.
 *
 * Connections from other hosts stay where they are: where their packets come in
 * is a matter of the network card, which may have one queue for all.
 */
#include "rpc/impl.h"

#include "base/clock.h"

#include <sched.h>
#include <sys/socket.h>
#include <unistd.h>

/* Sent between two looks at where a client is: some 20 us of copying. */
#define NEAR_BYTES (256u << 10)

/* Looks that must agree before a connection moves, at least and at most. */
#define NEAR_LOOKS_MIN 4u
#define NEAR_LOOKS_MAX 4096u

/* A leader that sent nothing much for so long may run anywhere again. */
#define NEAR_AGE_NS (2 * RPC_TICK_NS)

/* Less than half of a processor's second-level cache of 1 MiB, though the kernel
 * doubles it (socket(7)); just below the default of wmem_max. */
#define NEAR_SNDBUF (192 << 10)

void rpc_near_init(struct rpc_server *s)
{
	unsigned nr = 0;

	if (sched_getaffinity(0, sizeof(s->cpus), &s->cpus))
		CPU_ZERO(&s->cpus);
	for (unsigned cpu = 0; cpu < CPU_SETSIZE; cpu++)
		if (CPU_ISSET(cpu, &s->cpus) && nr < s->opt.nr_pollers)
			s->pollers[nr++].cpu = (int)cpu;
	/* One each, or a processor's clients would have no poller. */
	s->near = nr > 1 && nr == (unsigned)CPU_COUNT(&s->cpus) &&
		  nr == s->opt.nr_pollers;
}

static bool same_host(const struct rpc_conn *c)
{
	struct sockaddr_storage own = { 0 };
	socklen_t len = sizeof(own);
	uint8_t addr[16];

	if (c->peer.ss_family == AF_UNIX ||
	    getsockname(c->fd, (struct sockaddr *)&own, &len))
		return false;
	rpc_address(&own, addr);
	return !memcmp(addr, c->addr, sizeof(addr));
}

void rpc_near_conn(struct rpc_conn *c)
{
	int len = NEAR_SNDBUF;

	c->near = c->server->near && same_host(c);
	c->near_patience = NEAR_LOOKS_MIN;
	if (c->near)
		(void)setsockopt(c->fd, SOL_SOCKET, SO_SNDBUF, &len,
				 sizeof(len));
}

/* ---- the leader's processor ---- */

/* A refusal costs speed and nothing else: not asked for again either. */
static void worker_stay(struct rpc_worker *w, int cpu)
{
	struct rpc_server *s = w->server;
	cpu_set_t one;

	atomic_store_explicit(&w->near_ns, clock_ns(), memory_order_relaxed);
	if (atomic_load_explicit(&w->cpu, memory_order_relaxed) == cpu)
		return;
	CPU_ZERO(&one);
	CPU_SET((unsigned)cpu, &one);
	mutex_lock(&s->lock);
	w->tid = gettid();
	(void)sched_setaffinity(w->tid, sizeof(one), &one);
	atomic_store_explicit(&w->cpu, cpu, memory_order_relaxed);
	mutex_unlock(&s->lock);
}

void rpc_near_tick(struct rpc_server *s)
{
	uint64_t now = clock_ns();

	for (unsigned i = 0; i < s->opt.nr_workers; i++) {
		struct rpc_worker *w = &s->workers[i];

		if (atomic_load_explicit(&w->cpu, memory_order_relaxed) < 0 ||
		    atomic_load(&w->near_ns) + NEAR_AGE_NS > now)
			continue;
		mutex_lock(&s->lock);
		(void)sched_setaffinity(w->tid, sizeof(s->cpus), &s->cpus);
		atomic_store(&w->cpu, -1);
		mutex_unlock(&s->lock);
	}
}

/* ---- the client's processor ---- */

static struct rpc_poller *poller_near(const struct rpc_conn *c)
{
	struct rpc_server *s = c->server;
	int cpu = -1;
	socklen_t len = sizeof(cpu);

	if (getsockopt(c->fd, SOL_SOCKET, SO_INCOMING_CPU, &cpu, &len))
		return c->poller;
	for (unsigned i = 0; i < s->opt.nr_pollers; i++)
		if (s->pollers[i].cpu == cpu)
			return &s->pollers[i];
	return c->poller;
}

/* Whether it was elsewhere often enough. */
static bool look_says_move(struct rpc_conn *c, const struct rpc_poller *to)
{
	if (to == c->poller) {
		c->near_looks = 0;
		if (c->near_patience > NEAR_LOOKS_MIN)
			c->near_patience--;
		return false;
	}
	if (atomic_load(&to->nr_conns) > atomic_load(&c->poller->nr_conns) ||
	    ++c->near_looks < c->near_patience)
		return false;
	c->near_looks = 0;
	c->near_patience = min_of(c->near_patience * 2, NEAR_LOOKS_MAX);
	return true;
}

void rpc_near_turn(struct rpc_worker *w, struct rpc_conn *c)
{
	uint64_t sent = atomic_load_explicit(&c->sent, memory_order_relaxed);
	struct rpc_poller *to;

	if (!c->near || sent - c->near_sent < NEAR_BYTES)
		return;
	c->near_sent = sent;
	worker_stay(w, c->poller->cpu);
	to = poller_near(c);
	if (!look_says_move(c, to))
		return;
	rpc_count(w->counts, moved, 1);
	rpc_conn_move(c, to);
}

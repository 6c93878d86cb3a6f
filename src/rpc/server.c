/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * The server: its listeners, its start and its end, its clockwork.
 *
 * The ticker wakes ten times a second: it takes pollers from handlers that
 * have not returned for a whole tick without saying that they block, resumes
 * what was paused for want of memory, and once a second looks for connections
 * that are idle or too slow. It closes none itself: shutdown(2) makes the
 * connection's leader see the end.
 *
 * Stop: no more accepting and reading; workers end with their calls; then, with
 * no thread left, what is queued is sent for a while and all is closed.
 */
#include "rpc/impl.h"

#include "base/clock.h"
#include "base/log.h"
#include "base/mem.h"

#include <netinet/in.h>
#include <netinet/tcp.h>
#include <poll.h>
#include <sys/ioctl.h>
#include <sys/un.h>
#include <unistd.h>

#define RPC_WORKERS_DEFAULT 32
#define RPC_WORKERS_MAX 1024
#define RPC_CONNS_DEFAULT 16384
#define RPC_BACKLOG 128

static void options_default(struct rpc_server_options *o)
{
	unsigned cpus = task_nr_cpus();

#define DEFAULT(field, value) o->field = o->field ? o->field : (value)
	DEFAULT(nr_workers, RPC_WORKERS_DEFAULT);
	DEFAULT(nr_pollers, cpus);
	DEFAULT(conns_max, RPC_CONNS_DEFAULT);
	DEFAULT(payload_max, RPC_PAYLOAD_MAX);
	DEFAULT(conn_bytes_max, 4u << 20);
	DEFAULT(total_bytes_max, 256u << 20);
	DEFAULT(idle_ns, 360 * NS_PER_S);
	DEFAULT(record_ns, 30 * NS_PER_S);
	DEFAULT(stall_ns, NS_PER_S);
	DEFAULT(dup_age_ns, 120 * NS_PER_S);
	DEFAULT(dup_bytes_max, 8u << 20);
#undef DEFAULT
	if (o->nr_pollers > o->nr_workers / 2)
		o->nr_pollers = max_of(o->nr_workers / 2, 1u);
}

static int options_check(const struct rpc_server_options *o)
{
	uint64_t record = (uint64_t)o->payload_max + 2 * RPC_RECORD_SLACK;

	if (o->nr_workers < 2 || o->nr_workers > RPC_WORKERS_MAX ||
	    o->payload_max > 1u << 30 || o->conn_bytes_max < record ||
	    o->total_bytes_max < record)
		return -EINVAL;
	for (unsigned i = 0; i < o->nr_programs; i++) {
		const struct rpc_program *p = &o->programs[i];

		for (unsigned j = 0; j < p->nr_procs; j++)
			if (p->procs[j].args_size > RPC_ARGS_MAX ||
			    !p->procs[j].place != !p->procs[j].unplace)
				return -EINVAL;
	}
	return 0;
}

int rpc_server_create(const struct rpc_server_options *options,
		      struct rpc_server **out)
{
	struct rpc_server_options o = *options;
	struct rpc_server *s;
	unsigned i;
	int err;

	options_default(&o);
	err = options_check(&o);
	if (err)
		return err;
	s = mem_zalloc(sizeof(*s));
	if (!s)
		return -ENOMEM;
	s->opt = o;
	s->record_max = o.payload_max + RPC_RECORD_SLACK;
	atomic_init(&s->total_bytes_max, o.total_bytes_max);
	mutex_init(&s->lock, LOCK_LEAF);
	CDS_INIT_LIST_HEAD(&s->idle);
	waitq_init(&s->tick);
	s->dups = rpc_dups_create(o.dup_age_ns, o.dup_bytes_max);
	s->clients = rpc_clients_create();
	s->counts = mem_zalloc_aligned(CACHE_LINE,
				       (o.nr_workers + 1) * sizeof(*s->counts));
	s->workers = mem_zalloc_array(o.nr_workers, sizeof(*s->workers));
	s->pollers = mem_zalloc_aligned(CACHE_LINE,
					o.nr_pollers * sizeof(*s->pollers));
	err = -ENOMEM;
	if (!s->dups || !s->clients || !s->counts || !s->workers || !s->pollers)
		goto fail;
	for (i = 0; i < o.nr_pollers; i++)
		s->pollers[i].epfd = s->pollers[i].kick_fd = -1;
	for (i = 0, err = 0; i < o.nr_pollers && !err; i++)
		err = rpc_poller_init(&s->pollers[i], s);
	if (err)
		goto fail;
	*out = s;
	return 0;
fail:
	rpc_server_destroy(s);
	return err;
}

void rpc_server_destroy(struct rpc_server *s)
{
	struct rpc_listener *l;

	if (!s)
		return;
	while ((l = s->listeners)) {
		s->listeners = l->next;
		close(l->fd);
		mem_free(l);
	}
	for (unsigned i = 0; s->pollers && i < s->opt.nr_pollers; i++)
		rpc_poller_fini(&s->pollers[i]);
	mem_free(s->pollers);
	mem_free(s->workers);
	mem_free(s->counts);
	rpc_clients_destroy(s->clients);
	rpc_dups_destroy(s->dups);
	mutex_fini(&s->lock);
	mem_free(s);
}

/* ---- listening ---- */

static int listener_open(const struct sockaddr *addr, socklen_t len,
			 uint16_t *port)
{
	struct sockaddr_storage bound = { 0 };
	socklen_t bound_len = sizeof(bound);
	int one = 1, err;
	int fd = socket(addr->sa_family,
			SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);

	if (fd < 0)
		return -errno;
	if (addr->sa_family == AF_INET6)
		(void)setsockopt(fd, IPPROTO_IPV6, IPV6_V6ONLY, &one,
				 sizeof(one));
	if (addr->sa_family != AF_UNIX)
		(void)setsockopt(fd, SOL_SOCKET, SO_REUSEADDR, &one,
				 sizeof(one));
	if (bind(fd, addr, len) || listen(fd, RPC_BACKLOG) ||
	    getsockname(fd, (struct sockaddr *)&bound, &bound_len)) {
		err = -errno;
		close(fd);
		return err;
	}
	/* The port is at the same place in both structures. */
	if (port)
		*port = ntohs(((struct sockaddr_in *)&bound)->sin_port);
	return fd;
}

int rpc_server_listen(struct rpc_server *s, const struct sockaddr *addr,
		      socklen_t len, uint16_t *port)
{
	struct rpc_listener *l = mem_zalloc(sizeof(*l));
	struct epoll_event ev = { .events = EPOLLIN | EPOLLET };
	int err;

	if (!l)
		return -ENOMEM;
	l->source.kind = RPC_SOURCE_LISTENER;
	l->local = addr->sa_family == AF_UNIX;
	l->fd = listener_open(addr, len, port);
	if (l->fd < 0) {
		err = l->fd;
		mem_free(l);
		return err;
	}
	ev.data.ptr = &l->source;
	if (epoll_ctl(s->pollers[0].epfd, EPOLL_CTL_ADD, l->fd, &ev)) {
		err = -errno;
		close(l->fd);
		mem_free(l);
		return err;
	}
	l->next = s->listeners;
	s->listeners = l;
	return 0;
}

static int server_take(struct rpc_server *s, int fd,
		       const struct sockaddr_storage *peer)
{
	unsigned mine = rpc_conn_client_conns(s, peer);
	int one = 1;

	/* One address leaves room for others. */
	if (atomic_load(&s->nr_conns) >= s->opt.conns_max ||
	    mine >= max_of(s->opt.conns_max / 2, 1u)) {
		rpc_count(s->counts, conns_refused, 1);
		close(fd);
		return -EMFILE;
	}
	if (peer->ss_family != AF_UNIX) {
		(void)setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &one,
				 sizeof(one));
		(void)setsockopt(fd, SOL_SOCKET, SO_KEEPALIVE, &one,
				 sizeof(one));
	}
	rpc_count(s->counts, conns, 1);
	return rpc_conn_create(s, fd, peer);
}

void rpc_server_accept(struct rpc_server *s, struct rpc_listener *l)
{
	struct sockaddr_storage peer;
	socklen_t len;
	int fd, err;

	for (;;) {
		memset(&peer, 0, sizeof(peer));
		len = sizeof(peer);
		fd = accept4(l->fd, (struct sockaddr *)&peer, &len,
			     SOCK_CLOEXEC | SOCK_NONBLOCK);
		if (fd >= 0) {
			if (l->local)
				peer.ss_family = AF_UNIX;
			err = server_take(s, fd, &peer);
			if (err == -ENOMEM)
				log_line(LOG_WARNING, "rpc: connection "
						      "closed: no memory");
			continue;
		}
		err = errno;
		if (err == ECONNABORTED || err == EINTR)
			continue;
		/* No descriptors: the ticker asks again. */
		if (err != EAGAIN)
			atomic_store(&l->retry, true);
		return;
	}
}

int rpc_server_adopt(struct rpc_server *s, int fd)
{
	struct sockaddr_storage peer = { 0 };
	socklen_t len = sizeof(peer);

	if (getpeername(fd, (struct sockaddr *)&peer, &len))
		peer.ss_family = AF_UNIX;
	return server_take(s, fd, &peer);
}

/* ---- the clockwork ---- */

void rpc_server_released(struct rpc_server *s)
{
	if (!atomic_load(&s->nr_paused))
		return;
	for (unsigned i = 0; i < s->opt.nr_pollers; i++)
		if (atomic_load(&s->pollers[i].nr_paused))
			rpc_poller_kick(&s->pollers[i]);
}

static bool older(uint64_t since, uint64_t age, uint64_t now)
{
	return since && now > since && now - since > age;
}

/* Nothing came for so long that it holds others up, and nothing is there that
 * the server has only not read yet. */
static bool conn_stalled(const struct rpc_server *s, const struct rpc_conn *c,
			 uint64_t last, uint64_t now)
{
	int waiting = 0;

	return older(last, s->opt.stall_ns, now) &&
	       !ioctl(c->fd, FIONREAD, &waiting) && !waiting;
}

/*
 * One connection: true if it was cut. hungry: others wait for memory, and
 * whoever holds some while sending nothing has had its time.
 */
static bool conn_check(struct rpc_server *s, struct rpc_conn *c, bool hungry,
		       uint64_t now)
{
	uint64_t record = atomic_load(&c->record_ns);
	uint64_t last = atomic_load(&c->recv_ns);
	bool paused = atomic_load(&c->is_paused);
	bool idle = !atomic_load(&c->bytes) && !record &&
		    older(last, s->opt.idle_ns, now);
	bool slow = !paused &&
		    (older(record, s->opt.record_ns, now) ||
		     (record && hungry && conn_stalled(s, c, last, now)));

	slow |= older(atomic_load(&c->stuck_ns), s->opt.record_ns, now);
	if (!idle && !slow)
		return false;
	if (idle)
		rpc_count(s->counts, closed_idle, 1);
	else
		rpc_count(s->counts, closed_slow, 1);
	shutdown(c->fd, SHUT_RDWR);
	return true;
}

/* All who hold memory wait for more: some that are in the middle of a record
 * have to go, until there is room for one. Returns the bytes they held. */
static uint64_t conns_sacrifice(struct rpc_server *s, struct rpc_poller *p,
				uint64_t now, uint64_t freed)
{
	struct rpc_conn *c;

	mutex_lock(&p->lock);
	cds_list_for_each_entry (c, &p->conns, link) {
		if (freed >= s->record_max)
			break;
		if (!atomic_load(&c->is_paused) ||
		    !atomic_load(&c->record_ns) ||
		    !older(atomic_load(&c->recv_ns), s->opt.stall_ns, now))
			continue;
		freed += atomic_load(&c->bytes);
		rpc_count(s->counts, closed_slow, 1);
		shutdown(c->fd, SHUT_RDWR);
	}
	mutex_unlock(&p->lock);
	return freed;
}

/* The lock is held over shutdown(2) and ioctl(2), neither of which waits. */
static void conns_check(struct rpc_server *s)
{
	bool hungry = atomic_load(&s->nr_paused);
	uint64_t now = clock_ns(), freed = 0;
	struct rpc_conn *c;
	bool cut = false;

	for (unsigned i = 0; i < s->opt.nr_pollers; i++) {
		struct rpc_poller *p = &s->pollers[i];

		mutex_lock(&p->lock);
		cds_list_for_each_entry (c, &p->conns, link)
			cut |= conn_check(s, c, hungry, now);
		mutex_unlock(&p->lock);
	}
	for (unsigned i = 0; hungry && !cut && i < s->opt.nr_pollers; i++)
		freed = conns_sacrifice(s, &s->pollers[i], now, freed);
}

static void listeners_retry(struct rpc_server *s)
{
	struct epoll_event ev = { .events = EPOLLIN | EPOLLET };

	for (struct rpc_listener *l = s->listeners; l; l = l->next) {
		if (!atomic_exchange(&l->retry, false))
			continue;
		ev.data.ptr = &l->source;
		(void)epoll_ctl(s->pollers[0].epfd, EPOLL_CTL_MOD, l->fd, &ev);
	}
}

static void server_tick(struct rpc_server *s)
{
	for (unsigned i = 0; i < s->opt.nr_pollers; i++) {
		struct rpc_poller *p = &s->pollers[i];
		unsigned long progress = atomic_load(&p->progress);

		if (progress == p->seen_progress)
			(void)rpc_poller_steal(p);
		p->seen_progress = progress;
		if (atomic_load(&p->nr_paused))
			rpc_poller_kick(p);
	}
	listeners_retry(s);
	rpc_near_tick(s);
}

static void ticker_main(void *server)
{
	struct rpc_server *s = server;
	uint64_t next = clock_ns(), check = next + NS_PER_S;

	for (;;) {
		next += RPC_TICK_NS;
		if (wait_event_until(&s->tick, atomic_load(&s->stopping), next))
			return;
		server_tick(s);
		if (next < check)
			continue;
		conns_check(s);
		check = next + min_of(NS_PER_S, s->opt.stall_ns);
	}
}

/* ---- start and stop ---- */

int rpc_server_start(struct rpc_server *s)
{
	struct rpc_worker *w;
	unsigned i;
	int err = 0;

	s->running = true;
	rpc_near_init(s);
	for (i = 0; i < s->opt.nr_pollers; i++)
		s->pollers[i].leaderless = true;
	for (i = 0; i < s->opt.nr_workers && !err; i++) {
		w = &s->workers[i];
		w->server = s;
		w->id = i + 1;
		atomic_init(&w->cpu, -1);
		w->counts = &s->counts[i + 1];
		waitq_init(&w->wake);
		err = task_create(&w->task, "tr-rpc", rpc_worker_main, w);
	}
	if (!err)
		err = task_create(&s->ticker, "tr-rpc-tick", ticker_main, s);
	if (err)
		rpc_server_stop(s, 0);
	return err;
}

/* Without threads: sends what is queued until the deadline. */
static void conn_drain(struct rpc_conn *c, uint64_t deadline)
{
	struct pollfd pfd = { .fd = c->fd, .events = POLLOUT };
	uint64_t now;

	rpc_send_flush(c, c->server->counts, true);
	while (c->out_bytes && !atomic_load(&c->dead)) {
		now = clock_ns();
		if (now >= deadline)
			return;
		if (poll(&pfd, 1, (int)((deadline - now) / NS_PER_MS) + 1) <= 0)
			return;
		rpc_send_flush(c, c->server->counts, true);
	}
}

static void server_close(struct rpc_server *s, uint64_t drain_ns)
{
	uint64_t deadline = clock_ns() + drain_ns;
	struct rpc_conn *c, *next;

	for (unsigned i = 0; i < s->opt.nr_pollers; i++) {
		cds_list_for_each_entry_safe (c, next, &s->pollers[i].conns,
					      link) {
			conn_drain(c, deadline);
			rpc_conn_close(c);
		}
	}
}

void rpc_server_stop(struct rpc_server *s, uint64_t drain_ns)
{
	unsigned i;

	if (!s->running)
		return;
	s->running = false;
	atomic_store(&s->stopping, true);
	waitq_wake_all(&s->tick);
	for (i = 0; i < s->opt.nr_pollers; i++)
		rpc_poller_kick(&s->pollers[i]);
	for (i = 0; i < s->opt.nr_workers; i++)
		if (s->workers[i].task)
			waitq_wake_all(&s->workers[i].wake);
	if (s->ticker)
		task_join(s->ticker);
	for (i = 0; i < s->opt.nr_workers; i++)
		if (s->workers[i].task)
			task_join(s->workers[i].task);
	server_close(s, drain_ns);
}

unsigned rpc_server_nr_workers(const struct rpc_server *s)
{
	return s->opt.nr_workers;
}

void rpc_server_set_total_bytes_max(struct rpc_server *s, uint64_t max)
{
	atomic_store(&s->total_bytes_max, max);
	rpc_server_released(s);
}

void rpc_server_statistics(struct rpc_server *s, struct rpc_statistics *out)
{
	uint64_t bytes;

	memset(out, 0, sizeof(*out));
	for (unsigned i = 0; i <= s->opt.nr_workers; i++) {
#define ADD(name, sentence) out->name += atomic_load(&s->counts[i].name);
		RPC_STATISTICS(ADD)
#undef ADD
	}
	out->conns_now = atomic_load(&s->nr_conns);
	out->bytes_now = atomic_load(&s->bytes);
	rpc_dups_read(s->dups, &out->dup_evicted, &bytes);
}

void rpc_server_clients(struct rpc_server *s,
			void (*fn)(const struct rpc_client_statistics *c,
				   void *arg),
			void *arg)
{
	rpc_clients_each(s->clients, fn, arg);
}

/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * An RPC server over TCP and local stream sockets.
 *
 * Requests run straight: of the fixed pool of workers one per CPU reads
 * sockets (it leads a poller: an epoll set with its share of the connections);
 * it runs each request it reads to the reply. When a handler is about to block
 * the leader gives the poller away and goes on with its request alone.
 *
 * create, listen (any number), start, stop, destroy: from one thread. All else
 * from any.
 */
#ifndef TR_RPC_SERVER_H
#define TR_RPC_SERVER_H

#include "rpc/call.h"

#define RPC_PAYLOAD_MAX (1u << 20)

struct rpc_server_options {
	const struct rpc_program *programs; /* stay in place */
	unsigned nr_programs;
	unsigned nr_workers; /* 0: 32; at least 2 */
	unsigned nr_pollers; /* 0: one per CPU, at most half the workers */
	unsigned conns_max; /* 0: 16384; more are closed when accepted, and so
			     * are more than half of it from one address */
	uint32_t payload_max; /* 0: RPC_PAYLOAD_MAX; record: + 64 KiB */
	uint64_t conn_bytes_max; /* 0: 4 MiB in flight per connection */
	uint64_t total_bytes_max; /* 0: 256 MiB in flight in all */
	uint64_t idle_ns; /* 0: 360 s without a request */
	uint64_t record_ns; /* 0: 30 s from a record's first byte to its last */
	uint64_t stall_ns; /* 0: 1 s without progress while others wait for
			    * memory */
	uint64_t dup_age_ns; /* 0: 120 s in the reply cache */
	uint64_t dup_bytes_max; /* 0: 8 MiB of reply cache */
};

struct rpc_server;

/* Makes threads ready but not running. 0, -EINVAL (a row asks for too large
 * arguments, limits below one record), -ENOMEM, or what epoll refused with. */
int rpc_server_create(const struct rpc_server_options *options,
		      struct rpc_server **out) MUST_CHECK;

/*
 * Binds and listens: AF_INET, AF_INET6 (that family only) or AF_UNIX. Port 0
 * is chosen by the kernel; *port, if not NULL, gets the port. 0 or -errno.
 */
int rpc_server_listen(struct rpc_server *s, const struct sockaddr *addr,
		      socklen_t len, uint16_t *port) MUST_CHECK;

/* Takes a connected stream socket as if it had been accepted (tests, UNIX
 * socket pairs). Owns fd, also on failure: 0 or -errno. After start only. */
int rpc_server_adopt(struct rpc_server *s, int fd) MUST_CHECK;

/* 0 or -errno; nothing runs then. */
int rpc_server_start(struct rpc_server *s) MUST_CHECK;

/*
 * Takes no more connections and requests, lets those that run end, sends their
 * replies for at most drain_ns, closes everything. Returns when all threads
 * have ended.
 */
void rpc_server_stop(struct rpc_server *s, uint64_t drain_ns);
void rpc_server_destroy(struct rpc_server *s);

unsigned rpc_server_nr_workers(const struct rpc_server *s);

/* Settable at run time. */
void rpc_server_set_total_bytes_max(struct rpc_server *s, uint64_t max);

/* ---- statistics ---- */

/* name, sentence. Totals unless the sentence says now. */
#define RPC_STATISTICS(X)                                                      \
	X(calls, "calls run")                                                  \
	X(bad_calls, "calls refused: header, program, version, arguments")     \
	X(auth_errors, "calls refused: credential")                            \
	X(bytes_in, "bytes received")                                          \
	X(bytes_out, "bytes sent")                                             \
	X(recvs, "receive system calls")                                       \
	X(sends, "send system calls")                                          \
	X(polls, "epoll_wait system calls")                                    \
	X(wakeups, "threads woken")                                            \
	X(handovers, "pollers given away before blocking")                     \
	X(steals, "pollers taken from a worker that did not say it blocks")    \
	X(leaderless, "hand-overs that found no idle worker")                  \
	X(placed, "payloads received where they belong")                       \
	X(placed_copied, "bytes of them copied from the header buffer")        \
	X(assembled, "records put together from fragments or pieces")          \
	X(dup_replayed, "resent calls answered from the reply cache")          \
	X(dup_dropped, "resent calls dropped, the first still running")        \
	X(dup_evicted, "replies that left the cache for want of room")         \
	X(parked, "calls that waited for others blocked on the same device")   \
	X(paused, "times that a connection was not read for its limits")       \
	X(moved,                                                               \
	  "connections moved to the processor of a client on this host")       \
	X(conns, "connections accepted")                                       \
	X(conns_now, "connections now")                                        \
	X(conns_refused, "connections closed at once: too many")               \
	X(closed_idle, "connections closed: idle")                             \
	X(closed_slow, "connections closed: incomplete record or no progress") \
	X(closed_bad, "connections closed: broken record mark or header")      \
	X(bytes_now, "bytes of requests and replies held now")

struct rpc_statistics {
#define RPC_STAT_FIELD_(name, sentence) uint64_t name;
	RPC_STATISTICS(RPC_STAT_FIELD_)
#undef RPC_STAT_FIELD_
};

void rpc_server_statistics(struct rpc_server *s, struct rpc_statistics *out);

/* Bucket b counts calls of [2^b, 2^(b+1)) us, 0 those below 2 us. */
#define RPC_LATENCY_BUCKETS 20

/* Per client address. Clients are remembered after their last connection as
 * long as there is room (RPC_CLIENTS_MAX); then all further ones share the
 * address of zeros. */
#define RPC_CLIENTS_MAX 1024
/* Procedures counted one by one: NFSv3 has 22. */
#define RPC_CLIENT_OPS 22
struct rpc_client_statistics {
	uint8_t addr[16];
	unsigned conns; /* now */
	uint64_t calls;
	uint64_t bytes_in;
	uint64_t bytes_out;
	uint64_t wakeups;
	uint64_t latency[RPC_LATENCY_BUCKETS];
	/* By procedure of the first program. */
	struct opstat_sum ops[RPC_CLIENT_OPS];
};

/* Calls fn for each client, without locks held. */
void rpc_server_clients(struct rpc_server *s,
			void (*fn)(const struct rpc_client_statistics *c,
				   void *arg),
			void *arg);

#endif

/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * The structures behind rpc/server.h and the calls between the files that make
 * it: poller.c (who reads), conn.c and recv.c
 * (receiving), run.c (a call from its header
 * to its results), reply.c (results to a list of memory), send.c (to the
 * socket), near.c (which processor for whom), gauge.c, server.c. Nothing outside rpc/ includes this.
 *
 * Field letters: (C) constant after creation, (A) atomic, (P) the poller's
 * leader only, (W) its worker only, (S) server lock, (L) connection lock.
 * Leadership moves through rpc_poller.lead with acquire and release, so what
 * one leader wrote the next one sees.
 */
#ifndef TR_RPC_IMPL_H
#define TR_RPC_IMPL_H

#include "base/lock.h"
#include "base/task.h"
#include "base/wait.h"
#include "rpc/client.h"
#include "rpc/dup.h"
#include "rpc/record.h"
#include "rpc/server.h"

#include <sched.h>
#include <stdatomic.h>
#include <sys/epoll.h>

/* Bytes that one receive reads ahead: a hundred small calls. */
#define RPC_BUF_LEN 16384u
/* Read-ahead on a connection that sends bulk payload: a header, so that little
 * of the payload has to be copied out of the buffer. */
#define RPC_BULK_AHEAD 512u
/* How many records without payload end that. */
#define RPC_BULK_MEMORY 8
/* The longest record that is read in place; longer ones are assembled. */
#define RPC_IN_PLACE_MAX 8192u
/* A header (at most 856 bytes) and the arguments before a payload. */
#define RPC_PEEK_MAX 2048u
/* What a record may have beyond the payload limit. */
#define RPC_RECORD_SLACK 65536u
/* Operations after the payload in a compound. */
#define RPC_TAIL_MAX 65536u
/* Calls run for one connection, or time spent on it, before others have their
 * turn: some large READs take as long as many small calls. */
#define RPC_TURN_CALLS 64
#define RPC_TURN_NS 500000u
/* Replies held back for a common send: bytes, and age. */
#define RPC_BATCH_BYTES 262144u
#define RPC_BATCH_NS 100000u
/* Vectors per sendmsg: a READ of 1 MiB from single pages. */
#define RPC_SEND_IOV 264
#define RPC_RECV_IOV 64
#define RPC_EVENTS 64
#define RPC_TICK_NS 100000000ull

struct rpc_counts {
#define RPC_COUNT_FIELD_(name, sentence) atomic_ullong name;
	RPC_STATISTICS(RPC_COUNT_FIELD_)
#undef RPC_COUNT_FIELD_
} ALIGNED(CACHE_LINE);

#define rpc_count(counts, field, n)                                            \
	atomic_fetch_add_explicit(&(counts)->field, n, memory_order_relaxed)

/* What an epoll event points to. */
enum rpc_source_kind { RPC_SOURCE_CONN, RPC_SOURCE_LISTENER, RPC_SOURCE_KICK };
struct rpc_source {
	enum rpc_source_kind kind;
};

struct rpc_listener {
	struct rpc_source source;
	int fd;
	bool local; /* AF_UNIX */
	atomic_bool retry; /* accept ran out of descriptors */
	struct rpc_listener *next;
};

/* A receive buffer; requests in it hold references. [start, end) is what was
 * received and not yet looked at (P). */
struct rpc_buf {
	atomic_uint refs;
	uint32_t start;
	uint32_t end;
	uint32_t cap; /* (C) */
	uint8_t data[];
};

static inline uint32_t rpc_buf_len(const struct rpc_buf *b)
{
	return b ? b->end - b->start : 0;
}

struct rpc_conn {
	struct rpc_source source;
	int fd; /* (C) */
	struct rpc_server *server; /* (C) */
	struct rpc_poller *poller; /* (P) */
	struct rpc_client *client; /* (C) */
	struct sockaddr_storage peer; /* (C) */
	uint8_t addr[16]; /* (C) */
	atomic_uint refs; /* (A) the poller's, each call's, a sender's */
	struct cds_list_head link; /* poller lock */

	struct cds_list_head ready; /* (P) on the poller's ready or paused */
	bool is_ready; /* (P) */
	atomic_bool is_paused; /* (A) written by (P) */
	bool drained; /* (P) the socket had no more when last read */
	bool near; /* (C) its client is on this host */
	bool hup; /* (P) read to the end: the peer has closed */
	bool assembling; /* (P) */
	uint8_t bulk_memory; /* (P) > 0: read headers only */
	uint32_t want; /* (P) bytes at buf->start that are needed */
	size_t want_bytes; /* (P) why it was paused; 0: for want of memory */
	struct rpc_buf *buf; /* (P) NULL: nothing received */
	struct rpc_record rec; /* (P) */
	size_t rec_charge; /* (P) of bytes, for rec */
	struct rpc_call *placing; /* (P) its payload is being received */
	int place_iov; /* (P) where in it */
	size_t place_off;
	uint32_t place_left;
	unsigned near_looks; /* (P) that found it elsewhere */
	unsigned near_patience; /* (P) how many of them move it */
	uint64_t near_sent; /* (P) sent at the last look */
	uint64_t batch_ns; /* (P) age of the oldest reply held back; 0: none */

	atomic_ullong record_ns; /* (A) since when a record is incomplete */
	atomic_ullong recv_ns; /* (A) when bytes came last */
	atomic_ullong stuck_ns; /* (A) since when the socket takes no more */
	atomic_ullong bytes; /* (A) held for it */
	atomic_ullong sent; /* (A) bytes */
	atomic_bool dead; /* (A) set under (L) */

	struct mutex lock;
	struct cds_list_head out; /* (L) replies to be sent, in order */
	size_t out_bytes; /* (L) of them, not yet sent */
	bool sending; /* (L) somebody is in sendmsg for it */
	bool blocked; /* (L) waits for EPOLLOUT */
	bool writable; /* (L) EPOLLOUT came since the last send began */
	int tx_piece; /* sender: place in the first reply */
	int tx_iov;
	size_t tx_off;
};

struct rpc_worker {
	struct rpc_server *server; /* (C) */
	struct task *task; /* (C) */
	unsigned id; /* (C) from 1 */
	struct rpc_poller *leading; /* (W) NULL: runs a call it was left with */
	struct rpc_gauge *left; /* (W) a call left it: look for parked ones */
	struct rpc_counts *counts; /* (C) its own */
	atomic_int cpu; /* (A) where it stays; -1: nowhere. Changed under (S) */
	pid_t tid; /* (S) its thread, if it stays */
	atomic_ullong near_ns; /* (A) when it last sent much */
	_Atomic(struct rpc_poller *) assigned; /* (A) promoted to lead it */
	struct waitq wake;
	struct cds_list_head idle; /* (S) */
};

/* rpc_poller.lead: 0 nobody, else the worker's id * 2, + 1 while it is in a
 * handler: then, and only then, others may take the poller away. */
struct rpc_poller {
	struct rpc_source kick; /* its eventfd */
	struct rpc_server *server; /* (C) */
	int epfd; /* (C) */
	int kick_fd; /* (C) */
	int cpu; /* (C) where its leader stays while it sends much */
	atomic_uint lead; /* (A) */
	atomic_uint nr_paused; /* (A) written by (P) */
	atomic_uint nr_conns; /* (A) */
	atomic_ulong progress; /* (A) calls begun by leaders */
	bool leaderless; /* (S) waits for a worker to become free */
	unsigned long seen_progress; /* ticker only */
	struct cds_list_head ready; /* (P) */
	struct cds_list_head paused; /* (P) */
	struct rpc_buf *spare; /* (P) */
	struct mutex lock;
	struct cds_list_head conns GUARDED(lock);
	struct epoll_event events[RPC_EVENTS]; /* (P) */
} ALIGNED(CACHE_LINE);

struct rpc_server {
	struct rpc_server_options opt; /* (C) */
	uint32_t record_max; /* (C) */
	atomic_ullong total_bytes_max; /* (A) */
	atomic_ullong bytes; /* (A) held in all */
	atomic_uint nr_conns; /* (A) */
	atomic_uint next_poller; /* (A) */
	atomic_uint nr_paused; /* (A) connections paused in all pollers */
	atomic_bool stopping; /* (A) */
	bool near; /* (C) there is a poller for each processor */
	cpu_set_t cpus; /* (C) */
	bool running; /* owner's thread only */
	struct rpc_listener *listeners; /* (C) once started */
	struct rpc_dups *dups;
	struct rpc_clients *clients;
	struct rpc_poller *pollers; /* (C) */
	struct rpc_worker *workers; /* (C) */
	struct rpc_counts *counts; /* (C) [0] of no worker, then by id */
	struct task *ticker;
	struct waitq tick;
	struct mutex lock;
	struct cds_list_head idle GUARDED(lock); /* most recent first */
};

/* ---- poller.c ---- */

int rpc_poller_init(struct rpc_poller *p, struct rpc_server *s) MUST_CHECK;
void rpc_poller_fini(struct rpc_poller *p);
void rpc_worker_main(void *worker);
/* Runs the calls that were parked for what w's call has just left. */
void rpc_worker_parked(struct rpc_worker *w);
/* Finds a leader for a poller that has none. */
void rpc_poller_promote(struct rpc_poller *p, struct rpc_counts *counts);
/* Takes p from a leader that is in its handler; false if it is not. */
bool rpc_poller_steal(struct rpc_poller *p);
/* Makes the leader look again at what it paused. */
void rpc_poller_kick(struct rpc_poller *p);
/* The leader enters a handler, and is back: true if it leads still. */
void rpc_lead_enter(struct rpc_worker *w);
bool rpc_lead_back(struct rpc_worker *w);
/* Gives leadership away if w has it; true if it did. */
bool rpc_lead_give(struct rpc_worker *w);

/* ---- conn.c, recv.c ---- */

int rpc_conn_create(struct rpc_server *s, int fd,
		    const struct sockaddr_storage *peer) MUST_CHECK;
void rpc_conn_put(struct rpc_conn *c);
/* An address as IPv6; of a local socket zeros. */
void rpc_address(const struct sockaddr_storage *peer, uint8_t to[16]);
/* How many connections the client at peer's address has. */
unsigned rpc_conn_client_conns(struct rpc_server *s,
			       const struct sockaddr_storage *peer);
/* Changes what the record being assembled holds against the limits. */
void rpc_conn_charge_record(struct rpc_conn *c, size_t bytes);
/* Whether len more bytes would pass a limit. A connection, and the server,
 * that hold nothing may always take one record. */
bool rpc_conn_over(const struct rpc_conn *c, size_t len);
/* The leader: off all lists; to the paused ones; to the end of the ready. */
void rpc_conn_unlist(struct rpc_conn *c);
void rpc_conn_pause(struct rpc_conn *c, struct rpc_counts *counts);
void rpc_conn_rotate(struct rpc_conn *c);
/* The leader: room for want bytes from the buffer's start on, and for more
 * than a dribble behind its end: 0 or -ENOMEM. */
int rpc_conn_room(struct rpc_conn *c) MUST_CHECK;
/* The leader: keeps no more of the buffer than what is in it. */
void rpc_conn_buf_shrink(struct rpc_conn *c);
/* The leader reads and runs what there is; takes the connection off its lists
 * as fits. False: leadership was lost. */
bool rpc_conn_turn(struct rpc_worker *w, struct rpc_conn *c);
/* Leader, or after all threads ended: drops the poller's reference. */
void rpc_conn_close(struct rpc_conn *c);
/* The leader: gives it, drained, to another poller. It is the other's from then
 * on, or closed. */
void rpc_conn_move(struct rpc_conn *c, struct rpc_poller *to);
/* Onto the ready list, to be read again. */
void rpc_conn_make_ready(struct rpc_conn *c);
/* The same for an edge of epoll, unless it is paused. */
void rpc_conn_event(struct rpc_conn *c);
void rpc_buf_put(struct rpc_buf *b);

/* ---- run.c ---- */

/* A call with nothing in it but its connection, holding a reference. NULL
 * without memory. */
struct rpc_call *rpc_call_create(struct rpc_conn *c);
/* Reads the header and finds the row (NULL: refused). -EBADMSG. */
int rpc_call_header(struct rpc_server *s, struct xdr_in *in,
		    struct rpc_header *head, const struct rpc_program **program,
		    const struct rpc_proc **row) MUST_CHECK;
/* Runs a complete call, up to its reply in the connection's queue. hold: the
 * caller will flush. */
void rpc_call_run(struct rpc_worker *w, struct rpc_call *call, bool hold);
/* Ends a call with all it holds. */
void rpc_call_free(struct rpc_call *call);
/* Changes what the call holds against the limits. */
void rpc_call_charge(struct rpc_call *call, size_t bytes);
/* The same for one that holds nothing, unless the total would be passed. */
bool rpc_call_try_charge(struct rpc_call *call, size_t bytes) MUST_CHECK;

/* ---- reply.c ---- */

void rpc_reply_init(struct rpc_call *call);
/* Turns what was written into the list of memory to be sent. */
void rpc_reply_finish(struct rpc_call *call, enum rpc_status status);
/* Likewise, for what rpc/ itself refuses: RPC version, credential, program
 * version (low and high are those there are). */
void rpc_reply_refuse(struct rpc_call *call, uint32_t low, uint32_t high);
/* Releases bulk pieces and the head. */
void rpc_reply_fini(struct rpc_call *call);
/* Piece i of the reply, head slices and bulk in turn; -1: it has no such. */
int rpc_reply_piece(const struct rpc_call *call, int i,
		    const struct iovec **iov);

/* ---- send.c ---- */

/* Queues a finished reply; sends unless hold. */
void rpc_send(struct rpc_worker *w, struct rpc_call *call, bool hold);
/* Sends what is queued as far as the socket takes it. writable: EPOLLOUT. */
void rpc_send_flush(struct rpc_conn *c, struct rpc_counts *counts,
		    bool writable);
/* Gives up what is queued and whatever will be. */
void rpc_send_kill(struct rpc_conn *c);

/* ---- near.c ---- */

/* Before the threads: which poller has which processor. */
void rpc_near_init(struct rpc_server *s);
/* A new connection. */
void rpc_near_conn(struct rpc_conn *c);
/* The leader, after a turn that drained c: may move it, and is then done with
 * it. */
void rpc_near_turn(struct rpc_worker *w, struct rpc_conn *c);
/* The ticker. */
void rpc_near_tick(struct rpc_server *s);

/* ---- gauge.c ---- */

/* A handler returned RPC_AGAIN: parks the call, or false: run it now. */
bool rpc_gauge_park(struct rpc_call *call);
/* The handler has ended: leaves the gauge, if it is in one. */
void rpc_gauge_leave(struct rpc_call *call);
/* A parked call that may run now, or NULL. */
struct rpc_call *rpc_gauge_next(struct rpc_gauge *g);

/* ---- server.c ---- */

/* Bytes are held no longer: lets paused connections go on. */
void rpc_server_released(struct rpc_server *s);
/* Accepts all there is on a listener. */
void rpc_server_accept(struct rpc_server *s, struct rpc_listener *l);

#endif

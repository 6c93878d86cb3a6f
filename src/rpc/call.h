/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * A remote call, from its header to the last byte of its reply: what those who
 * serve programs (nfs/) see of rpc/.
 *
 * A program is a table with one row per procedure. For each call rpc/ checks
 * the header and the credential, finds the row, decodes the arguments into
 * memory of the call, and runs the handler on the thread that read the
 * request. The handler writes the results to call->out, adds bulk data with
 * rpc_reply_bulk(), and returns a status; the reply is sent when it returns.
 *
 *	static enum rpc_status null_run(struct rpc_call *call, void *args)
 *	{
 *		return RPC_SUCCESS;
 *	}
 *
 * One thread has a call at a time. Pointers into the request (opaques, bulk
 * payload) are valid until the handler returns.
 */
#ifndef TR_RPC_CALL_H
#define TR_RPC_CALL_H

#include "base/opstat.h"
#include "rpc/msg.h"

#include <sys/socket.h>
#include <urcu/list.h>

struct rpc_call;
struct rpc_conn;
struct rpc_worker;
struct rpc_buf;
struct rpc_gauge;
struct rpc_dup;

/* Decoded arguments live in the call: the largest that a row may ask for. */
#define RPC_ARGS_MAX 1024

/* Results up to this need no rpc_reply_reserve(). */
#define RPC_REPLY_INLINE 1024

/* Bulk pieces in one reply, and the slices of results around them. */
#define RPC_BULK_MAX 8

typedef enum rpc_status (*rpc_handler)(struct rpc_call *call, void *args);

/* Where the payload of a call is to be received. */
struct rpc_place {
	/* Bytes of arguments before the payload, its length word included;
	 * all of them were there when place() was called. */
	uint32_t head_len;
	uint32_t len; /* of the payload without padding; > 0 */
	/*
	 * Memory of exactly len bytes. The vector and the memory stay in
	 * place until the handler has run, or unplace() is called.
	 */
	struct iovec *iov;
	int nr_iov;
	void *arg; /* whatever the row wants to find again */
};

enum rpc_proc_flags {
	/* A resent call is answered from the reply cache, not run again. */
	RPC_ONCE = 1 << 0,
	/* AUTH_NONE will do (else it is answered AUTH_TOOWEAK). */
	RPC_ANYBODY = 1 << 1,
};

struct rpc_proc {
	const char *name; /* NULL: PROC_UNAVAIL */
	rpc_handler run;
	/* xdr_decode_T of xdr/fields.h; NULL: the handler reads call->in, or
	 * there are no arguments. Failure is answered GARBAGE_ARGS. */
	int (*decode)(struct xdr_in *in, void *args);
	uint32_t args_size; /* sizeof(struct T), <= RPC_ARGS_MAX */
	uint32_t flags;
	/*
	 * Optional, for procedures with bulk payload; asked for records longer
	 * than RPC_PLACE_MIN. call->head and the credential are decoded, args
	 * is a cursor over those bytes of the arguments that are here, left
	 * counts all bytes of the arguments. Runs on the reading thread and
	 * must not block. Returns
	 *   0: *place says where; rpc/ receives the payload there, and the
	 *	handler finds it as call->bulk, and through call->in with
	 *	xdr_get_bulk();
	 *   -EAGAIN: more of the arguments is needed to tell;
	 *   -ENOMEM: not now; the connection is not read for a while;
	 *   other: no placement; the arguments come in one buffer.
	 */
	int (*place)(struct rpc_call *call, struct xdr_in *args, size_t left,
		     struct rpc_place *place);
	/*
	 * Frees what place() gave. Called exactly once per successful
	 * place(): before the call is freed if the handler did not run
	 * (connection lost, bad arguments, a copy in the reply cache), else
	 * after it returned, unless it cleared call->bulk.len to say that the
	 * memory is its own now (folios).
	 */
	void (*unplace)(struct rpc_call *call, struct rpc_place *place);
};

#define RPC_PLACE_MIN 4096

struct rpc_program {
	uint32_t prog;
	uint32_t vers;
	const struct rpc_proc *procs;
	uint32_t nr_procs;
	void *arg; /* for handlers: call->program->arg */
};

/* (h) the handler may use it; (w) may write it; others are rpc/'s own. */
struct rpc_call {
	struct rpc_header head; /* (h) */
	const struct rpc_program *program; /* (h) */
	const struct rpc_proc *row; /* (h) */
	struct xdr_in in; /* (h) behind what decode() read */
	struct xdr_out out; /* (w) results */
	struct rpc_place bulk; /* (w) payload; len 0: none was placed */
	/* (w) where this call is to be counted too, beside its client; NULL:
	 * nowhere. Stays in place as long as the server. */
	struct opstat *account;
	uint8_t handler_bits; /* (w) its own, survives RPC_AGAIN; 0 first */

	struct rpc_conn *conn;
	struct rpc_worker *worker; /* who runs it */
	struct cds_list_head link; /* reply queue, or parked */
	struct rpc_buf *buf; /* holds the head of the request */
	uint8_t *record; /* or an assembled record, owned */
	const uint8_t *args; /* arguments before the payload */
	const uint8_t *start; /* the record */
	uint32_t head_len; /* bytes at start that are in one piece */
	uint32_t record_len; /* all of the request */
	uint32_t tail_len; /* bytes behind the payload */
	uint32_t tail_have;
	uint8_t *tail; /* tail_inline or owned */
	uint8_t tail_inline[8];
	uint32_t charge; /* bytes held against the limits */
	uint64_t start_ns;
	struct rpc_gauge *gauge; /* of rpc_try_block() */
	bool gauge_held;
	bool head_owned; /* out.start is on the heap */
	struct rpc_dup *dup;

	/* The reply: slices of the head and bulk pieces in turn. */
	int nr_bulk;
	struct rpc_reply_bulk {
		size_t head_end; /* results before it, offset in out */
		const struct iovec *iov;
		int nr_iov;
		size_t len;
		void (*release)(void *arg);
		void *arg;
	} bulks[RPC_BULK_MAX];
	size_t reply_len; /* with the record mark */
	struct iovec heads[RPC_BULK_MAX + 1];

	uint64_t args_mem[RPC_ARGS_MAX / 8];
	uint8_t reply_mem[RPC_REPLY_INLINE + 4 + RPC_ACCEPTED_LEN];
};

/* ---- the reply ---- */

/*
 * Makes room for len more bytes of results (bulk not counted). 0, -ENOMEM, or
 * -EMSGSIZE above the server's largest reply. Moves call->out; pointers into
 * it (xdr_out_hole()) are void afterwards.
 */
int rpc_reply_reserve(struct rpc_call *call, size_t len) MUST_CHECK;

/*
 * Adds len bytes of memory of the handler to the results, after what is in
 * call->out and before what comes later: XDR's bytes of an opaque whose count
 * has been written; padding is added. The vector and the memory stay in place
 * until release(arg), which is called exactly once, from any thread, without
 * locks held: when the last byte was handed to the kernel, or the reply is
 * given up. release must not block. Returns 0, or -ENOSPC after RPC_BULK_MAX
 * pieces (then release is not called and nothing was added).
 */
int rpc_reply_bulk(struct rpc_call *call, const struct iovec *iov, int nr_iov,
		   size_t len, void (*release)(void *arg),
		   void *arg) MUST_CHECK;

/*
 * Forgets the results written so far, bulk included (it is released): for a
 * handler that turns to an error late.
 */
void rpc_reply_reset(struct rpc_call *call);

/* ---- blocking ---- */

/*
 * A handler says this before it may sleep for longer than a hand-off costs (30
 * us): device I/O, a sync, a host call on metadata, a long wait for a folio.
 * Another worker then reads the sockets. Cheap, idempotent, never blocks.
 */
void rpc_about_to_block(struct rpc_call *call);

/*
 * How many workers the blocked requests of one device may hold. One per
 * device, made with the server's number of workers: the limit is 3/4 of it.
 */
struct rpc_gauge *rpc_gauge_create(unsigned nr_workers);
void rpc_gauge_destroy(struct rpc_gauge *g);

/*
 * Asks, before anything was changed, whether this call may block on the
 * device. True: counts it until the handler returns, and does what
 * rpc_about_to_block() does; more calls of it in the same handler are free.
 * False: return RPC_AGAIN, and the handler is run again, from its start and
 * with its arguments decoded anew, when another has left. Never blocks.
 */
bool rpc_try_block(struct rpc_call *call, struct rpc_gauge *g);

/* How many calls are blocked now, and parked now: for statistics. */
void rpc_gauge_read(struct rpc_gauge *g, unsigned *blocked, unsigned *parked);

/* ---- who calls ---- */

/* The client's address and port; AF_INET, AF_INET6 or AF_UNIX. */
const struct sockaddr_storage *rpc_call_peer(const struct rpc_call *call);

/* The address alone, as 16 bytes (IPv4 mapped; zeros for local sockets): what
 * "a client" is to the reply cache and to NFSv3. */
const uint8_t *rpc_call_client(const struct rpc_call *call);

/* Counts a wake-up that this call cost (a handler that slept). */
void rpc_count_wakeup(struct rpc_call *call);

#endif

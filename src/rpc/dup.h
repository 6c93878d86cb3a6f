/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * The duplicate request cache: what makes a call that is not idempotent safe
 * to resend after a lost connection.
 *
 * A call is known by its client's address (not port: a reconnecting client may
 * come from another), xid, program, version, procedure, length and a checksum
 * of its first 256 bytes. While the first copy runs, others are dropped; when
 * it is answered, others get the same reply. Bounded in reply size, bytes and
 * age; the oldest answered calls leave first, calls that run never do.
 *
 * Any thread.
 */
#ifndef TR_RPC_DUP_H
#define TR_RPC_DUP_H

#include "base/compiler.h"

#define RPC_DUP_SUM_LEN 256

struct rpc_dups;
struct rpc_dup;

struct rpc_dup_key {
	uint8_t addr[16];
	uint32_t xid;
	uint32_t prog;
	uint32_t vers;
	uint32_t proc;
	uint64_t len; /* of the whole call */
	uint64_t sum;
};

/* NULL without memory. */
struct rpc_dups *rpc_dups_create(uint64_t age_ns, uint64_t bytes_max);
void rpc_dups_destroy(struct rpc_dups *d);

/* The checksum of the first RPC_DUP_SUM_LEN bytes of a call (len at most
 * that), keyed anew at each start so that it cannot be aimed at. */
uint64_t rpc_dup_sum(const struct rpc_dups *d, const void *p, size_t len);

enum rpc_dup_result {
	RPC_DUP_NEW, /* run it; *entry is to be given to rpc_dup_end() */
	RPC_DUP_BUSY, /* a copy runs */
	RPC_DUP_REPLAY, /* its reply was copied */
};

/*
 * Looks a call up and enters it if it is new. reply has room for the largest
 * reply that rpc_dup_end() is ever given. Returns an enum rpc_dup_result or
 * -ENOMEM.
 */
int rpc_dup_begin(struct rpc_dups *d, const struct rpc_dup_key *key,
		  struct rpc_dup **entry, void *reply, size_t *len);

/* The call has ended. reply NULL, or no memory to keep it: forgotten. */
void rpc_dup_end(struct rpc_dups *d, struct rpc_dup *entry, const void *reply,
		 size_t len);

/* Replies that left for want of room, and bytes now. */
void rpc_dups_read(struct rpc_dups *d, uint64_t *evicted, uint64_t *bytes);

#endif

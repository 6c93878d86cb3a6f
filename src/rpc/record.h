/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * Record marking (RFC 5531, section 11): puts a record together from
 * fragments, however its bytes come in.
 *
 * Only for records that are not read in place: in several fragments, or too
 * large for a receive buffer. Memory grows with what has arrived, never with
 * what a mark promises. One thread at a time.
 */
#ifndef TR_RPC_RECORD_H
#define TR_RPC_RECORD_H

#include "base/compiler.h"

#include <stdbool.h>

/* Clients cut records into pieces of 4 KiB or more; a million one-byte
 * fragments are an attack. */
#define RPC_FRAGMENTS_MAX 1024

struct rpc_record {
	uint8_t *data;
	uint32_t len; /* bytes so far */
	uint32_t cap; /* bytes allocated */
	uint32_t max; /* largest record */
	uint32_t frag_left; /* bytes missing of the current fragment */
	uint32_t nr_frags;
	uint8_t mark[4]; /* the next mark, mark_have bytes of it */
	uint8_t mark_have;
	bool last; /* the current fragment is the last */
};

void rpc_record_init(struct rpc_record *r, uint32_t max);
void rpc_record_fini(struct rpc_record *r);

/*
 * Takes bytes from the stream, starting at a record's first mark, and at most
 * to that record's end: *used says how many. 1: the record is complete; 0: all
 * n were used, more are needed; -EMSGSIZE: too long, -E2BIG: too many
 * fragments, -ENOMEM: the stream cannot be read on.
 */
int rpc_record_feed(struct rpc_record *r, const uint8_t *p, size_t n,
		    size_t *used) MUST_CHECK;

/* Gives the complete record away (mem_free()) and starts anew. */
uint8_t *rpc_record_take(struct rpc_record *r, uint32_t *len);

#endif

/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * Statistics per client address. Entries live as long as the table; their
 * counters are atomic and may be added to by any thread.
 */
#ifndef TR_RPC_CLIENT_H
#define TR_RPC_CLIENT_H

#include "rpc/server.h"

#include <stdatomic.h>

struct rpc_client {
	struct cds_list_head chain;
	uint8_t addr[16]; /* (C) */
	atomic_uint conns;
	atomic_ullong calls;
	atomic_ullong bytes_in;
	atomic_ullong bytes_out;
	atomic_ullong wakeups;
	atomic_ullong latency[RPC_LATENCY_BUCKETS];
	struct opstat ops[RPC_CLIENT_OPS];
};

struct rpc_clients;

struct rpc_clients *rpc_clients_create(void);
void rpc_clients_destroy(struct rpc_clients *t);

/* The entry of an address; that of zeros if the table is full or there is no
 * memory. Never NULL. */
struct rpc_client *rpc_client_get(struct rpc_clients *t,
				  const uint8_t addr[16]);

/* One call answered after ns. */
void rpc_client_count(struct rpc_client *c, uint64_t ns);

void rpc_clients_each(struct rpc_clients *t,
		      void (*fn)(const struct rpc_client_statistics *c,
				 void *arg),
		      void *arg);

#endif

/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * Clients by address. Entries are only added, and at most RPC_CLIENTS_MAX, so
 * that a pointer to one is good without counting references. A full table of
 * addresses costs 5 MiB.
 */
#include "rpc/client.h"

#include "base/clock.h"
#include "base/lock.h"
#include "base/mem.h"

#define CLIENT_CHAINS 256

struct rpc_clients {
	struct mutex lock;
	struct cds_list_head chains[CLIENT_CHAINS] GUARDED(lock);
	unsigned nr GUARDED(lock);
	struct rpc_client rest; /* of all beyond RPC_CLIENTS_MAX */
};

struct rpc_clients *rpc_clients_create(void)
{
	struct rpc_clients *t = mem_zalloc(sizeof(*t));

	if (!t)
		return NULL;
	mutex_init(&t->lock, LOCK_LEAF);
	for (int i = 0; i < CLIENT_CHAINS; i++)
		CDS_INIT_LIST_HEAD(&t->chains[i]);
	return t;
}

void rpc_clients_destroy(struct rpc_clients *t)
{
	struct rpc_client *c, *next;

	if (!t)
		return;
	for (int i = 0; i < CLIENT_CHAINS; i++)
		cds_list_for_each_entry_safe (c, next, &t->chains[i], chain)
			mem_free(c);
	mutex_fini(&t->lock);
	mem_free(t);
}

static struct rpc_client *client_find_locked(struct cds_list_head *chain,
					     const uint8_t addr[16])
{
	struct rpc_client *c;

	cds_list_for_each_entry (c, chain, chain)
		if (!memcmp(c->addr, addr, 16))
			return c;
	return NULL;
}

struct rpc_client *rpc_client_get(struct rpc_clients *t, const uint8_t addr[16])
{
	struct cds_list_head *chain;
	struct rpc_client *c;
	uint32_t hash = 0;

	/* Addresses are few and bounded: any spread will do. */
	for (int i = 0; i < 16; i++)
		hash = hash * 31 + addr[i];
	chain = &t->chains[hash % CLIENT_CHAINS];
	mutex_lock(&t->lock);
	c = client_find_locked(chain, addr);
	if (!c && t->nr < RPC_CLIENTS_MAX)
		c = mem_zalloc(sizeof(*c));
	else if (c)
		goto out;
	if (c) {
		memcpy(c->addr, addr, 16);
		cds_list_add(&c->chain, chain);
		t->nr++;
	}
out:
	mutex_unlock(&t->lock);
	return c ? c : &t->rest;
}

void rpc_client_count(struct rpc_client *c, uint64_t ns)
{
	uint64_t us = ns / NS_PER_US;
	unsigned b = us < 2 ? 0 : 63 - (unsigned)__builtin_clzll(us);

	b = min_of(b, RPC_LATENCY_BUCKETS - 1u);
	atomic_fetch_add_explicit(&c->calls, 1, memory_order_relaxed);
	atomic_fetch_add_explicit(&c->latency[b], 1, memory_order_relaxed);
}

static void client_read(struct rpc_client *c, struct rpc_client_statistics *out)
{
	memcpy(out->addr, c->addr, 16);
	out->conns = atomic_load(&c->conns);
	out->calls = atomic_load(&c->calls);
	out->bytes_in = atomic_load(&c->bytes_in);
	out->bytes_out = atomic_load(&c->bytes_out);
	out->wakeups = atomic_load(&c->wakeups);
	for (int i = 0; i < RPC_LATENCY_BUCKETS; i++)
		out->latency[i] = atomic_load(&c->latency[i]);
	memset(out->ops, 0, sizeof(out->ops));
	for (int i = 0; i < RPC_CLIENT_OPS; i++)
		opstat_read(&c->ops[i], &out->ops[i]);
}

/* Entries are added at the front and never leave: what is behind the first one
 * seen under the lock stays as it is without it. */
static void client_chain(struct rpc_clients *t, struct cds_list_head *chain,
			 void (*fn)(const struct rpc_client_statistics *c,
				    void *arg),
			 void *arg)
{
	struct rpc_client_statistics stats;
	struct cds_list_head *at;

	mutex_lock(&t->lock);
	at = chain->next;
	mutex_unlock(&t->lock);
	for (; at != chain; at = at->next) {
		client_read(cds_list_entry(at, struct rpc_client, chain),
			    &stats);
		fn(&stats, arg);
	}
}

void rpc_clients_each(struct rpc_clients *t,
		      void (*fn)(const struct rpc_client_statistics *c,
				 void *arg),
		      void *arg)
{
	struct rpc_client_statistics stats;

	for (int i = 0; i < CLIENT_CHAINS; i++)
		client_chain(t, &t->chains[i], fn, arg);
	client_read(&t->rest, &stats);
	if (stats.calls || stats.conns)
		fn(&stats, arg);
}

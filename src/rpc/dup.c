/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * The duplicate request cache: shards by hash, each with its own lock, chains
 * and a list of answered calls in the order of their answers.
 *
 *	(none) --begin--> running --end--> answered --age, room--> (none)
 *	                          --end without a reply--------> (none)
 *
 * Invariants: an entry is on its chain; on the shard's list exactly when
 * answered; bytes is the sum over all entries.
 */
#include "rpc/dup.h"

#include "base/clock.h"
#include "base/lock.h"
#include "base/mem.h"
#include "base/rng.h"
#include "fs/siphash.h"

#include <errno.h>
#include <string.h>
#include <urcu/list.h>

#define DUP_SHARDS 16
/* Of each shard: as many chains as there are calls in 8 MiB of WRITE replies,
 * so that a look meets one or two. */
#define DUP_CHAINS 2048

struct rpc_dup {
	struct cds_list_head chain;
	struct cds_list_head age; /* empty: running */
	struct rpc_dup_key key;
	uint64_t answered_ns;
	void *reply;
	uint32_t len;
	uint32_t shard;
};

/* All (L) but lock. */
struct dup_shard {
	struct mutex lock;
	struct cds_list_head ages; /* oldest first */
	struct cds_list_head chains[DUP_CHAINS];
	uint64_t bytes;
	uint64_t evicted;
};

struct rpc_dups {
	struct siphash_key hash_key; /* (C) as the two below */
	uint64_t age_ns;
	uint64_t shard_bytes_max;
	struct dup_shard shards[DUP_SHARDS];
};

struct rpc_dups *rpc_dups_create(uint64_t age_ns, uint64_t bytes_max)
{
	struct rpc_dups *d = mem_zalloc(sizeof(*d));

	if (!d)
		return NULL;
	rng_secure(&d->hash_key, sizeof(d->hash_key));
	d->age_ns = age_ns;
	d->shard_bytes_max = bytes_max / DUP_SHARDS;
	for (int i = 0; i < DUP_SHARDS; i++) {
		struct dup_shard *s = &d->shards[i];

		mutex_init(&s->lock, LOCK_LEAF);
		CDS_INIT_LIST_HEAD(&s->ages);
		for (int j = 0; j < DUP_CHAINS; j++)
			CDS_INIT_LIST_HEAD(&s->chains[j]);
	}
	return d;
}

static size_t dup_bytes(const struct rpc_dup *e)
{
	return sizeof(*e) + e->len;
}

static void dup_forget_locked(struct dup_shard *s, struct rpc_dup *e)
	REQUIRES(s->lock)
{
	cds_list_del(&e->chain);
	cds_list_del(&e->age);
	s->bytes -= dup_bytes(e);
	mem_free(e->reply);
	mem_free(e);
}

void rpc_dups_destroy(struct rpc_dups *d)
{
	struct rpc_dup *e, *next;

	if (!d)
		return;
	for (int i = 0; i < DUP_SHARDS; i++) {
		struct dup_shard *s = &d->shards[i];

		for (int j = 0; j < DUP_CHAINS; j++)
			cds_list_for_each_entry_safe (e, next, &s->chains[j],
						      chain)
				dup_forget_locked(s, e);
		mutex_fini(&s->lock);
	}
	mem_free(d);
}

uint64_t rpc_dup_sum(const struct rpc_dups *d, const void *p, size_t len)
{
	return siphash(&d->hash_key, p, len);
}

/* Drops what is too old, and the oldest while there is too much. */
static void dup_trim_locked(struct rpc_dups *d, struct dup_shard *s,
			    uint64_t now) REQUIRES(s->lock)
{
	struct rpc_dup *e;

	while (!cds_list_empty(&s->ages)) {
		e = cds_list_first_entry(&s->ages, struct rpc_dup, age);
		if (now - e->answered_ns < d->age_ns) {
			if (s->bytes <= d->shard_bytes_max)
				return;
			s->evicted++;
		}
		dup_forget_locked(s, e);
	}
}

static struct rpc_dup *dup_find_locked(struct cds_list_head *chain,
				       const struct rpc_dup_key *key)
{
	struct rpc_dup *e;

	cds_list_for_each_entry (e, chain, chain)
		if (!memcmp(&e->key, key, sizeof(*key)))
			return e;
	return NULL;
}

int rpc_dup_begin(struct rpc_dups *d, const struct rpc_dup_key *key,
		  struct rpc_dup **entry, void *reply, size_t *len)
{
	uint64_t hash = siphash(&d->hash_key, key, sizeof(*key));
	uint32_t shard = hash % DUP_SHARDS;
	struct dup_shard *s = &d->shards[shard];
	struct cds_list_head *chain =
		&s->chains[hash / DUP_SHARDS % DUP_CHAINS];
	struct rpc_dup *e, *fresh = mem_zalloc(sizeof(*fresh));
	int result = RPC_DUP_NEW;

	mutex_lock(&s->lock);
	dup_trim_locked(d, s, clock_ns());
	e = dup_find_locked(chain, key);
	if (e && cds_list_empty(&e->age)) {
		result = RPC_DUP_BUSY;
	} else if (e) {
		memcpy(reply, e->reply, e->len);
		*len = e->len;
		result = RPC_DUP_REPLAY;
	} else if (!fresh) {
		result = -ENOMEM;
	} else {
		fresh->key = *key;
		fresh->shard = shard;
		CDS_INIT_LIST_HEAD(&fresh->age);
		cds_list_add(&fresh->chain, chain);
		s->bytes += dup_bytes(fresh);
		*entry = fresh;
		fresh = NULL;
	}
	mutex_unlock(&s->lock);
	mem_free(fresh);
	return result;
}

void rpc_dup_end(struct rpc_dups *d, struct rpc_dup *e, const void *reply,
		 size_t len)
{
	struct dup_shard *s = &d->shards[e->shard];
	void *copy = reply ? mem_alloc(len) : NULL;

	if (copy)
		memcpy(copy, reply, len);
	mutex_lock(&s->lock);
	if (copy) {
		e->reply = copy;
		e->len = (uint32_t)len;
		s->bytes += len;
		e->answered_ns = clock_ns();
		cds_list_add_tail(&e->age, &s->ages);
		dup_trim_locked(d, s, e->answered_ns);
	} else {
		dup_forget_locked(s, e);
	}
	mutex_unlock(&s->lock);
}

void rpc_dups_read(struct rpc_dups *d, uint64_t *evicted, uint64_t *bytes)
{
	*evicted = *bytes = 0;
	for (int i = 0; i < DUP_SHARDS; i++) {
		struct dup_shard *s = &d->shards[i];

		mutex_lock(&s->lock);
		*evicted += s->evicted;
		*bytes += s->bytes;
		mutex_unlock(&s->lock);
	}
}

/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * Putting records together.
 *
 * mark, bytes, mark, bytes, ..., mark with the last bit, bytes. The buffer
 * doubles, so that at most twice of what arrived is held.
 */
#include "rpc/record.h"

#include "base/mem.h"
#include "rpc/msg.h"

#include <errno.h>
#include <string.h>

/* The first allocation: most assembled records are at least this. */
#define RECORD_CAP_FIRST 4096u

void rpc_record_init(struct rpc_record *r, uint32_t max)
{
	*r = (struct rpc_record){ .max = max };
}

void rpc_record_fini(struct rpc_record *r)
{
	mem_free(r->data);
	rpc_record_init(r, r->max);
}

static int record_grow(struct rpc_record *r, uint32_t need)
{
	uint32_t cap = r->cap ? r->cap : RECORD_CAP_FIRST;
	uint8_t *data;

	if (need <= r->cap)
		return 0;
	while (cap < need)
		cap *= 2;
	data = mem_alloc(cap);
	if (!data)
		return -ENOMEM;
	if (r->len)
		memcpy(data, r->data, r->len);
	mem_free(r->data);
	r->data = data;
	r->cap = cap;
	return 0;
}

static int record_mark(struct rpc_record *r)
{
	uint32_t mark = xdr_load32(r->mark);

	r->mark_have = 0;
	r->last = mark & RPC_LAST_FRAGMENT;
	r->frag_left = mark & ~RPC_LAST_FRAGMENT;
	if (r->frag_left > r->max - r->len)
		return -EMSGSIZE;
	if (++r->nr_frags > RPC_FRAGMENTS_MAX)
		return -E2BIG;
	return 0;
}

int rpc_record_feed(struct rpc_record *r, const uint8_t *p, size_t n,
		    size_t *used)
{
	size_t left = n;
	uint32_t take;
	int err;

	for (;;) {
		take = (uint32_t)min_of(left, (size_t)r->frag_left);
		if (take) {
			err = record_grow(r, r->len + take);
			if (err)
				return err;
			memcpy(r->data + r->len, p, take);
			r->len += take;
			r->frag_left -= take;
			p += take;
			left -= take;
		}
		if (!r->frag_left && r->last)
			break;
		if (!left) {
			*used = n;
			return 0;
		}
		r->mark[r->mark_have++] = *p++;
		left--;
		if (r->mark_have == 4) {
			err = record_mark(r);
			if (err)
				return err;
		}
	}
	*used = n - left;
	return 1;
}

uint8_t *rpc_record_take(struct rpc_record *r, uint32_t *len)
{
	uint8_t *data = r->data;

	*len = r->len;
	rpc_record_init(r, r->max);
	return data;
}

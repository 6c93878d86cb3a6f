/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * Gauges: how many workers a device may hold, and the calls that wait.
 *
 *	run --try_block, room--> blocked --handler returns--> (left)
 *	run --try_block, full, RPC_AGAIN--> parked --another left--> run
 *
 * The worker whose call left runs the parked ones itself, so that no thread is
 * woken. A parked call holds no worker; the limits on bytes per connection
 * bound how many there are. A call can miss the last one that leaves only
 * between being refused and being parked: rpc_gauge_park() looks again.
 */
#include "rpc/impl.h"

#include "base/mem.h"

struct rpc_gauge {
	struct mutex lock;
	unsigned max; /* (C) */
	unsigned blocked GUARDED(lock);
	unsigned nr_parked GUARDED(lock);
	struct cds_list_head parked GUARDED(lock);
};

struct rpc_gauge *rpc_gauge_create(unsigned nr_workers)
{
	struct rpc_gauge *g = mem_zalloc(sizeof(*g));

	if (!g)
		return NULL;
	mutex_init(&g->lock, LOCK_LEAF);
	g->max = max_of(nr_workers * 3 / 4, 1u);
	CDS_INIT_LIST_HEAD(&g->parked);
	return g;
}

void rpc_gauge_destroy(struct rpc_gauge *g)
{
	if (!g)
		return;
	mutex_fini(&g->lock);
	mem_free(g);
}

bool rpc_try_block(struct rpc_call *call, struct rpc_gauge *g)
{
	bool ok;

	if (!call->gauge_held) {
		mutex_lock(&g->lock);
		ok = g->blocked < g->max;
		g->blocked += ok;
		mutex_unlock(&g->lock);
		call->gauge = g;
		call->gauge_held = ok;
		if (!ok)
			return false;
	}
	rpc_about_to_block(call);
	return true;
}

bool rpc_gauge_park(struct rpc_call *call)
{
	struct rpc_gauge *g = call->gauge;
	bool park;

	if (!g)
		return false;
	mutex_lock(&g->lock);
	park = g->blocked >= g->max;
	if (park) {
		cds_list_add_tail(&call->link, &g->parked);
		g->nr_parked++;
	}
	mutex_unlock(&g->lock);
	return park;
}

void rpc_gauge_leave(struct rpc_call *call)
{
	struct rpc_gauge *g = call->gauge;

	if (!call->gauge_held)
		return;
	call->gauge_held = false;
	mutex_lock(&g->lock);
	g->blocked--;
	mutex_unlock(&g->lock);
	call->worker->left = g;
}

struct rpc_call *rpc_gauge_next(struct rpc_gauge *g)
{
	struct rpc_call *call = NULL;

	mutex_lock(&g->lock);
	if (g->nr_parked && g->blocked < g->max) {
		call = cds_list_first_entry(&g->parked, struct rpc_call, link);
		cds_list_del(&call->link);
		g->nr_parked--;
	}
	mutex_unlock(&g->lock);
	return call;
}

void rpc_gauge_read(struct rpc_gauge *g, unsigned *blocked, unsigned *parked)
{
	mutex_lock(&g->lock);
	*blocked = g->blocked;
	*parked = g->nr_parked;
	mutex_unlock(&g->lock);
}

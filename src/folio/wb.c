/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * Writeback domains and backing devices: counters, lists of dirty files, and
 * the pool of queues. Whether a file is listed is guarded by its index lock
 * (mapping.listed), where it is by the lock of its domain, which is inner.
 */
#include "folio/wb.h"

#include "base/clock.h"
#include "base/mem.h"
#include "folio/mapping.h"

#include <assert.h>
#include <errno.h>

/* The counters of a wb in one table, for init and fini. */
#define WB_NR_COUNTERS (sizeof(struct wb_counters) / sizeof(struct counter))

int wb_create(struct bdi *bdi, uint32_t group, struct wb **out)
{
	struct wb *wb = mem_zalloc(sizeof(*wb));

	if (!wb)
		return -ENOMEM;
	if (counters_init((struct counter *)&wb->nr, WB_NR_COUNTERS)) {
		mem_free(wb);
		return -ENOMEM;
	}
	wb->cache = bdi->cache;
	wb->bdi = bdi;
	wb->group = group;
	atomic_init(&wb->refs, 1);
	waitq_init(&wb->wake);
	mutex_init(&wb->lock, LOCK_WB);
	CDS_INIT_LIST_HEAD(&wb->b_dirty);
	CDS_INIT_LIST_HEAD(&wb->b_io);
	CDS_INIT_LIST_HEAD(&wb->b_more_io);
	CDS_INIT_LIST_HEAD(&wb->drops);
	CDS_INIT_LIST_HEAD(&wb->on_cache);
	*out = wb;
	return 0;
}

void wb_get(struct wb *wb)
{
	atomic_fetch_add(&wb->refs, 1);
}

void wb_put(struct wb *wb)
{
	if (atomic_fetch_sub(&wb->refs, 1) != 1)
		return;
	assert(cds_list_empty(&wb->b_dirty) && cds_list_empty(&wb->b_io));
	assert(cds_list_empty(&wb->b_more_io) && cds_list_empty(&wb->drops));
	counters_fini((struct counter *)&wb->nr, WB_NR_COUNTERS);
	mutex_fini(&wb->lock);
	mem_free(wb);
}

bool wb_start(struct wb *wb, enum wb_state bit)
{
	if (state_or(&wb->state, bit) & bit)
		return false;
	waitq_wake_all(&wb->wake);
	return true;
}

void wb_kick(struct wb *wb)
{
	if (counter_sum(&wb->nr.dontcache_dirty) > 0 &&
	    wb_start(wb, WB_START_DONTCACHE))
		atomic_fetch_add(&wb->kicks, 1);
}

void wb_list(struct wb *wb, struct mapping *m)
{
	mapping_get(m);
	m->listed = true;
	m->dirtied_ns = clock_ns();
	mutex_lock(&wb->lock);
	cds_list_add_tail(&m->wb_node, &wb->b_dirty);
	mutex_unlock(&wb->lock);
}

struct mapping *wb_take(struct wb *wb)
{
	struct mapping *m = NULL;

	mutex_lock(&wb->lock);
	if (!cds_list_empty(&wb->b_io)) {
		m = cds_list_first_entry(&wb->b_io, struct mapping, wb_node);
		cds_list_del_init(&m->wb_node);
	}
	mutex_unlock(&wb->lock);
	return m;
}

void wb_queue_io(struct wb *wb, uint64_t older_than)
{
	struct mapping *m, *next;

	mutex_lock(&wb->lock);
	if (cds_list_empty(&wb->b_io)) {
		/* In front what waits longest: leftovers, then by age. */
		cds_list_splice(&wb->b_more_io, &wb->b_io);
		CDS_INIT_LIST_HEAD(&wb->b_more_io);
		cds_list_for_each_entry_safe (m, next, &wb->b_dirty, wb_node) {
			if (m->dirtied_ns > older_than)
				break;
			cds_list_del(&m->wb_node);
			cds_list_add_tail(&m->wb_node, &wb->b_io);
		}
	}
	mutex_unlock(&wb->lock);
}

void wb_give_back(struct mapping *m, bool more)
{
	struct wb *wb;
	bool listed;

	mutex_lock(&m->index_lock);
	m->listed = listed = index_any(&m->index, TAG_DIRTY);
	if (listed) {
		/* Its wb may have changed meanwhile. */
		wb = m->wb;
		mutex_lock(&wb->lock);
		if (more) {
			cds_list_add_tail(&m->wb_node, &wb->b_more_io);
		} else {
			m->dirtied_ns = clock_ns();
			cds_list_add_tail(&m->wb_node, &wb->b_dirty);
		}
		mutex_unlock(&wb->lock);
	}
	mutex_unlock(&m->index_lock);
	if (!listed)
		mapping_put(m);
}

void wb_unlist(struct mapping *m)
{
	bool unlisted = false;

	mutex_lock(&m->index_lock);
	if (m->listed && !index_any(&m->index, TAG_DIRTY)) {
		mutex_lock(&m->wb->lock);
		unlisted = !cds_list_empty(&m->wb_node);
		cds_list_del_init(&m->wb_node);
		mutex_unlock(&m->wb->lock);
		m->listed = !unlisted;
	}
	mutex_unlock(&m->index_lock);
	if (unlisted)
		mapping_put(m);
}

bool wb_has_io(struct wb *wb)
{
	bool has;

	mutex_lock(&wb->lock);
	has = !cds_list_empty(&wb->b_io) || !cds_list_empty(&wb->b_more_io) ||
	      !cds_list_empty(&wb->b_dirty);
	mutex_unlock(&wb->lock);
	return has;
}

/* ---- backing devices ---- */

int bdi_create(struct tr_cache *cache, struct tr_store *store, struct bdi **out)
{
	struct bdi *b = mem_zalloc(sizeof(*b));
	int err = -ENOMEM;

	if (!b)
		return err;
	b->cache = cache;
	b->store = store;
	if (counters_init(b->totals, BDI_TOTALS))
		goto out_free;
	mutex_init(&b->lock, LOCK_STORE);
	err = wb_create(b, 0, &b->root);
	if (err)
		goto out_counters;
	*out = b;
	return 0;
out_counters:
	mutex_fini(&b->lock);
	counters_fini(b->totals, BDI_TOTALS);
out_free:
	mem_free(b);
	return err;
}

void bdi_destroy(struct bdi *b)
{
	while (b->nr_idle)
		b->store->ops->queue_destroy(b->idle[--b->nr_idle]);
	wb_put(b->root);
	counters_fini(b->totals, BDI_TOTALS);
	mutex_fini(&b->lock);
	mem_free(b);
}

int bdi_queue_get(struct bdi *b, struct tr_queue **out)
{
	struct tr_queue *q = NULL;

	mutex_lock(&b->lock);
	if (b->nr_idle)
		q = b->idle[--b->nr_idle];
	mutex_unlock(&b->lock);
	if (!q)
		return b->store->ops->queue_create(b->store, out);
	*out = q;
	return 0;
}

void bdi_queue_put(struct bdi *b, struct tr_queue *q)
{
	mutex_lock(&b->lock);
	if (b->nr_idle < BDI_QUEUES_MAX) {
		b->idle[b->nr_idle++] = q;
		q = NULL;
	}
	mutex_unlock(&b->lock);
	if (q)
		b->store->ops->queue_destroy(q);
}

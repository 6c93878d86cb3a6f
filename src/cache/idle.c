/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * Files that nobody has open and the cache still has pages of. Each keeps its
 * store's file open, so there may not be too many, and one whose last link was
 * removed must be let go soon: the host frees its space no sooner.
 *
 * Letting go writes back first, even what nobody will read: a file is idle when
 * it is chosen, but may be opened again while it is written.
 */
#include "cache/cache.h"
#include "cache/invalidate.h"
#include "cache/io.h"

/* The oldest, with a reference, now the youngest; NULL: no more than keep. */
static struct mapping *take_oldest(struct tr_cache *c, uint64_t keep)
{
	struct mapping *m = NULL;

	mutex_lock(&c->lock);
	if (c->nr_idle > keep) {
		m = cds_list_first_entry(&c->idle, struct mapping, idle);
		mapping_get(m);
		/* Not again, if it cannot be let go now. */
		cds_list_del(&m->idle);
		cds_list_add_tail(&m->idle, &c->idle);
	}
	mutex_unlock(&c->lock);
	return m;
}

static void let_go(struct mapping *m)
{
	(void)cache_sync_range(m, 0, 0, false);
	(void)cache_invalidate(m, 0, INDEX_MAX, false);
	wb_unlist(m);
}

void idle_shed_surplus(struct tr_cache *c)
{
	struct mapping *m = take_oldest(c, c->idle_max);

	if (!m)
		return;
	let_go(m);
	mapping_put(m);
}

void idle_shed_removed(struct tr_cache *c)
{
	struct tr_store_attr attr;
	struct mapping *m;
	uint64_t nr;

	mutex_lock(&c->lock);
	nr = c->nr_idle;
	mutex_unlock(&c->lock);
	while (nr-- && (m = take_oldest(c, 0))) {
		if (!m->bdi->store->ops->getattr(m->sf, &attr) && !attr.nlink)
			let_go(m);
		mapping_put(m);
	}
}

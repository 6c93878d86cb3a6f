/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * Parameters, statistics and the check of all invariants.
 */
#include "cache/cache.h"
#include "folio/check.h"
#include "folio/lru.h"
#include "writeback/fill.h"
#include "writeback/throttle.h"

#include <errno.h>
#include <stddef.h>
#include <stdio.h>
#include <string.h>

static const struct parameter {
	const char *name;
	size_t at; /* in struct parameters */
	int64_t least, most;
} parameters[] = {
#define ROW_(name, unit, dflt, least, most, sentence)                          \
	{ #name, offsetof(struct parameters, name), least, most },
	TR_PARAMETERS(ROW_)
#undef ROW_
};

static const struct parameter *find_parameter(const char *name)
{
	for (size_t i = 0; name && i < ARRAY_SIZE(parameters); i++)
		if (!strcmp(parameters[i].name, name))
			return &parameters[i];
	return NULL;
}

static _Atomic int64_t *slot(struct tr_cache *c, const struct parameter *p)
{
	return (_Atomic int64_t *)((char *)&c->params + p->at);
}

int tr_cache_set(struct tr_cache *c, const char *name, int64_t value)
{
	const struct parameter *p = find_parameter(name);

	if (!c || !name)
		return -EINVAL;
	if (!p)
		return -ENOENT;
	if (value < p->least || value > p->most)
		return -EINVAL;
	atomic_store(slot(c, p), value);
	return 0;
}

int tr_cache_get(struct tr_cache *c, const char *name, int64_t *value)
{
	const struct parameter *p = find_parameter(name);

	if (!c || !name || !value)
		return -EINVAL;
	if (!p)
		return -ENOENT;
	*value = atomic_load(slot(c, p));
	return 0;
}

static void memory_statistics(struct tr_cache *c, struct tr_statistics *s)
{
	uint64_t meta = slab_nr_pages(&c->nodes) + slab_nr_pages(&c->edges);

	for (unsigned i = 0; i < BLOCKS_SLABS; i++)
		meta += slab_nr_pages(&c->blocks[i]);
	s->cache_size = c->size;
	s->cache_ready = arena_ready_pages(c->arena) << PAGE_SHIFT;
	s->free_pages = arena_free_pages(c->arena);
	s->meta_pages = meta + FILL_PAGES;
	s->cached_pages =
		arena_ready_pages(c->arena) - s->free_pages - s->meta_pages;
}

static void device_statistics(struct tr_cache *c, struct tr_statistics *s)
{
	struct bdi *b;

	mutex_lock(&c->lock);
	cds_list_for_each_entry (b, &c->bdis, on_cache) {
		struct wb *wb = b->root;

		s->device_reads += counter_sum(&b->totals[BDI_READS]);
		s->device_read_bytes += counter_sum(&b->totals[BDI_READ_BYTES]);
		s->device_writes += counter_sum(&b->totals[BDI_WRITES]);
		s->device_write_bytes +=
			counter_sum(&b->totals[BDI_WRITE_BYTES]);
		s->device_syncs += counter_sum(&b->totals[BDI_SYNCS]);
		s->kicks += atomic_load(&wb->kicks);
		s->passes_background +=
			atomic_load(&wb->passes[WB_REASON_BACKGROUND]);
		s->passes_periodic +=
			atomic_load(&wb->passes[WB_REASON_PERIODIC]);
		s->passes_sync += atomic_load(&wb->passes[WB_REASON_SYNC]);
		s->passes_reclaim +=
			atomic_load(&wb->passes[WB_REASON_RECLAIM]);
		s->passes_dontcache +=
			atomic_load(&wb->passes[WB_REASON_DONTCACHE]);
		s->passes_edge_age +=
			atomic_load(&wb->passes[WB_REASON_EDGE_AGE]);
		s->dirtied += counter_sum(&wb->nr.dirtied);
		s->written += counter_sum(&wb->nr.written);
	}
	s->mappings = c->nr_mappings;
	mutex_unlock(&c->lock);
}

static uint64_t list_length(const struct cds_list_head *head)
{
	const struct cds_list_head *at;
	uint64_t nr = 0;

	for (at = head->next; at != head; at = at->next)
		nr++;
	return nr;
}

static void wb_read(struct wb *wb, struct wb_statistics *s)
{
	*s = (struct wb_statistics){
		.store = wb->bdi->store,
		.group = wb->group,
		.state = atomic_load(&wb->state),
		.writeback = counter_sum(&wb->nr.writeback),
		.reclaimable = counter_sum(&wb->nr.reclaimable),
		.edge_dirty = counter_sum(&wb->nr.edge_dirty),
		.dontcache_dirty = counter_sum(&wb->nr.dontcache_dirty),
		.dirtied = counter_sum(&wb->nr.dirtied),
		.written = counter_sum(&wb->nr.written),
		.bandwidth = atomic_load(&wb->bandwidth),
		.kicks = atomic_load(&wb->kicks),
	};
	for (int i = 0; i < WB_REASONS; i++)
		s->passes[i] = atomic_load(&wb->passes[i]);
	for (int i = 0; i < BDI_TOTALS; i++)
		s->device[i] = counter_sum(&wb->bdi->totals[i]);
	mutex_lock(&wb->lock);
	s->b_dirty = list_length(&wb->b_dirty);
	s->b_io = list_length(&wb->b_io);
	s->b_more_io = list_length(&wb->b_more_io);
	mutex_unlock(&wb->lock);
}

unsigned cache_wb_statistics(struct tr_cache *c, struct wb_statistics *out,
			     unsigned max)
{
	unsigned nr = 0;
	struct bdi *b;
	struct wb *wb;

	mutex_lock(&c->lock);
	cds_list_for_each_entry (b, &c->bdis, on_cache)
		cds_list_for_each_entry (wb, &c->wbs, on_cache)
			if (wb->bdi == b && nr < max)
				wb_read(wb, &out[nr++]);
	mutex_unlock(&c->lock);
	return nr;
}

void tr_cache_statistics(struct tr_cache *c, struct tr_statistics *out)
{
	struct tr_statistics s = { 0 };

	if (!c || !out)
		return;
	memory_statistics(c, &s);
	device_statistics(c, &s);
	s.reclaimable = counter_sum(&c->reclaimable);
	s.edge_dirty = counter_sum(&c->edge_dirty);
	s.dontcache_dirty = counter_sum(&c->dontcache_dirty);
	s.writeback = counter_sum(&c->writeback);
	s.peak_dirty = atomic_load(&c->peak_dirty);
	s.edges_held = atomic_load(&c->nr_edges);
	s.edges_completed = counter_sum(&c->count[COUNT_EDGES_COMPLETED]);
	s.edges_aged = counter_sum(&c->count[COUNT_EDGES_AGED]);
	s.edges_evicted = counter_sum(&c->count[COUNT_EDGES_EVICTED]);
	s.edges_detached = counter_sum(&c->count[COUNT_EDGES_DETACHED]);
	s.lazy_fills = counter_sum(&c->count[COUNT_LAZY_FILLS]);
	s.fills = counter_sum(&c->count[COUNT_FILLS]);
	s.dropped_behind = counter_sum(&c->count[COUNT_DROPPED_BEHIND]);
	s.reclaimed = counter_sum(&c->count[COUNT_RECLAIMED]);
	s.throttled = counter_sum(&c->count[COUNT_THROTTLED]);
	s.throttled_ns = counter_sum(&c->count[COUNT_THROTTLED_NS]);
	s.direct_fallbacks = counter_sum(&c->count[COUNT_DIRECT_FALLBACKS]);
	s.adopted = counter_sum(&c->count[COUNT_ADOPTED]);
	s.read_hits = counter_sum(&c->count[COUNT_READ_HITS]);
	s.read_misses = counter_sum(&c->count[COUNT_READ_MISSES]);
	s.sync_calls = counter_sum(&c->count[COUNT_SYNC_CALLS]);
	s.writeback_errors = counter_sum(&c->count[COUNT_WRITEBACK_ERRORS]);
	s.lost_pages = counter_sum(&c->count[COUNT_LOST_PAGES]);
	*out = s;
}

void tr_cache_reset_peak(struct tr_cache *c)
{
	if (c)
		atomic_store(&c->peak_dirty, throttle_dirty_pages(c));
}

static int differs(const char *what, long counted, long tagged)
{
	if (counted == tagged)
		return 0;
	fprintf(stderr, "tr_cache_check: %s: counted %ld, tagged %ld\n", what,
		counted, tagged);
	return -EUCLEAN;
}

int tr_cache_check(struct tr_cache *c)
{
	struct dirty_sums sums = { 0 };
	struct mapping *m;
	long on_lru = 0;
	int err = 0;

	if (!c)
		return -EINVAL;
	/* Flushers lock folios to look at them. */
	cache_pause(c);
	mutex_lock(&c->lock);
	for (unsigned i = 0; i < MAPPING_BUCKETS; i++)
		cds_list_for_each_entry (m, &c->buckets[i], bucket)
			err = mapping_check(m, &sums) ?: err;
	mutex_unlock(&c->lock);
	err = differs("reclaimable", counter_sum(&c->reclaimable),
		      sums.reclaimable)
		      ?: err;
	err = differs("edge_dirty", counter_sum(&c->edge_dirty),
		      sums.edge_dirty)
		      ?: err;
	err = differs("dontcache_dirty", counter_sum(&c->dontcache_dirty),
		      sums.dontcache_dirty)
		      ?: err;
	err = differs("writeback", counter_sum(&c->writeback), sums.writeback)
		      ?: err;
	err = lru_check(c, &on_lru) ?: err;
	err = differs("on LRU lists", on_lru, sums.on_lru) ?: err;
	err = differs("edges", atomic_load(&c->nr_edges), sums.edges) ?: err;
	return cache_resume(c) ?: err;
}

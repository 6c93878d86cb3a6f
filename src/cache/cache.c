/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * A cache as a whole: making and ending it, its devices, parameters and
 * statistics.
 */
#include "cache/cache.h"

#include "base/mem.h"
#include "cache/invalidate.h"
#include "cache/io.h"
#include "cache/reclaim.h"
#include "folio/blocks.h"
#include "folio/edge.h"
#include "folio/lru.h"
#include "writeback/fill.h"
#include "writeback/flush.h"
#include "writeback/throttle.h"

#include <errno.h>
#include <string.h>
#include <sys/resource.h>
#include <unistd.h>

/* The default size: a quarter of memory, at most this. */
#define SIZE_DEFAULT_MAX (4ull << 30)

static uint64_t default_size(void)
{
	uint64_t pages = sysconf(_SC_PHYS_PAGES);

	return min_of(align_down(pages / 4 * PAGE_SIZE, 1 << 20),
		      SIZE_DEFAULT_MAX);
}

static void default_parameters(struct tr_cache *c)
{
	struct parameters *p = &c->params;

#define SET_(name, unit, dflt, least, most, sentence)                          \
	atomic_init(&p->name, dflt);
	TR_PARAMETERS(SET_)
#undef SET_
	atomic_init(&p->dirty_background, c->size / 10);
	atomic_init(&p->dirty_limit, c->size / 5);
	atomic_init(&p->dontcache_limit,
		    min_of(c->size / 8, (uint64_t)120 << 20));
	atomic_init(&p->edge_max_pages, c->size / PAGE_SIZE / 64);
}

static void init_lists(struct tr_cache *c)
{
	mutex_init(&c->lock, LOCK_CACHE);
	for (unsigned i = 0; i < MAPPING_BUCKETS; i++)
		CDS_INIT_LIST_HEAD(&c->buckets[i]);
	CDS_INIT_LIST_HEAD(&c->idle);
	CDS_INIT_LIST_HEAD(&c->bdis);
	CDS_INIT_LIST_HEAD(&c->wbs);
	CDS_INIT_LIST_HEAD(&c->files);
	waitq_init(&c->memory);
	waitq_init(&c->pressure);
	waitq_init(&c->closed);
	lru_init(c);
}

/* A chunk of the arena is ready: for the rings of every device. */
static void chunk_ready(void *arg, void *addr, size_t len)
{
	struct tr_cache *c = arg;
	struct bdi *b;

	mutex_lock(&c->lock);
	if (c->nr_chunks < CHUNKS_MAX) {
		c->chunks[c->nr_chunks].iov_base = addr;
		c->chunks[c->nr_chunks++].iov_len = len;
	}
	cds_list_for_each_entry (b, &c->bdis, on_cache)
		if (b->store->ops->add_memory)
			(void)b->store->ops->add_memory(b->store, addr, len);
	mutex_unlock(&c->lock);
	waitq_wake_all(&c->memory);
}

static int make_memory(struct tr_cache *c, bool populate)
{
	int err = arena_create(c->size, populate, chunk_ready, c, &c->arena);

	if (err)
		return err;
	err = slab_init(&c->nodes, c->arena, INDEX_NODE_SIZE, "nodes");
	err = err ?: edge_init(c);
	err = err ?: blocks_init(c);
	err = err ?: fill_init(c);
	if (err)
		arena_destroy(c->arena);
	return err;
}

static void free_memory(struct tr_cache *c)
{
	/* Nodes of the last index may still wait for a grace period. */
	rcu_barrier();
	fill_fini(c);
	blocks_fini(c);
	edge_fini(c);
	slab_fini(&c->nodes);
	arena_destroy(c->arena);
}

static void free_cache(struct tr_cache *c)
{
	struct tr_file *f, *next;

	cds_list_for_each_entry_safe (f, next, &c->files, node)
		mem_free(f);
	lru_fini(c);
	mutex_fini(&c->lock);
	mem_free(c);
}

/* Counters and lines of waiting: all that comes before memory. */
static int make_parts(struct tr_cache *c)
{
	struct counter *sums[] = { &c->reclaimable, &c->edge_dirty,
				   &c->writeback, &c->dontcache_dirty };
	unsigned i;
	int err = counters_init(c->count, CACHE_COUNTS);

	if (err)
		return err;
	for (i = 0; i < ARRAY_SIZE(sums); i++)
		if (counter_init(sums[i]))
			break;
	if (i == ARRAY_SIZE(sums) && !throttle_init(c))
		return 0;
	while (i--)
		counter_fini(sums[i]);
	counters_fini(c->count, CACHE_COUNTS);
	return -ENOMEM;
}

static void free_parts(struct tr_cache *c)
{
	throttle_fini(c);
	counter_fini(&c->reclaimable);
	counter_fini(&c->edge_dirty);
	counter_fini(&c->writeback);
	counter_fini(&c->dontcache_dirty);
	counters_fini(c->count, CACHE_COUNTS);
}

/* Files whose last opening ended keep their store's file open, for what is still
 * cached: so many, but with two descriptors each no more than a quarter of
 * those that the process may have. */
#define IDLE_MAX 1024

static uint64_t default_idle(void)
{
	struct rlimit r;

	if (getrlimit(RLIMIT_NOFILE, &r))
		return IDLE_MAX;
	return min_of((uint64_t)r.rlim_cur / 8, (uint64_t)IDLE_MAX);
}

int tr_cache_create(const struct tr_cache_options *options,
		    struct tr_cache **out)
{
	struct tr_cache_options o = { 0 };
	struct tr_cache *c;
	int err;

	if (!out)
		return -EINVAL;
	if (options)
		memcpy(&o, options, min_of(options->struct_size, sizeof(o)));
	o.size = o.size ?: default_size();
	if (o.size < ARENA_SIZE_MIN)
		return -EINVAL;
	c = mem_zalloc_aligned(CACHE_LINE, sizeof(*c));
	if (!c)
		return -ENOMEM;
	c->size = o.size;
	c->no_flushers = o.no_flushers;
	c->idle_max = default_idle();
	init_lists(c);
	default_parameters(c);
	err = make_parts(c);
	if (err)
		goto out_free;
	err = make_memory(c, o.populate);
	if (err)
		goto out_parts;
	if (!c->no_flushers)
		err = reclaimer_start(c);
	if (err)
		goto out_memory;
	*out = c;
	return 0;
out_memory:
	free_memory(c);
out_parts:
	free_parts(c);
out_free:
	free_cache(c);
	return err;
}

/* ---- devices ---- */

static struct bdi *find_bdi(struct tr_cache *c, struct tr_store *store)
	REQUIRES(c->lock)
{
	struct bdi *b;

	cds_list_for_each_entry (b, &c->bdis, on_cache)
		if (b->store == store)
			return b;
	return NULL;
}

static void add_chunks(struct tr_cache *c, struct tr_store *store)
	REQUIRES(c->lock)
{
	for (unsigned i = 0; store->ops->add_memory && i < c->nr_chunks; i++)
		(void)store->ops->add_memory(store, c->chunks[i].iov_base,
					     c->chunks[i].iov_len);
}

int cache_bdi(struct tr_cache *c, struct tr_store *store, struct bdi **out)
{
	struct bdi *b, *fresh;
	int err;

	mutex_lock(&c->lock);
	b = find_bdi(c, store);
	mutex_unlock(&c->lock);
	if (b) {
		*out = b;
		return 0;
	}
	err = bdi_create(c, store, &fresh);
	if (!err && !c->no_flushers) {
		err = flusher_start(fresh->root);
		if (err)
			bdi_destroy(fresh);
	}
	if (err)
		return err;
	mutex_lock(&c->lock);
	b = find_bdi(c, store);
	if (!b) {
		b = fresh;
		fresh = NULL;
		cds_list_add_tail(&b->on_cache, &c->bdis);
		cds_list_add_tail(&b->root->on_cache, &c->wbs);
		add_chunks(c, store);
	}
	mutex_unlock(&c->lock);
	if (fresh) {
		flusher_stop(fresh->root);
		bdi_destroy(fresh);
	}
	*out = b;
	return 0;
}

static void stop_flushers(struct tr_cache *c)
{
	struct bdi *b;

	/* Nobody adds one now. */
	cds_list_for_each_entry (b, &c->bdis, on_cache)
		flusher_stop(b->root);
}

static void free_bdis(struct tr_cache *c)
{
	struct bdi *b, *next;

	cds_list_for_each_entry_safe (b, next, &c->bdis, on_cache) {
		for (unsigned i = 0;
		     b->store->ops->drop_memory && i < c->nr_chunks; i++)
			b->store->ops->drop_memory(b->store,
						   c->chunks[i].iov_base,
						   c->chunks[i].iov_len);
		/* Folios that were truncated away while queued. */
		while (wb_run_drops(b->root))
			task_yield();
		bdi_destroy(b);
	}
}

void cache_pause(struct tr_cache *c)
{
	struct wb *wb;

	reclaimer_stop(c);
	cds_list_for_each_entry (wb, &c->wbs, on_cache) {
		flusher_stop(wb);
		while (wb_run_drops(wb))
			task_yield();
	}
}

int cache_resume(struct tr_cache *c)
{
	struct wb *wb;
	int err;

	if (c->no_flushers)
		return 0;
	atomic_store(&c->stopping, false);
	err = reclaimer_start(c);
	cds_list_for_each_entry (wb, &c->wbs, on_cache) {
		state_and(&wb->state, ~WB_STOP);
		err = flusher_start(wb) ?: err;
	}
	return err;
}

/* Takes a mapping's last folios away, dirty or not. */
static void empty_mapping(struct mapping *m)
{
	cache_remove_all(m, 0, INDEX_MAX);
	while (wb_run_drops(m->bdi->root))
		task_yield();
	wb_unlist(m);
}

/* The mappings there are, each with a reference, in memory of the caller's. */
static struct mapping **all_mappings(struct tr_cache *c, size_t *nr)
{
	struct mapping **all, *m;

	mutex_lock(&c->lock);
	all = mem_zalloc_array(c->nr_mappings + 1, sizeof(*all));
	*nr = 0;
	for (unsigned i = 0; all && i < MAPPING_BUCKETS; i++)
		cds_list_for_each_entry (m, &c->buckets[i], bucket) {
			mapping_get(m);
			all[(*nr)++] = m;
		}
	mutex_unlock(&c->lock);
	return all;
}

int tr_cache_sync(struct tr_cache *c)
{
	struct mapping **all;
	size_t nr;
	int err = 0;

	if (!c)
		return -EINVAL;
	all = all_mappings(c, &nr);
	if (!all)
		return -ENOMEM;
	for (size_t i = 0; i < nr; i++) {
		int one = cache_sync_range(all[i], 0, 0, true);

		err = err ?: one;
		mapping_put(all[i]);
	}
	mem_free(all);
	return err;
}

/* A mapping that is left, with a reference. */
static struct mapping *any_mapping(struct tr_cache *c)
{
	struct mapping *m = NULL;

	mutex_lock(&c->lock);
	for (unsigned i = 0; !m && i < MAPPING_BUCKETS; i++)
		if (!cds_list_empty(&c->buckets[i]))
			m = cds_list_first_entry(&c->buckets[i], struct mapping,
						 bucket);
	if (m)
		mapping_get(m);
	mutex_unlock(&c->lock);
	return m;
}

int tr_cache_destroy(struct tr_cache *c)
{
	struct mapping *m;
	bool busy;

	if (!c)
		return -EINVAL;
	mutex_lock(&c->lock);
	busy = c->nr_open;
	mutex_unlock(&c->lock);
	if (busy)
		return -EBUSY;
	(void)tr_cache_sync(c);
	reclaimer_stop(c);
	stop_flushers(c);
	while ((m = any_mapping(c))) {
		empty_mapping(m);
		mapping_put(m);
	}
	free_bdis(c);
	free_memory(c);
	free_parts(c);
	free_cache(c);
	return 0;
}

/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * Mappings: their table, references, gate and closed ranges.
 *
 * References fall to zero only under cache.lock, so a lookup in the table never
 * meets a dying mapping. The index holds one reference while it is not empty.
 */
#include "folio/mapping.h"

#include "base/clock.h"
#include "base/mem.h"
#include "folio/lru.h"
#include "folio/state.h"

#include <assert.h>
#include <errno.h>

static struct cds_list_head *bucket_of(struct tr_cache *c,
				       const struct tr_file_id *id)
{
	uint64_t h = (id->ino ^ id->dev << 32 ^ id->generation << 48) *
		     0x9e3779b97f4a7c15ull;

	return &c->buckets[h >> 32 & (MAPPING_BUCKETS - 1)];
}

static bool same_file(const struct tr_file_id *a, const struct tr_file_id *b)
{
	return a->dev == b->dev && a->ino == b->ino &&
	       a->generation == b->generation;
}

static struct mapping *find(struct tr_cache *c, struct bdi *bdi,
			    const struct tr_file_id *id) REQUIRES(c->lock)
{
	struct mapping *m;

	cds_list_for_each_entry (m, bucket_of(c, id), bucket)
		if (m->bdi == bdi && same_file(&m->id, id))
			return m;
	return NULL;
}

static void init_sync(struct sync_state *s)
{
	mutex_init(&s->lock, LOCK_SYNC);
	CDS_INIT_LIST_HEAD(&s->waiting);
	waitq_init(&s->joined);
	for (unsigned i = 0; i < SYNC_QUEUES; i++)
		waitq_init(&s->called[i]);
}

static struct mapping *create(struct tr_cache *c, struct bdi *bdi,
			      struct tr_store_file *sf,
			      const struct tr_store_attr *attr)
{
	struct mapping *m = mem_zalloc(sizeof(*m));

	if (!m)
		return NULL;
	m->cache = c;
	m->bdi = bdi;
	m->sf = sf;
	m->id = attr->id;
	m->attr = *attr;
	m->unit = max_of(attr->block, PAGE_SIZE);
	m->min_order = __builtin_ctz(m->unit) - PAGE_SHIFT;
	m->max_order = FOLIO_ORDER_MAX;
	m->wb = bdi->root;
	wb_get(m->wb);
	mutex_init(&m->index_lock, LOCK_INDEX);
	index_init(&m->index, &c->nodes);
	CDS_INIT_LIST_HEAD(&m->wb_node);
	CDS_INIT_LIST_HEAD(&m->ranges);
	CDS_INIT_LIST_HEAD(&m->edges);
	CDS_INIT_LIST_HEAD(&m->idle);
	atomic_init(&m->size, attr->size);
	atomic_init(&m->store_size, attr->size);
	init_sync(&m->sync);
	return m;
}

static void destroy(struct mapping *m)
{
	assert(index_is_empty(&m->index) && !m->listed);
	/* Host errors reach only descriptors that are open then: nothing
	 * unsynced is left behind a closed one. */
	if (atomic_load(&m->changes) != atomic_load(&m->durable))
		(void)m->bdi->store->ops->sync(m->sf, true);
	m->bdi->store->ops->close(m->sf);
	wb_put(m->wb);
	mutex_fini(&m->index_lock);
	mutex_fini(&m->sync.lock);
	mem_free(m);
}

static void add_opening(struct mapping *m) REQUIRES(m->cache->lock)
{
	atomic_fetch_add(&m->refs, 1);
	if (!m->nr_open++ && !cds_list_empty(&m->idle)) {
		cds_list_del_init(&m->idle);
		m->cache->nr_idle--;
	}
	m->cache->nr_open++;
}

static uint64_t count_gone(struct tr_cache *c)
{
	uint64_t gone;

	mutex_lock(&c->lock);
	gone = c->nr_gone;
	mutex_unlock(&c->lock);
	return gone;
}

static int get_attr(struct bdi *bdi, struct tr_store_file *sf,
		    struct tr_store_attr *attr)
{
	int err = bdi->store->ops->getattr(sf, attr);

	if (!err && (attr->block < 512 || !is_power_of_two(attr->block) ||
		     attr->block > BLOCK_MAX))
		err = -EINVAL;
	return err;
}

/* The mapping there is, or fresh; with an opening. NULL: mappings have ended
 * since they were gone in number, perhaps this file's. */
static struct mapping *find_or_add(struct tr_cache *c, struct mapping *fresh,
				   uint64_t gone)
{
	struct mapping *m;

	mutex_lock(&c->lock);
	m = find(c, fresh->bdi, &fresh->id);
	if (!m && c->nr_gone == gone) {
		m = fresh;
		cds_list_add(&m->bucket, bucket_of(c, &m->id));
		c->nr_mappings++;
	}
	if (m)
		add_opening(m);
	mutex_unlock(&c->lock);
	return m;
}

int mapping_open(struct tr_cache *c, struct bdi *bdi, struct tr_store_file *sf,
		 struct mapping **out)
{
	struct mapping *m = NULL, *fresh = NULL;
	struct tr_store_attr attr;
	int err;

	/* A mapping that ends meanwhile may have made the file longer since
	 * its attributes were read. */
	while (!m) {
		uint64_t gone = count_gone(c);

		err = get_attr(bdi, sf, &attr);
		if (!err && !fresh)
			fresh = create(c, bdi, sf, &attr);
		if (!err && !fresh)
			err = -ENOMEM;
		if (err)
			goto out;
		fresh->attr = attr;
		atomic_store(&fresh->size, attr.size);
		atomic_store(&fresh->store_size, attr.size);
		m = find_or_add(c, fresh, gone);
	}
	*out = m;
	if (m != fresh)
		destroy(fresh);
	return 0;
out:
	if (fresh)
		destroy(fresh);
	else
		bdi->store->ops->close(sf);
	return err;
}

int mapping_close(struct mapping *m)
{
	struct tr_cache *c = m->cache;
	int left;

	mutex_lock(&c->lock);
	left = --m->nr_open;
	c->nr_open--;
	if (!left) {
		cds_list_add_tail(&m->idle, &c->idle);
		c->nr_idle++;
	}
	mutex_unlock(&c->lock);
	return left;
}

void mapping_get(struct mapping *m)
{
	atomic_fetch_add(&m->refs, 1);
}

void mapping_put(struct mapping *m)
{
	struct tr_cache *c = m->cache;
	int refs = atomic_load(&m->refs);
	bool last;

	explore_point(&m->refs);
	while (refs > 1)
		if (atomic_compare_exchange_weak(&m->refs, &refs, refs - 1))
			return;
	mutex_lock(&c->lock);
	last = atomic_fetch_sub(&m->refs, 1) == 1;
	if (last) {
		cds_list_del(&m->bucket);
		c->nr_mappings--;
		c->nr_gone++;
		if (!cds_list_empty(&m->idle)) {
			cds_list_del(&m->idle);
			c->nr_idle--;
		}
	}
	mutex_unlock(&c->lock);
	if (last)
		destroy(m);
}

int mapping_insert(struct mapping *m, struct folio *f, uint64_t idx)
{
	int err = -EAGAIN;

	mutex_lock(&m->index_lock);
	if (!range_is_closed(m, idx, f->order)) {
		f->mapping = m;
		f->idx = idx;
		err = index_insert(&m->index, idx, f->order, f);
	}
	if (err)
		f->mapping = NULL;
	else if (m->index.nr_pages == folio_nr_pages(f))
		mapping_get(m);
	mutex_unlock(&m->index_lock);
	if (!err)
		lru_add(m->cache, f);
	return err;
}

/* ---- the gate ---- */

bool gate_try_enter(struct mapping *m)
{
	unsigned g = atomic_load(&m->gate);

	explore_point(&m->gate);
	while (!(g & GATE_EXCLUSIVE))
		if (atomic_compare_exchange_weak(&m->gate, &g, g + 1))
			return true;
	return false;
}

void gate_enter(struct mapping *m)
{
	wait_event(&m->cache->closed, gate_try_enter(m));
}

void gate_leave(struct mapping *m)
{
	explore_point(&m->gate);
	if (atomic_fetch_sub(&m->gate, 1) - 1 == GATE_EXCLUSIVE)
		waitq_wake_all(&m->cache->closed);
}

static bool try_claim(struct mapping *m)
{
	explore_point(&m->gate);
	return !(atomic_fetch_or(&m->gate, GATE_EXCLUSIVE) & GATE_EXCLUSIVE);
}

void gate_close(struct mapping *m)
{
	wait_event(&m->cache->closed, try_claim(m));
	wait_event(&m->cache->closed, atomic_load(&m->gate) == GATE_EXCLUSIVE);
}

void gate_open(struct mapping *m)
{
	explore_point(&m->gate);
	atomic_store(&m->gate, 0);
	waitq_wake_all(&m->cache->closed);
}

/* ---- closed ranges ---- */

static bool overlaps_closed(const struct mapping *m, uint64_t first,
			    uint64_t last) REQUIRES(m->index_lock)
{
	const struct closed_range *r;

	cds_list_for_each_entry (r, &m->ranges, node)
		if (first <= r->last && r->first <= last)
			return true;
	return false;
}

bool range_is_closed(const struct mapping *m, uint64_t idx, unsigned order)
{
	return overlaps_closed(m, idx, idx + (1ull << order) - 1);
}

static bool range_is_free(struct mapping *m, uint64_t first, uint64_t last)
{
	bool free;

	mutex_lock(&m->index_lock);
	free = !overlaps_closed(m, first, last);
	mutex_unlock(&m->index_lock);
	return free;
}

void range_wait(struct mapping *m, uint64_t idx, unsigned order)
{
	wait_event(&m->cache->closed,
		   range_is_free(m, idx, idx + (1ull << order) - 1));
}

static bool try_close_range(struct mapping *m, struct closed_range *r)
{
	bool free;

	mutex_lock(&m->index_lock);
	free = !overlaps_closed(m, r->first, r->last);
	if (free)
		cds_list_add(&r->node, &m->ranges);
	mutex_unlock(&m->index_lock);
	return free;
}

void range_close(struct mapping *m, struct closed_range *r, uint64_t first,
		 uint64_t last)
{
	r->first = first;
	r->last = last;
	wait_event(&m->cache->closed, try_close_range(m, r));
}

void range_open(struct mapping *m, struct closed_range *r)
{
	mutex_lock(&m->index_lock);
	cds_list_del(&r->node);
	mutex_unlock(&m->index_lock);
	waitq_wake_all(&m->cache->closed);
}

/* ---- size and errors ---- */

void mapping_raise_size(struct mapping *m, int64_t end)
{
	int64_t size = atomic_load(&m->size);

	explore_point(&m->size);
	while (size < end &&
	       !atomic_compare_exchange_weak(&m->size, &size, end))
		;
}

int64_t prepare_enter(struct mapping *m)
{
	atomic_fetch_add(&m->preparing, 1);
	explore_point(&m->size);
	return atomic_load(&m->size);
}

void prepare_leave(struct mapping *m)
{
	explore_point(&m->preparing);
	if (atomic_fetch_sub(&m->preparing, 1) == 1)
		waitq_wake_all(&m->cache->closed);
}

void prepare_wait(struct mapping *m)
{
	wait_event(&m->cache->closed, !atomic_load(&m->preparing));
}

void mapping_touch(struct mapping *m)
{
	struct timespec now = clock_real();

	atomic_store_explicit(&m->mtime_ns,
			      now.tv_sec * (int64_t)NS_PER_S + now.tv_nsec,
			      memory_order_relaxed);
}

void mapping_settle_mtime(struct mapping *m)
{
	const struct tr_store_ops *ops = m->bdi->store->ops;
	int64_t ns = atomic_load(&m->mtime_ns);
	struct timespec at = { ns / (int64_t)NS_PER_S, ns % (int64_t)NS_PER_S };

	if (!atomic_load(&m->sets_mtime) || !ops->set_mtime || !ns ||
	    ns == atomic_load(&m->mtime_set))
		return;
	if (!ops->set_mtime(m->sf, at))
		atomic_store(&m->mtime_set, ns);
}

static uint64_t tagged_pages(struct mapping *m, enum index_tag tag)
	REQUIRES(m->index_lock)
{
	uint64_t idx = 0, n = 0;
	struct folio *f;

	while ((f = index_next_tag(&m->index, &idx, INDEX_MAX, tag))) {
		n += folio_nr_pages(f);
		idx = f->idx + folio_nr_pages(f);
	}
	return n;
}

uint64_t mapping_dirty_pages(struct mapping *m)
{
	uint64_t n;

	mutex_lock(&m->index_lock);
	n = tagged_pages(m, TAG_DIRTY) + tagged_pages(m, TAG_EDGE);
	mutex_unlock(&m->index_lock);
	return n;
}

void mapping_raise_store_size(struct mapping *m, int64_t end)
{
	int64_t size = atomic_load(&m->store_size);

	while (size < end &&
	       !atomic_compare_exchange_weak(&m->store_size, &size, end))
		;
}

/* As in Linux's errseq_t: the errno, whether anybody was told, a count. */
#define ERR_ERRNO 0xfffu
#define ERR_SEEN 0x1000u
#define ERR_ONE 0x2000u

void err_set(struct mapping *m, int error)
{
	unsigned old = atomic_load(&m->err), new;

	/* Afterwards: who sees the number finds the error. */
	do {
		new = (old & ~(ERR_ERRNO | ERR_SEEN)) | (unsigned)-error;
		if (old & ERR_SEEN)
			new += ERR_ONE;
	} while (!atomic_compare_exchange_weak(&m->err, &old, new));
	atomic_fetch_add(&m->nr_errors, 1);
}

int err_last(const struct mapping *m)
{
	return -(int)(atomic_load(&m->err) & ERR_ERRNO);
}

uint32_t err_sample(struct mapping *m)
{
	unsigned old = atomic_load(&m->err);

	return old & ERR_SEEN || !(old & ERR_ERRNO) ? old : 0;
}

int err_check(struct mapping *m, uint32_t *seen)
{
	unsigned old = atomic_load(&m->err);

	if (old == *seen)
		return 0;
	while (!atomic_compare_exchange_weak(&m->err, &old, old | ERR_SEEN))
		;
	*seen = old | ERR_SEEN;
	return -(int)(old & ERR_ERRNO);
}

/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * A slab: pages of the arena cut into objects of one size.
 *
 * Happy path: the first page with a free object gives the head of its chain
 * of free objects. What the slab knows of a page stands in the page's
 * descriptor, so objects fill whole pages and an object's slab is found by
 * arithmetic.
 *
 * Failure: no page to be had: NULL.
 *
 * Invariants: a page is on partial if it has free objects and used ones, on
 * full if it has no free one, and is `empty` if it has no used one; nr_pages
 * and nr_objs count all three. A slab's page keeps refs 0, so that a lookup
 * that is late, and takes the descriptor for the folio it once was, cannot
 * hold it.
 */
#include "folio/slab.h"

#include "base/mem.h"
#include "folio/arena.h"

#include <assert.h>
#include <errno.h>
#include <string.h>

/* What a descriptor is while its page is a slab's. */
struct slab_page {
	atomic_uint state;
	atomic_int refs;
	struct mapping *mapping; /* stays NULL */
	uint64_t nr_used;
	struct cds_list_head list;
	void *free; /* chain through the objects' first words */
	struct slab *slab;
	uint8_t order;
};

_Static_assert(sizeof(struct slab_page) == sizeof(struct folio), "overlay");
#define SAME_PLACE(a, b)                                                       \
	_Static_assert(offsetof(struct slab_page, a) ==                        \
			       offsetof(struct folio, b),                      \
		       "overlay")
SAME_PLACE(state, state);
SAME_PLACE(refs, refs);
SAME_PLACE(mapping, mapping);
SAME_PLACE(order, order);

static struct slab_page *page_of(const void *obj)
{
	struct slab_page *p = (struct slab_page *)folio_of_data(obj);

	assert(p->state == FOLIO_SLAB);
	return p;
}

int slab_init(struct slab *s, struct arena *a, size_t size, const char *name)
{
	if (size < SLAB_SIZE_MIN || size > PAGE_SIZE)
		return -EINVAL;
	memset(s, 0, sizeof(*s));
	mutex_init(&s->lock, LOCK_SLAB);
	s->arena = a;
	s->name = name;
	s->size = (unsigned)align_up(size, sizeof(void *));
	s->per_page = PAGE_SIZE / s->size;
	CDS_INIT_LIST_HEAD(&s->partial);
	CDS_INIT_LIST_HEAD(&s->full);
	return 0;
}

static void page_put(struct slab *s, struct slab_page *p)
{
	s->nr_pages--;
	arena_free(s->arena, (struct folio *)p);
}

void slab_fini(struct slab *s)
{
	if (s->empty)
		page_put(s, (struct slab_page *)s->empty);
	assert(s->nr_objs == 0);
	assert(s->nr_pages == 0);
	mutex_fini(&s->lock);
}

/* A page with no object in use, on no list; NULL if there is none. */
static struct slab_page *page_get(struct slab *s)
{
	struct slab_page *p = (struct slab_page *)s->empty;
	struct folio *f;
	char *at;
	unsigned i;

	if (p) {
		s->empty = NULL;
		return p;
	}
	f = arena_alloc(s->arena, 0, ARENA_RESERVE | ARENA_NOREF);
	if (!f)
		return NULL;
	p = (struct slab_page *)f;
	p->state = FOLIO_SLAB;
	p->slab = s;
	at = folio_data(f);
	for (i = s->per_page; i-- > 0;) {
		*(void **)(at + (size_t)i * s->size) = p->free;
		p->free = at + (size_t)i * s->size;
	}
	s->nr_pages++;
	return p;
}

void *slab_alloc(struct slab *s)
{
	struct slab_page *p;
	void *obj = NULL;

	if (mem_should_fail())
		return NULL;
	mutex_lock(&s->lock);
	if (!cds_list_empty(&s->partial)) {
		p = cds_list_first_entry(&s->partial, struct slab_page, list);
	} else {
		p = page_get(s);
		if (!p)
			goto out;
		cds_list_add(&p->list, &s->partial);
	}
	obj = p->free;
	p->free = *(void **)obj;
	p->nr_used++;
	s->nr_objs++;
	if (!p->free)
		cds_list_move(&p->list, &s->full);
out:
	mutex_unlock(&s->lock);
	if (obj)
		memset(obj, 0, s->size);
	return obj;
}

void slab_free(struct slab *s, void *obj)
{
	struct slab_page *p = page_of(obj);

	mutex_lock(&s->lock);
	assert(p->slab == s);
	assert(p->nr_used > 0);
	if (!p->free)
		cds_list_move(&p->list, &s->partial);
	*(void **)obj = p->free;
	p->free = obj;
	p->nr_used--;
	s->nr_objs--;
	if (p->nr_used == 0) {
		cds_list_del(&p->list);
		if (s->empty)
			page_put(s, p);
		else
			s->empty = (struct folio *)p;
	}
	mutex_unlock(&s->lock);
}

struct slab *slab_of(const void *obj)
{
	return page_of(obj)->slab;
}

uint64_t slab_nr_pages(const struct slab *s)
{
	struct slab *sl = (struct slab *)s;
	uint64_t nr;

	mutex_lock(&sl->lock);
	nr = s->nr_pages;
	mutex_unlock(&sl->lock);
	return nr;
}

uint64_t slab_nr_objs(const struct slab *s)
{
	struct slab *sl = (struct slab *)s;
	uint64_t nr;

	mutex_lock(&sl->lock);
	nr = s->nr_objs;
	mutex_unlock(&sl->lock);
	return nr;
}

static void check_page(const struct slab *s, const struct slab_page *p)
{
	const char *data = folio_data((const struct folio *)p);
	const char *obj;
	uint64_t nr = 0;

	assert(p->state == FOLIO_SLAB);
	assert(p->refs == 0);
	assert(p->order == 0);
	assert(p->slab == s);
	for (obj = p->free; obj; obj = *(void *const *)obj) {
		assert(obj >= data);
		assert((size_t)(obj - data) % s->size == 0);
		assert((size_t)(obj - data) / s->size < s->per_page);
		nr++;
		assert(nr <= s->per_page);
	}
	assert(nr + p->nr_used == s->per_page);
}

int slab_check(struct slab *s)
{
	struct slab_page *p;
	uint64_t pages = 0, objs = 0;

	mutex_lock(&s->lock);
	cds_list_for_each_entry (p, &s->partial, list) {
		check_page(s, p);
		assert(p->nr_used > 0);
		assert(p->free);
		pages++;
		objs += p->nr_used;
	}
	cds_list_for_each_entry (p, &s->full, list) {
		check_page(s, p);
		assert(!p->free);
		pages++;
		objs += p->nr_used;
	}
	if (s->empty) {
		p = (struct slab_page *)s->empty;
		check_page(s, p);
		assert(p->nr_used == 0);
		pages++;
	}
	assert(pages == s->nr_pages);
	assert(objs == s->nr_objs);
	mutex_unlock(&s->lock);
	return 0;
}

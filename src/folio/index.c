/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * The radix tree of a mapping.
 *
 * Happy path: an insert walks from the root to the leaf, makes the nodes that
 * are missing, and stores the folio in its slots. A remove clears them and
 * unhooks every node that became empty; then the root is lowered while all
 * that is in use is its slot 0.
 *
 * Failure: an insert that finds no memory for a node takes out the nodes it
 * made; nothing else fails.
 *
 * Readers under RCU go down only. A node that was unhooked keeps its slots as
 * they are until the readers of its time are gone, so they find below it what
 * was there; a node is put into its parent only when it is complete. What they
 * read is stored with __atomic builtins.
 *
 * Invariants, between calls:
 *  1. A slot is not NULL exactly if its bit in present is set; no node is
 *     empty, and present of a root that is no leaf is not 1.
 *  2. A tag's bit of an inner slot is set exactly if the node there has any
 *     bit of that tag; of a leaf's slot, only at the first page of a folio.
 *  3. A folio at idx of order n fills slots idx to idx + 2^n - 1; idx is a
 *     multiple of 2^n.
 *  4. nr_pages is the leaves' bits, nr_nodes the nodes.
 */
#include "folio/index.h"

#include "folio/slab.h"

#include <assert.h>
#include <errno.h>
#include <inttypes.h>
#include <stdio.h>

/* Leaves that the largest folio needs. */
#define LEAVES_MAX (1u << (FOLIO_ORDER_MAX - INDEX_SHIFT))

/* For walks: not a tag but all that is present. */
#define ANY INDEX_TAGS

static void set_bits(uint64_t *word, uint64_t bits)
{
	__atomic_store_n(word, *word | bits, __ATOMIC_RELEASE);
}

static void clear_bits(uint64_t *word, uint64_t bits)
{
	__atomic_store_n(word, *word & ~bits, __ATOMIC_RELAXED);
}

static unsigned slot_of(const struct index_node *n, uint64_t idx)
{
	return idx >> n->shift & (INDEX_SLOTS - 1);
}

/* nr bits from bit first; nr is at least 1. */
static uint64_t slot_mask(unsigned first, unsigned nr)
{
	return ~0ull >> (INDEX_SLOTS - nr) << first;
}

void index_init(struct index *ix, struct slab *node_slab)
{
	ix->root = NULL;
	ix->slab = node_slab;
	ix->nr_pages = 0;
	ix->nr_nodes = 0;
}

static struct index_node *node_new(struct index *ix, unsigned shift)
{
	struct index_node *n = slab_alloc(ix->slab);

	if (!n)
		return NULL;
	n->shift = (uint8_t)shift;
	ix->nr_nodes++;
	return n;
}

static void node_free(struct rcu_head *head)
{
	struct index_node *n = container_of(head, struct index_node, rcu);

	rcu_callback_start();
	slab_free(slab_of(n), n);
	rcu_callback_end();
}

/* Frees n, which is in no parent any more, when its readers are gone. */
static void node_retire(struct index *ix, struct index_node *n)
{
	ix->nr_nodes--;
	call_rcu(&n->rcu, node_free);
}

/* Puts n, complete, into a slot of parent; NULL: makes it the root. */
static void node_hook(struct index *ix, struct index_node *n,
		      struct index_node *parent, unsigned slot)
{
	n->parent = parent;
	n->offset = (uint8_t)slot;
	if (!parent) {
		rcu_assign_pointer(ix->root, n);
		return;
	}
	rcu_assign_pointer(parent->slots[slot], (void *)n);
	set_bits(&parent->present, 1ull << slot);
}

/* Makes the tree one level higher. */
static int root_raise(struct index *ix)
{
	struct index_node *old = ix->root, *n;
	unsigned t;

	n = node_new(ix, old->shift + INDEX_SHIFT);
	if (!n)
		return -ENOMEM;
	for (t = 0; t < INDEX_TAGS; t++)
		n->tags[t] = old->tags[t] ? 1 : 0;
	node_hook(ix, old, n, 0);
	node_hook(ix, n, NULL, 0);
	return 0;
}

static void root_lower(struct index *ix)
{
	struct index_node *old = ix->root, *n;

	while (old && old->shift && old->present == 1) {
		n = old->slots[0];
		node_hook(ix, n, NULL, 0);
		node_retire(ix, old);
		old = n;
	}
}

/* Takes out n and the nodes above it as long as they are empty. */
static void node_prune(struct index *ix, struct index_node *n)
{
	struct index_node *parent;

	while (n && !n->present) {
		parent = n->parent;
		if (parent) {
			rcu_assign_pointer(parent->slots[n->offset],
					   (void *)NULL);
			clear_bits(&parent->present, 1ull << n->offset);
		} else {
			rcu_assign_pointer(ix->root, (struct index_node *)NULL);
		}
		node_retire(ix, n);
		n = parent;
	}
}

/* The lowest node on the way to idx; NULL if idx is beyond the root's. */
static struct index_node *node_lowest(const struct index *ix, uint64_t idx)
{
	struct index_node *n = ix->root, *child;

	if (!n || idx >> n->shift >= INDEX_SLOTS)
		return NULL;
	while (n->shift) {
		child = n->slots[slot_of(n, idx)];
		if (!child)
			break;
		n = child;
	}
	return n;
}

static struct index_node *leaf_find(const struct index *ix, uint64_t idx)
{
	struct index_node *n = node_lowest(ix, idx);

	return n && !n->shift ? n : NULL;
}

static struct index_node *root_make(struct index *ix, uint64_t idx)
{
	struct index_node *n = ix->root;
	unsigned shift = 0;

	if (!n) {
		while (idx >> shift >= INDEX_SLOTS)
			shift += INDEX_SHIFT;
		n = node_new(ix, shift);
		if (n)
			node_hook(ix, n, NULL, 0);
		return n;
	}
	while (idx >> ix->root->shift >= INDEX_SLOTS)
		if (root_raise(ix))
			return NULL;
	return ix->root;
}

/* The leaf for idx, made if need be; NULL: no memory, see leaf_unmake(). */
static struct index_node *leaf_make(struct index *ix, uint64_t idx)
{
	struct index_node *n = ix->root, *child;

	if (unlikely(!n || idx >> n->shift >= INDEX_SLOTS))
		n = root_make(ix, idx);
	while (n && n->shift) {
		child = n->slots[slot_of(n, idx)];
		if (unlikely(!child)) {
			child = node_new(ix, n->shift - INDEX_SHIFT);
			if (child)
				node_hook(ix, child, n, slot_of(n, idx));
		}
		n = child;
	}
	return n;
}

/* Takes out what leaf_make() made for leaves that stayed empty. */
static void leaf_unmake(struct index *ix, uint64_t idx, uint64_t end)
{
	for (; idx < end; idx += INDEX_SLOTS)
		node_prune(ix, node_lowest(ix, idx));
	root_lower(ix);
}

static bool any_present(const struct index *ix, uint64_t idx, uint64_t end)
{
	for (; idx < end; idx += INDEX_SLOTS)
		if (leaf_find(ix, idx))
			return true;
	return false;
}

int index_insert(struct index *ix, uint64_t idx, unsigned order,
		 struct folio *f)
{
	struct index_node *leaves[LEAVES_MAX] = { NULL };
	unsigned nr = 1u << min_of(order, (unsigned)INDEX_SHIFT);
	unsigned slot = idx & (INDEX_SLOTS - 1), i, l = 0;
	uint64_t at, end = idx + (1ull << order);

	assert(f);
	assert(order <= FOLIO_ORDER_MAX);
	assert((idx & ((1ull << order) - 1)) == 0);
	assert(end - 1 <= INDEX_MAX);
	/* Several leaves: it has them whole, and a leaf is never empty. */
	if (order > INDEX_SHIFT && any_present(ix, idx, end))
		return -EEXIST;
	for (at = idx; at < end; at += nr) {
		leaves[l] = leaf_make(ix, at);
		if (unlikely(!leaves[l])) {
			leaf_unmake(ix, idx, end);
			return -ENOMEM;
		}
		l++;
	}
	if (leaves[0]->present & slot_mask(slot, nr))
		return -EEXIST;

	while (l-- > 0) {
		for (i = slot; i < slot + nr; i++)
			rcu_assign_pointer(leaves[l]->slots[i], (void *)f);
		set_bits(&leaves[l]->present, slot_mask(slot, nr));
	}
	ix->nr_pages += end - idx;
	return 0;
}

static void tag_set(struct index_node *n, unsigned slot, enum index_tag t)
{
	uint64_t was;

	do {
		was = n->tags[t];
		set_bits(&n->tags[t], 1ull << slot);
		slot = n->offset;
		n = n->parent;
	} while (n && !was);
}

static void tag_clear(struct index_node *n, unsigned slot, enum index_tag t)
{
	if (!(n->tags[t] & 1ull << slot))
		return;
	for (;;) {
		clear_bits(&n->tags[t], 1ull << slot);
		if (n->tags[t] || !n->parent)
			return;
		slot = n->offset;
		n = n->parent;
	}
}

void index_remove(struct index *ix, uint64_t idx, unsigned order)
{
	unsigned nr = 1u << min_of(order, (unsigned)INDEX_SHIFT);
	unsigned slot = idx & (INDEX_SLOTS - 1), i, t;
	uint64_t at, end = idx + (1ull << order);
	uint64_t mask = slot_mask(slot, nr);
	struct index_node *n;

	assert((idx & ((1ull << order) - 1)) == 0);
	for (at = idx; at < end; at += nr) {
		n = leaf_find(ix, at);
		assert(n);
		assert((n->present & mask) == mask);
		for (t = 0; t < INDEX_TAGS; t++)
			tag_clear(n, slot, t);
		clear_bits(&n->present, mask);
		for (i = slot; i < slot + nr; i++)
			rcu_assign_pointer(n->slots[i], (void *)NULL);
		node_prune(ix, n);
	}
	root_lower(ix);
	ix->nr_pages -= end - idx;
}

void index_replace(struct index *ix, uint64_t idx, struct folio *f)
{
	struct index_node *n = leaf_find(ix, idx);

	assert(f);
	assert(n);
	assert(n->slots[slot_of(n, idx)]);
	rcu_assign_pointer(n->slots[slot_of(n, idx)], (void *)f);
}

void index_tag(struct index *ix, uint64_t idx, enum index_tag t)
{
	struct index_node *n = leaf_find(ix, idx);

	assert(n);
	assert(n->slots[slot_of(n, idx)]);
	tag_set(n, slot_of(n, idx), t);
}

void index_untag(struct index *ix, uint64_t idx, enum index_tag t)
{
	struct index_node *n = leaf_find(ix, idx);

	assert(n);
	tag_clear(n, slot_of(n, idx), t);
}

bool index_has_tag(const struct index *ix, uint64_t idx, enum index_tag t)
{
	const struct index_node *n = leaf_find(ix, idx);

	return n && n->tags[t] >> slot_of(n, idx) & 1;
}

bool index_any(const struct index *ix, enum index_tag t)
{
	const struct index_node *n = rcu_dereference(ix->root);

	return n && __atomic_load_n(&n->tags[t], __ATOMIC_RELAXED);
}

bool index_is_empty(const struct index *ix)
{
	return !rcu_dereference(ix->root);
}

static uint64_t load_bits(const struct index_node *n, unsigned which)
{
	return __atomic_load_n(which == ANY ? &n->present : &n->tags[which],
			       __ATOMIC_ACQUIRE);
}

/*
 * The first slot in [*idx, last] with a tag, or in use. A node without one at
 * or after idx sends the walk back to the root, past that node: at most once a
 * level, for the bits above say where the next is.
 */
static struct folio *walk(const struct index *ix, uint64_t *idx, uint64_t last,
			  unsigned which)
{
	struct index_node *n = rcu_dereference(ix->root);
	uint64_t at = *idx, bits;
	void *p;

	while (n && at <= last && at >> n->shift < INDEX_SLOTS) {
		for (;;) {
			bits = load_bits(n, which) >> slot_of(n, at);
			if (!bits) {
				at = (at >> n->shift | (INDEX_SLOTS - 1)) + 1;
				at <<= n->shift;
				break;
			}
			if (!(bits & 1))
				at = ((at >> n->shift) + __builtin_ctzll(bits))
				     << n->shift;
			if (at > last)
				return NULL;
			p = rcu_dereference(n->slots[slot_of(n, at)]);
			if (!p) { /* removed just now */
				at = ((at >> n->shift) + 1) << n->shift;
				break;
			}
			if (!n->shift) {
				*idx = at;
				return p;
			}
			n = p;
		}
		n = rcu_dereference(ix->root);
	}
	return NULL;
}

struct folio *index_next(const struct index *ix, uint64_t *idx, uint64_t last)
{
	return walk(ix, idx, last, ANY);
}

/* The tagged folio that begins before idx and covers it. */
static struct folio *covering(const struct index *ix, uint64_t idx,
			      enum index_tag t)
{
	struct folio *f = index_load(ix, idx);
	uint64_t first;

	if (!f || !f->order)
		return NULL;
	first = align_down(idx, folio_nr_pages(f));
	return first < idx && index_has_tag(ix, first, t) ? f : NULL;
}

struct folio *index_next_tag(const struct index *ix, uint64_t *idx,
			     uint64_t last, enum index_tag t)
{
	struct folio *f;

	if (*idx > last || !index_any(ix, t))
		return NULL;
	f = covering(ix, *idx, t);
	return f ? f : walk(ix, idx, last, t);
}

unsigned index_next_tags(const struct index *ix, uint64_t *idx, uint64_t last,
			 enum index_tag t, struct folio **out, unsigned max)
{
	struct folio *f;
	unsigned nr = 0;

	if (!max)
		return 0;
	f = index_next_tag(ix, idx, last, t);
	while (f) {
		out[nr++] = f;
		*idx = align_down(*idx, folio_nr_pages(f)) + folio_nr_pages(f);
		if (nr == max)
			return nr;
		f = walk(ix, idx, last, t);
	}
	*idx = last == UINT64_MAX ? last : max_of(*idx, last + 1);
	return nr;
}

static void check_folio(const struct index *ix, const struct index_node *n,
			unsigned slot, uint64_t idx)
{
	struct folio *f = n->slots[slot];
	uint64_t i, nr = folio_nr_pages(f), first = align_down(idx, nr);
	unsigned t;

	assert(f->idx == first);
	if (idx == first) {
		for (i = 0; i < nr; i++)
			assert(index_load(ix, idx + i) == f);
		return;
	}
	assert(index_load(ix, first) == f);
	for (t = 0; t < INDEX_TAGS; t++)
		assert(!(n->tags[t] >> slot & 1));
}

/* Adds up nodes and pages of n, whose first page number is idx. */
static void check_node(const struct index *ix, const struct index_node *n,
		       uint64_t idx, uint64_t *nodes, uint64_t *pages)
{
	const struct index_node *child;
	unsigned i, t;

	assert(n->present);
	++*nodes;
	for (t = 0; t < INDEX_TAGS; t++)
		assert((n->tags[t] & ~n->present) == 0);
	for (i = 0; i < INDEX_SLOTS; i++, idx += 1ull << n->shift) {
		assert(!n->slots[i] == !(n->present >> i & 1));
		if (!n->slots[i])
			continue;
		if (!n->shift) {
			check_folio(ix, n, i, idx);
			++*pages;
			continue;
		}
		child = n->slots[i];
		assert(child->parent == n);
		assert(child->offset == i);
		assert(child->shift + INDEX_SHIFT == n->shift);
		for (t = 0; t < INDEX_TAGS; t++)
			assert(!child->tags[t] == !(n->tags[t] >> i & 1));
		check_node(ix, child, idx, nodes, pages);
	}
}

int index_check(const struct index *ix)
{
	uint64_t nodes = 0, pages = 0;

	if (ix->root) {
		assert(!ix->root->parent);
		assert(!ix->root->shift || ix->root->present != 1);
		check_node(ix, ix->root, 0, &nodes, &pages);
	}
	assert(nodes == ix->nr_nodes);
	assert(pages == ix->nr_pages);
	return 0;
}

static void print_folio(const struct index *ix, uint64_t idx,
			const struct folio *f)
{
	fprintf(stderr, "  %" PRIu64 " order %u state %#x refs %d%s%s%s%s\n",
		idx, f->order, f->state, f->refs,
		index_has_tag(ix, idx, TAG_DIRTY) ? " dirty" : "",
		index_has_tag(ix, idx, TAG_EDGE) ? " edge" : "",
		index_has_tag(ix, idx, TAG_WRITEBACK) ? " writeback" : "",
		index_has_tag(ix, idx, TAG_TOWRITE) ? " towrite" : "");
}

void index_print(const struct index *ix)
{
	uint64_t idx = 0;
	struct folio *f;

	fprintf(stderr, "index: %" PRIu64 " pages, %" PRIu64 " nodes\n",
		ix->nr_pages, ix->nr_nodes);
	while ((f = index_next(ix, &idx, UINT64_MAX))) {
		print_folio(ix, idx, f);
		idx = align_down(idx, folio_nr_pages(f)) + folio_nr_pages(f);
	}
}

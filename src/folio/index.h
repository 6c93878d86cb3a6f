/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * The index of a mapping: page number in the file -> folio, with tags.
 *
 * A radix tree with 64 slots a node. A folio of order n fills 2^n slots of the
 * lowest level; its tags sit at the first of them. A node has one bit a slot
 * and tag, set where anything below has the tag, so a walk for a tag visits
 * only nodes on the way to one.
 *
 * Who may call what: functions that change the index, and those that read
 * tags at an index, need the mapping's index lock (I). index_load(),
 * index_next(), index_any() and index_is_empty() need either it or an RCU
 * read section; under RCU alone they see each slot as it was at some time
 * during the call, and the folio may be freed or reused: the caller takes a
 * reference and looks again.
 *
 * A folio's order and idx must be those it was inserted with, except within
 * the index lock section that splits it.
 *
 * Nodes come from a slab and go back to it through call_rcu(): rcu_barrier()
 * must come between emptying the last index and slab_fini().
 */
#ifndef TR_FOLIO_INDEX_H
#define TR_FOLIO_INDEX_H

#include "base/compiler.h"
#include "base/rcu.h"
#include "folio/folio.h"

#include <stdbool.h>

#define INDEX_SHIFT 6
#define INDEX_SLOTS (1u << INDEX_SHIFT)

/* The largest page number. */
#define INDEX_MAX ((uint64_t)INT64_MAX >> PAGE_SHIFT)

struct slab;

enum index_tag {
	TAG_DIRTY, /* counted dirty */
	TAG_EDGE, /* dirty with an incomplete shared unit */
	TAG_WRITEBACK, /* device write in flight */
	TAG_TOWRITE, /* chosen by the writeback pass that runs */
	INDEX_TAGS
};

struct index_node {
	union {
		struct {
			struct index_node *parent; /* (I) NULL: root */
			uint8_t offset; /* (I) slot in parent */
		};
		struct rcu_head rcu; /* once removed */
	};
	uint64_t present; /* (I) slots in use; read under RCU */
	uint64_t tags[INDEX_TAGS]; /* (I) read under RCU */
	uint8_t shift; /* (C) of the page number; 0: slots are folios */
	void *slots[INDEX_SLOTS]; /* (I) read under RCU */
};

/* For slab_init(). */
#define INDEX_NODE_SIZE sizeof(struct index_node)

struct index {
	struct index_node *root; /* (I) read under RCU; NULL: empty */
	struct slab *slab; /* (C) */
	uint64_t nr_pages; /* (I) */
	uint64_t nr_nodes; /* (I) */
};

void index_init(struct index *ix, struct slab *node_slab);

/* The folio covering idx or NULL. */
static inline struct folio *index_load(const struct index *ix, uint64_t idx)
{
	struct index_node *n = rcu_dereference(ix->root);
	unsigned shift;
	void *p;

	if (!n)
		return NULL;
	shift = n->shift;
	if (idx >> shift >= INDEX_SLOTS)
		return NULL;
	for (;;) {
		p = rcu_dereference(n->slots[idx >> shift & (INDEX_SLOTS - 1)]);
		if (!shift || !p)
			return p;
		n = p;
		shift -= INDEX_SHIFT;
	}
}

/*
 * Inserts f, untagged, at idx, a multiple of 2^order. Returns 0, -EEXIST if
 * any of its slots is in use, or -ENOMEM; the index is then as before. Does
 * not sleep.
 */
int index_insert(struct index *ix, uint64_t idx, unsigned order,
		 struct folio *f) MUST_CHECK REQUIRES(I);

/* Removes the folio there and its tags. Its slots must be in use. */
void index_remove(struct index *ix, uint64_t idx, unsigned order) REQUIRES(I);

/* Puts f in the one slot idx, which must be in use; tags stay. For split. */
void index_replace(struct index *ix, uint64_t idx, struct folio *f) REQUIRES(I);

/* idx is the first page of a folio that is in the index. */
void index_tag(struct index *ix, uint64_t idx, enum index_tag t) REQUIRES(I);
void index_untag(struct index *ix, uint64_t idx, enum index_tag t) REQUIRES(I);
/* false too if nothing is at idx. */
bool index_has_tag(const struct index *ix, uint64_t idx, enum index_tag t)
	REQUIRES(I);

/* Whether any folio has the tag. */
bool index_any(const struct index *ix, enum index_tag t);

/*
 * The first folio that covers *idx or begins in (*idx, last]; NULL if none.
 * *idx becomes the first slot of it at or after *idx. To go on, set *idx to
 * f->idx + folio_nr_pages(f).
 */
struct folio *index_next(const struct index *ix, uint64_t *idx, uint64_t last);

/* The same for folios with the tag; *idx becomes its first slot >= *idx. */
struct folio *index_next_tag(const struct index *ix, uint64_t *idx,
			     uint64_t last, enum index_tag t) REQUIRES(I);

/*
 * Up to max folios with the tag, in order, the first of which may begin before
 * *idx. Returns how many; *idx becomes where to go on (past last: no more).
 */
unsigned index_next_tags(const struct index *ix, uint64_t *idx, uint64_t last,
			 enum index_tag t, struct folio **out, unsigned max)
	REQUIRES(I);

bool index_is_empty(const struct index *ix);

/* Aborts if a node, bit, tag or count is wrong; returns 0. */
int index_check(const struct index *ix) REQUIRES(I);

/* One line a node and folio, for people. */
void index_print(const struct index *ix) REQUIRES(I);

#endif

/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * Edges: units that neighbouring uncached writes share, and how much of each
 * has been written.
 *
 * An edge's coverage is the set of byte ranges of its unit that uncached
 * writes have written since it was created. While it is incomplete the folio
 * has FOLIO_EDGE, is on the cache's list by age, and, if dirty, is tagged EDGE,
 * which passes leave alone. Bytes not covered are not valid until a fill reads
 * them (FOLIO_UPTODATE). The write whose bytes complete it marks it drop-behind
 * there and then, or, if it defers, sets FOLIO_COMPLETE and the mark follows
 * when its writer calls edge_complete().
 *
 *   none --edge_attach--> EDGE --edge_cover (last byte)--> marked, none
 *                          |                  \-(deferred)-> COMPLETE
 *                          |                   edge_complete --> marked, none
 *                          +--edge_retire (age, number, close, pressure)-->
 *                                                               marked, none
 *                          +--edge_detach (cached caller) --> ordinary page
 *
 * All moves are made under the folio lock, so exactly one of two simultaneous
 * writers completes an edge.
 */
#ifndef TR_FOLIO_EDGE_H
#define TR_FOLIO_EDGE_H

#include "folio/mapping.h"

int edge_init(struct tr_cache *c) MUST_CHECK;
void edge_fini(struct tr_cache *c);

/*
 * Makes a locked folio of the smallest size an edge with nothing covered.
 * false: no memory; it stays what it was.
 */
bool edge_attach(struct mapping *m, struct folio *f) MUST_CHECK;

/* Makes sure that one more range can be recorded. false: no memory; then fill
 * the unit and retire the edge. */
bool edge_reserve(struct mapping *m, struct folio *f) MUST_CHECK;

/*
 * Records that bytes [from, to) of the unit were written; after edge_reserve().
 * Returns whether every byte now is. On completion the folio is made
 * FOLIO_UPTODATE and eligible for passes, and marked, or with defer set
 * FOLIO_COMPLETE.
 */
bool edge_cover(struct mapping *m, struct folio *f, size_t from, size_t to,
		bool defer);

/* The mark that edge_cover() deferred. Nothing, if the folio has no complete
 * edge. */
void edge_complete(struct mapping *m, struct folio *f);

/* Ends the edge as if it had been completed: it must be FOLIO_UPTODATE. */
void edge_retire(struct mapping *m, struct folio *f);

/* Ends the edge without a mark: an ordinary page from now on, which must be
 * FOLIO_UPTODATE or on its way out of the cache. Nothing if it is none. */
void edge_detach(struct mapping *m, struct folio *f);

/* Whether bytes [from, to) are all covered. */
bool edge_has(const struct folio *f, size_t from, size_t to);

/* The next bytes in [*from, *to) that are not covered. */
bool edge_next_gap(const struct folio *f, size_t *from, size_t *to);

/* The next bytes in [*from, *to) that are covered. */
bool edge_next_covered(const struct folio *f, size_t *from, size_t *to);

/* A reference on the folio and one on its mapping. */
struct edge_ref {
	struct mapping *m;
	struct folio *f;
};

/* Up to max of a device's oldest incomplete edges that became edges at or
 * before since_ns. */
unsigned edge_oldest(struct tr_cache *c, const struct bdi *bdi,
		     uint64_t since_ns, struct edge_ref *out, unsigned max);

/* Up to max incomplete edges of a mapping. */
unsigned edge_of_mapping(struct mapping *m, struct edge_ref *out, unsigned max);

/* When the oldest incomplete edge became one (clock_ns()); UINT64_MAX: none. */
uint64_t edge_oldest_ns(struct tr_cache *c);

#endif

/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * Finding and making folios.
 */
#ifndef TR_CACHE_LOOKUP_H
#define TR_CACHE_LOOKUP_H

#include "folio/state.h"

enum get_flags {
	GET_LOCK = 1 << 0, /* return it locked */
	GET_CREAT = 1 << 1, /* make it if absent; needs GET_LOCK */
	GET_NOWAIT = 1 << 2, /* never sleep: -EAGAIN */
	GET_DONTCACHE = 1 << 3, /* uncached: a made folio is drop-behind */
	GET_EDGE = 1 << 4, /* with it: the caller covers the unit partly */
	/* One of the cache's own: never clears a mark. */
	GET_INTERNAL = 1 << 5,
};

/*
 * The folio of page idx, with a reference. hint: bytes from idx on that the
 * caller is going to cover wholly; a made folio is as large as fits in that,
 * and at least of the mapping's smallest size.
 *
 * -ENOENT: absent and not GET_CREAT; -EAGAIN: GET_NOWAIT and it would sleep;
 * -ENOMEM. A lookup that is neither GET_DONTCACHE nor GET_INTERNAL clears the
 * drop-behind mark of what it finds.
 */
int cache_get_folio(struct mapping *m, uint64_t idx, unsigned flags,
		    size_t hint, struct folio **out) MUST_CHECK;

/* The folio of page idx if it is cached, referenced: no lock, no mark. */
struct folio *cache_find(struct mapping *m, uint64_t idx);

/* Bits of which a hit has exactly FOLIO_UPTODATE. A mark is no obstacle to an
 * uncached reader, nor is an edge that is valid. */
#define HIT_CACHED                                                             \
	(FOLIO_UPTODATE | FOLIO_DROPBEHIND | FOLIO_EDGE | FOLIO_COMPLETE)
#define HIT_UNCACHED FOLIO_UPTODATE

#endif

/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * Memory of the cache for bytes that somebody is going to receive and then
 * write: private folios, of no file and seen by nobody, which become folios of
 * the file when they are written. Nothing is copied then.
 *
 * What is adopted is the cache's: others may change it from then on, so a write
 * that took some of a gift goes on behind that part and never begins anew.
 * One thread at a time has a gift.
 */
#ifndef TR_CACHE_GIFT_H
#define TR_CACHE_GIFT_H

#include "cache/file.h"

#include <sys/uio.h>

/* Folios of one gift: as many vectors as one receive takes. 1 MiB at any page
 * is 17, unless memory is in pieces: then it is not worth it. */
#define GIFT_MAX 64

struct gift {
	struct tr_cache *cache;
	unsigned nr, next; /* of folios; the first that may still be there */
	bool used; /* some of it is a file's */
	struct folio *folios[GIFT_MAX];
};

/*
 * Memory for [off, off + len), whole pages, as vectors in iov, which has room
 * for GIFT_MAX. -ENOMEM: there is none for this now. Never sleeps.
 */
int gift_start(struct tr_cache *c, int64_t off, size_t len, struct gift *g,
	       struct iovec *iov, int *nr_iov) MUST_CHECK;

/* Gives back what was not adopted. */
void gift_end(struct gift *g);

/*
 * As tr_writev() with vectors of which some are the gift's, all of it received.
 * Whole units of which nothing is cached are adopted, others copied. g may be
 * NULL.
 */
ssize_t gift_writev(struct tr_file *f, struct gift *g, const struct iovec *iov,
		    int nr, int64_t off, unsigned flags) MUST_CHECK;

/* ---- for cache/write.c ---- */

/* The folio whose memory begins at p; NULL: it is none of the gift's. */
struct folio *gift_at(struct gift *g, const void *p);
/* It is a file's now. */
void gift_adopted(struct gift *g);

#endif

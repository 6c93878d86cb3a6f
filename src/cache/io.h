/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * Reading and writing a mapping: what the public calls and front ends stand on.
 * Flags are enum tr_flags and the internal ones below; arguments were checked
 * (cache/api.c).
 */
#ifndef TR_CACHE_IO_H
#define TR_CACHE_IO_H

#include "folio/mapping.h"

/* With TR_DONTCACHE: the caller syncs and completes its edges itself: nothing
 * is marked by its edges and nothing kicks. */
#define IO_DEFER (1u << 16)

/* The caller holds the gate. */
#define IO_INSIDE (1u << 17)

/* A position in a vector of memory. */
struct iter {
	const struct iovec *iov;
	int nr;
	size_t skip; /* bytes of iov[0] that are done */
	struct gift *gift; /* of which some of iov is memory, or NULL */
};

/* What an opening remembers of its reads. */
struct readahead {
	_Atomic int64_t next; /* where the next sequential read would start */
	_Atomic int64_t end; /* where what was read ahead ends */
	_Atomic uint32_t window; /* bytes, grows while reads are sequential */
};

/* Copies between memory and an iterator, which moves on. */
void iter_copy_from(struct iter *it, void *to, size_t len);
void iter_copy_to(struct iter *it, const void *from, size_t len);
void iter_zero(struct iter *it, size_t len);
void iter_skip(struct iter *it, size_t len);
/* Where the next byte is; there must be one. */
const void *iter_at(struct iter *it);
size_t iov_total(const struct iovec *iov, int nr);

/* Cached or uncached write: moves it on by what was written. Bytes or -errno.
 * Throttles; enters the gate itself, unless IO_INSIDE. */
ssize_t cache_write(struct mapping *m, struct iter *it, int64_t off, size_t len,
		    unsigned flags);
/* The same for a caller that is inside the gate already, without throttling. */
ssize_t cache_write_inside(struct mapping *m, struct iter *it, int64_t off,
			   size_t len, unsigned flags);
/* Direct write; *fell_back: the cache served it. */
ssize_t cache_write_direct(struct mapping *m, struct iter *it, int64_t off,
			   size_t len, unsigned flags, bool *fell_back);

ssize_t cache_read(struct mapping *m, struct readahead *ra, struct iter *it,
		   int64_t off, size_t len, unsigned flags);
ssize_t cache_read_direct(struct mapping *m, struct iter *it, int64_t off,
			  size_t len, unsigned flags);

/* Marks the complete edge of the unit at off, if there is one, and drops it if
 * it is clean. */
void cache_edge_complete(struct mapping *m, int64_t off);

/* Ends what uncached, deferred writes of [off, off + len) began: completes the
 * edges at both ends. Who did not sync kicks afterwards. */
void cache_write_end(struct mapping *m, int64_t off, size_t len);

/* Has uncached dirty data written back, if there is any. */
void cache_kick(struct mapping *m);

/* Makes a locked folio an ordinary page: fills it if it is an incomplete edge,
 * and ends its edge. It must be looked at again. */
int cache_make_ordinary(struct mapping *m, struct folio *f, bool nowait);

/* Writes out and waits, then durable. meta: everything, not only data. */
int cache_sync_range(struct mapping *m, int64_t off, int64_t len, bool meta);

/* ---- size and space: truncate.c ---- */

int cache_truncate(struct mapping *m, int64_t size);
/* Forgets what is cached, dirty or not; the store keeps what it has. */
void cache_cancel(struct mapping *m);
int cache_punch(struct mapping *m, int64_t off, int64_t len);
int cache_allocate(struct mapping *m, int64_t off, int64_t len, bool keep_size);
int64_t cache_seek(struct mapping *m, int64_t off, int whence);

/* Reads [off, off + len) and, as ra says, beyond, into folios that are not
 * there yet. uncached: what it brings in is drop-behind. */
int cache_readahead(struct mapping *m, struct readahead *ra, int64_t off,
		    size_t len, bool uncached);

#endif

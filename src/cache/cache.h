/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * A cache as a whole, for the files of this folder and front ends.
 */
#ifndef TR_CACHE_CACHE_H
#define TR_CACHE_CACHE_H

#include "cache/io.h"

/* One opening of a file. Closed ones are kept for reuse on cache.files, so that
 * a late use of one is told -EBADF. */
struct tr_file {
	struct tr_cache *cache; /* (C) */
	atomic_uint open; /* (A) FILE_OPEN */
	int flags; /* (C) O_ACCMODE */
	struct mapping *m; /* (C) */
	atomic_uint err_seen; /* (A) see err_check() */
	struct readahead ra;
	struct cds_list_head node; /* cache.lock */
};

#define FILE_OPEN 0x7472u

/* The bdi of a store: made, with its flusher, at first use. */
int cache_bdi(struct tr_cache *c, struct tr_store *store,
	      struct bdi **out) MUST_CHECK;

#endif

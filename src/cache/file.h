/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * Openings, for front ends that open a store's file in their own way.
 */
#ifndef TR_CACHE_FILE_H
#define TR_CACHE_FILE_H

#include "folio/mapping.h"

/* Closed openings kept before one is used again. */
#define FILES_KEPT 64

/*
 * Makes an opening of a store's file that the caller has opened, and takes it
 * over, also on failure. flags: O_RDONLY, O_WRONLY or O_RDWR.
 */
int cache_file_open(struct tr_cache *c, struct tr_store *store,
		    struct tr_store_file *sf, int flags,
		    struct tr_file **out) MUST_CHECK;

/*
 * Drops the file's clean pages and lets the cache forget the file with its last
 * opening, so that the next one asks the store for size and times again. What
 * is dirty stays, and so does the mapping then.
 */
void cache_file_forget(struct tr_file *f);

/* Drops all pages, what is dirty too, without touching the store, and lets the
 * cache forget the file with its last opening: for a file that has no name left
 * and may still be open elsewhere. */
void cache_file_cancel(struct tr_file *f);

struct mapping *cache_file_mapping(struct tr_file *f);

#endif

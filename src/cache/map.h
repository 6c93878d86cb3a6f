/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * Mapped access, beneath tr_map().
 */
#ifndef TR_CACHE_MAP_H
#define TR_CACHE_MAP_H

#include "folio/mapping.h"

struct tr_map;

/* -ENXIO, -ENOMEM, -EIO. */
int cache_map(struct mapping *m, int64_t off, struct tr_map **out) MUST_CHECK;
void *cache_map_addr(struct tr_map *map, int64_t off, size_t *len);

#endif

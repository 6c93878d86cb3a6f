/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * Mapped access: a folio pinned in the cache, loaded from and stored to through
 * a pointer, dirtied without its lock.
 */
#include "cache/map.h"

#include "base/mem.h"
#include "cache/io.h"
#include "cache/lookup.h"
#include "writeback/fill.h"

#include <errno.h>

struct tr_map {
	struct mapping *m;
	struct folio *f;
};

/* Makes a locked folio an ordinary, valid page. 1: it is another's now. */
static int make_valid(struct mapping *m, struct folio *f)
{
	int err = cache_make_ordinary(m, f, false);

	if (err || f->mapping != m)
		return err ?: 1;
	folio_clear_dropbehind(f);
	return fill_missing(m, f, 0, folio_len(f), false);
}

int cache_map(struct mapping *m, int64_t off, struct tr_map **out)
{
	struct tr_map *map;
	struct folio *f;
	int err = 1;

	if (off >= mapping_size(m))
		return -ENXIO;
	map = mem_alloc(sizeof(*map));
	if (!map)
		return -ENOMEM;
	while (err == 1) {
		err = cache_get_folio(m, off >> PAGE_SHIFT,
				      GET_LOCK | GET_CREAT, 0, &f);
		if (err)
			break;
		err = make_valid(m, f);
		if (!err)
			atomic_fetch_add(&f->maps, 1);
		folio_unlock(f);
		if (err)
			folio_put(f, m->cache);
	}
	if (err) {
		mem_free(map);
		return err;
	}
	mapping_get(m);
	map->m = m;
	map->f = f;
	*out = map;
	return 0;
}

void *cache_map_addr(struct tr_map *map, int64_t off, size_t *len)
{
	size_t at = off - (map->f->idx << PAGE_SHIFT);
	int64_t left = max_of(mapping_size(map->m) - off, 0l);

	*len = min_of(folio_len(map->f) - at, (uint64_t)left);
	return (char *)folio_data(map->f) + at;
}

void tr_map_dirty(struct tr_map *map)
{
	if (map)
		folio_mark_dirty(map->f, FOLIO_ALLDIRTY);
}

void tr_unmap(struct tr_map *map)
{
	if (!map)
		return;
	explore_point(&map->f->maps);
	atomic_fetch_sub(&map->f->maps, 1);
	folio_put(map->f, map->m->cache);
	mapping_put(map->m);
	mem_free(map);
}

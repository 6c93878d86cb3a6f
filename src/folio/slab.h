/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * Objects of one size from pages of an arena, so that they count against its
 * hard size: index nodes, per-block state, edges.
 *
 * Any task may call; a slab has one mutex (LOCK_SLAB) and never sleeps for
 * memory. Pages whose objects are all free go back to the arena, but for one.
 */
#ifndef TR_FOLIO_SLAB_H
#define TR_FOLIO_SLAB_H

#include "base/compiler.h"
#include "base/lock.h"
#include "folio/folio.h"

#define SLAB_SIZE_MIN 16u

struct arena;

struct slab {
	struct mutex lock;
	struct arena *arena; /* (C) */
	const char *name; /* (C) */
	unsigned size; /* (C) bytes from one object to the next */
	unsigned per_page; /* (C) */
	struct cds_list_head partial GUARDED(lock); /* some objects free */
	struct cds_list_head full GUARDED(lock); /* none free */
	struct folio *empty GUARDED(lock); /* all free, kept; may be NULL */
	uint64_t nr_pages GUARDED(lock);
	uint64_t nr_objs GUARDED(lock); /* in use */
};

/*
 * Objects of size bytes (16 to 4096), aligned to 8 and, if size is a multiple
 * of 64, to 64. name is kept, not copied. Returns 0 or -EINVAL.
 */
int slab_init(struct slab *s, struct arena *a, size_t size,
	      const char *name) MUST_CHECK;

/* All objects must have been freed. Gives the last page back. */
void slab_fini(struct slab *s);

/*
 * A zeroed object, or NULL if there is no memory now. Uses the arena's
 * reserve.
 */
void *slab_alloc(struct slab *s);
void slab_free(struct slab *s, void *obj);

/* The slab that obj is from. */
struct slab *slab_of(const void *obj);

uint64_t slab_nr_pages(const struct slab *s);
/* Objects in use. */
uint64_t slab_nr_objs(const struct slab *s);

/* Aborts if a list or count is wrong; returns 0. */
int slab_check(struct slab *s);

#endif

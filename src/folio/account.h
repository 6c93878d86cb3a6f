/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * The two primitive moves of the accounting, for those few that do more in the
 * same section of the index lock: splitting, moving to another domain.
 */
#ifndef TR_FOLIO_ACCOUNT_H
#define TR_FOLIO_ACCOUNT_H

#include "folio/mapping.h"

/* Tags and counts a folio that has FOLIO_DIRTY and is not counted. */
void account_dirty(struct mapping *m, struct folio *f) REQUIRES(m->index_lock);
/* The inverse; nothing if it is not counted. */
void account_clean(struct mapping *m, struct folio *f) REQUIRES(m->index_lock);

#endif

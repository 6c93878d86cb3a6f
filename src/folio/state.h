/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * The state of a folio and the accounting of what is dirty.
 *
 * The one rule that keeps the counters exact:
 *
 *   The DIRTY or EDGE tag means counted. FOLIO_DIRTY without a tag means about
 *   to be counted. Whoever marks, unmarks or moves a folio looks at the tag
 *   under the index lock.
 *
 * A folio is made dirty in two steps, with or without the folio lock: the bit
 * is set, then, under the index lock, if the bit is still set and no tag is,
 * the tag is set and the counters raised. Whoever makes it clean holds the
 * folio lock and clears bit, tag and counters in one section of the index
 * lock. So a dirtier that comes late to its second step finds the bit gone
 * (its bytes were in memory before the bit was set, so whoever cleaned it has
 * them) or the tag set.
 *
 * Counted folios have exactly one of the tags: EDGE while they are incomplete
 * edges, which flusher passes leave alone; else DIRTY.
 *
 *   clean --folio_mark_dirty--> dirty --folios_start_writeback-> writeback
 *     ^                          | ^                               |
 *     +----folio_cancel_dirty----+ +--folio_mark_dirty (both)      |
 *     ^------------------------folios_end_writeback----------------+
 */
#ifndef TR_FOLIO_STATE_H
#define TR_FOLIO_STATE_H

#include "base/atomic.h"
#include "folio/folio.h"
#include "folio/mapping.h"

static inline unsigned folio_test(const struct folio *f, unsigned bits)
{
	return state_load(&f->state) & bits;
}

/* ---- references ---- */

/* False if the folio has none: it is being freed. */
bool folio_try_get(struct folio *f) MUST_CHECK;
/* One more for somebody who has one. */
static inline void folio_get(struct folio *f)
{
	count_add(&f->refs, 1);
}

/* Frees the folio with the last reference. */
void folio_put(struct folio *f, struct tr_cache *c);

/* ---- the folio lock ---- */

void folio_lock(struct folio *f);
bool folio_try_lock(struct folio *f);
void folio_unlock(struct folio *f);

/* Locks the folio with neither writeback nor a fill in flight. Never wait for a
 * fill with the lock held: its end takes it. */
void folio_lock_idle(struct folio *f);

/* Sleeps until none of the bits (FOLIO_WRITEBACK, FOLIO_FILLING) is set. */
void folio_wait(struct folio *f, unsigned bits);
/* Clears bits and wakes those who wait for them. */
void folio_clear_wake(struct folio *f, unsigned bits);

/* Whether f, locked or not, is the folio of idx in m. */
static inline bool folio_is(const struct folio *f, const struct mapping *m,
			    uint64_t idx)
{
	return f->mapping == m && idx - f->idx < folio_nr_pages(f);
}

/* ---- accounting ---- */

/* Both steps of making a folio dirty; also: further bits to set in the first
 * (FOLIO_ALLDIRTY). Needs the folio lock or a map. */
void folio_mark_dirty(struct folio *f, unsigned also);

/* The same for a folio under writeback whose bytes did not all get to the
 * device, for no fault of theirs: whoever waits for them writes it again. */
void folio_mark_again(struct folio *f);

/*
 * Makes locked folios of one mapping clean and starts their writeback, in one
 * section. Stops at the first that is not dirty, under writeback, or gone from
 * the mapping; returns how many it started.
 */
unsigned folios_start_writeback(struct mapping *m, struct folio **f,
				unsigned nr) MUST_CHECK;

/* Ends the writeback of nr folios of one mapping; written says whether their
 * bytes are on the device. */
void folios_end_writeback(struct mapping *m, struct folio **f, unsigned nr,
			  bool written);

/* Makes a locked folio clean without writing it. */
void folio_cancel_dirty(struct folio *f) REQUIRES(f);

/* The mark, exactly counted. Marking a marked one and clearing an unmarked one
 * change nothing. */
void folio_mark_dropbehind(struct folio *f) REQUIRES(f);
void folio_clear_dropbehind(struct folio *f) REQUIRES(f);

/* An incomplete edge became eligible for passes: its EDGE tag, if it has one,
 * becomes a DIRTY tag. */
void folio_edge_to_dirty(struct folio *f) REQUIRES(f);

/*
 * Takes a locked, clean folio that nobody else refers to or maps out of its
 * mapping, whatever its mark. The caller's reference stays, and it has one on
 * the mapping. False: it is dirty, under writeback, filling, mapped or referred
 * to; nothing changed then, but that the mark of a mapped one is cleared if
 * dropping behind was the purpose.
 */
bool folio_try_remove(struct folio *f, bool behind) REQUIRES(f);

/*
 * Takes a locked folio, not under writeback or filling, out of its mapping
 * whatever else its state: what is dirty in it is lost, who maps it keeps the
 * memory until he unmaps it. The caller's references stay.
 */
void folio_remove(struct folio *f) REQUIRES(f);

/* The two halves of that, for several folios in one section; an emptied
 * mapping's reference is the caller's to put. */
bool folio_unlink(struct mapping *m, struct folio *f, bool behind)
	REQUIRES(m->index_lock) REQUIRES(f);
void folio_bury(struct mapping *m, struct folio *f) REQUIRES(f);

/*
 * Splits a locked folio to the mapping's smallest size, so that an edge can be
 * taken out of it or a range emptied exactly: split.c. Every part inherits
 * state, mark and its share of the per-block state. false: it is mapped, in
 * use, under writeback or not wholly valid where that matters. The caller keeps
 * lock and reference of the first part; the others are unlocked.
 */
bool folio_split(struct folio *f) MUST_CHECK REQUIRES(f);

/* ---- dropping behind: drop.c ---- */

/*
 * After writeback: removes those of the folios (referenced, not locked) that
 * are marked and clean, in one section. What could not be locked or is in use
 * is handed to the flusher, never lost.
 */
void folios_drop_behind(struct mapping *m, struct folio **f, unsigned nr);

/* The flusher's part of that: tries again with what was handed over; returns
 * how many folios are left. */
unsigned long wb_run_drops(struct wb *wb);

/* Moves a mapping to another domain with everything counted. */
void mapping_move_wb(struct mapping *m, struct wb *to);

#endif

/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * Writing out a file: from tagged folios to device writes and back.
 *
 * A writer is a submitter's context: a queue of the device and the requests
 * that are built on it. It belongs to one thread at a time; completions run
 * in that thread when it waits. Flushers own one for life, syncs borrow one.
 *
 * Folios are taken in index order, made clean and put under writeback, and
 * their dirty blocks are gathered into device writes as long as they follow on
 * each other, up to the parameter io_max. A folio may be in several writes.
 */
#ifndef TR_WRITEBACK_WRITEOUT_H
#define TR_WRITEBACK_WRITEOUT_H

#include "folio/mapping.h"

struct writer;

/* Writebacks, or fills, in a row that may fail before the data is given up. */
#define EIO_RETRIES 3

/* depth: device writes in flight at most. */
int writer_create(struct bdi *bdi, unsigned depth,
		  struct writer **out) MUST_CHECK;
/* Waits for what is in flight. */
void writer_destroy(struct writer *w);
/* Runs completions, after waiting for min of those in flight. */
void writer_reap(struct writer *w, unsigned min);
void writer_drain(struct writer *w);
unsigned writer_in_flight(const struct writer *w);
void writer_set_depth(struct writer *w, unsigned depth);

/* Folios are looked at in batches of this many pages at least. */
#define WRITEOUT_RUN_MAX (256u << 10)

struct writeout {
	enum index_tag tag; /* TAG_DIRTY, or TAG_TOWRITE for a sync */
	uint64_t first, last; /* pages */
	long nr_pages; /* to write at most; lowered by what was written */
	/* Wait for folio locks and for writeback in flight; else such folios
	 * are left for the next pass. */
	bool wait;
	/* Write a partial last block too. */
	bool tail;
	/* Leave runs of fewer dirty bytes for later: what many writers are
	 * still filling. At most WRITEOUT_RUN_MAX. */
	size_t min_run;
	uint64_t next; /* out: where it stopped */
};

/* Writes what has the tag in the range. Everything is submitted when it
 * returns; completions may be still to come. Errors are on the mapping. */
void writeout(struct writer *w, struct mapping *m, struct writeout *wo);

/*
 * What a sync does with one file: fills and writes all that is dirty in the
 * nr ranges (pages) when it is called, incomplete edges included, and waits
 * until the device has it, what others had in flight there included. The
 * first error of a fill; write errors are on the mapping.
 */
struct page_range {
	uint64_t first, last;
};
int writeout_wait(struct mapping *m, const struct page_range *r, unsigned nr);

/* Waits until no folio of the range is under writeback by others that was so
 * when it was called. */
void writeout_wait_in_flight(struct mapping *m, uint64_t first, uint64_t last);

#endif

/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * Lending cached bytes to who sends them on without copying.
 */
#ifndef TR_CACHE_LOAN_H
#define TR_CACHE_LOAN_H

#include "cache/file.h"

#include <sys/uio.h>

/* Folios of one loan: 1 MiB in single pages, at any offset. */
#define LOAN_MAX 257

/*
 * The folios stay referenced until loan_end(), so the memory stays; writers may
 * change it meanwhile, and what was truncated reads as it was or as zeros.
 */
struct loan {
	struct tr_cache *cache;
	int nr;
	struct folio *folios[LOAN_MAX];
	struct iovec iov[LOAN_MAX];
};

/*
 * Lends [off, off + len), cut at end of file, if all of it is cached and valid
 * now. Bytes lent; -EAGAIN: not all of it is there; -E2BIG: in more than
 * LOAN_MAX folios. Never blocks. Ended by loan_end(), from any thread.
 */
ssize_t loan_start(struct tr_file *f, int64_t off, size_t len,
		   struct loan *loan) MUST_CHECK;
void loan_end(struct loan *loan);

#endif

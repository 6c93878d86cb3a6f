/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * Moving a range between a file's store and memory in the caller's thread:
 * what direct I/O and readahead stand on.
 */
#ifndef TR_CACHE_XFER_H
#define TR_CACHE_XFER_H

#include "cache/io.h"

/*
 * Reads or writes len bytes at off from or to the iterator's memory, in
 * requests of at most 1 MiB, all in flight at once up to a limit. off, len and
 * memory are aligned for the store. Returns the bytes moved without a gap from
 * off on; less than len at end of file, or if something failed and something
 * was moved before it; -errno if nothing was.
 */
ssize_t xfer(struct mapping *m, enum tr_io_op op, struct iter *it, int64_t off,
	     size_t len);

#endif

/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * How a WRITE in a direct mode is cut: a buffered prefix, a middle that goes
 * past the cache, a buffered suffix. Pure functions; the caller owns all
 * memory, any thread may call.
 */
#ifndef TR_FS_SPLIT_H
#define TR_FS_SPLIT_H

#include "base/compiler.h"

#include <stdbool.h>
#include <sys/uio.h>

enum split_disposition {
	SPLIT_DIRECT,
	SPLIT_MEM_MISALIGNED,
	SPLIT_NO_ALIGNMENT,
	SPLIT_TOO_SMALL,
	SPLIT_NO_MIDDLE,
};

#define SPLIT_SEGMENTS_MAX 3

/* What the store asks for, and the server's knob. */
struct split_rules {
	uint32_t offset_align; /* bytes, power of two; 0: no direct I/O */
	uint32_t mem_align; /* bytes, power of two */
	uint32_t unit; /* bytes, power of two: the smallest folio */
	uint32_t num_pages; /* direct_misaligned_num_pages */
};

struct split_segment {
	int64_t off;
	size_t len;
	bool direct;
	const struct iovec *iov;
	int nr_iov;
};

struct split {
	enum split_disposition disposition;
	/* Candidate sizes in bytes, 0 where not computed. */
	size_t prefix, middle, suffix;
	uint32_t mem_offset; /* in-page offset of the payload's first byte */
	/* What is issued, in file order. */
	int nr;
	struct split_segment segments[SPLIT_SEGMENTS_MAX];
};

/* Vectors that split_write() needs in parts for a payload of nr_iov. */
#define SPLIT_IOV(nr_iov) ((nr_iov) + SPLIT_SEGMENTS_MAX - 1)

/*
 * Cuts the write of the payload at off, off >= 0 and off + length <= the
 * largest offset. parts holds SPLIT_IOV(nr_iov) vectors, into which the
 * segments of *out point.
 */
void split_write(const struct split_rules *rules, int64_t off,
		 const struct iovec *iov, int nr_iov, struct iovec *parts,
		 struct split *out);

/* The word that traces print. */
const char *split_disposition_name(enum split_disposition d);

/*
 * Widens a read to aligned boundaries: [*off, *off + *len) becomes the
 * smallest aligned window around it that does not pass the largest offset.
 * align is a power of two. Returns how many bytes lie before the old start.
 */
size_t split_widen_read(uint32_t align, int64_t *off, size_t *len);

#endif

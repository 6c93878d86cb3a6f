/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * Cutting a WRITE for direct I/O.
 *
 * Happy path: the middle is what lies between the first and the last boundary
 * that both the device and the cache's unit respect, so that a buffered edge
 * never shares a unit with the direct part. Each reason not to go direct has a
 * disposition of its own, in the order of the checks in split_write().
 *
 * Sizes are distances from the start of the write, never rounded-up offsets,
 * so that a write ending at the largest offset cannot wrap.
 *
 * Invariants: the segments are consecutive, not empty (but the only one of an
 * empty write), and their lengths add up to the payload's.
 */
#include "fs/split.h"

#include <assert.h>

#define SPLIT_PAGE 4096u

static size_t payload_len(const struct iovec *iov, int nr_iov)
{
	size_t len = 0;
	int i;

	for (i = 0; i < nr_iov; i++)
		len += iov[i].iov_len;
	return len;
}

/*
 * Appends to parts the vectors of the len payload bytes that follow *done
 * bytes of vector *at. Returns how many.
 */
static int cut(const struct iovec *iov, int *at, size_t *done, size_t len,
	       struct iovec *parts)
{
	int nr = 0;
	size_t n;

	while (len) {
		n = min_of(iov[*at].iov_len - *done, len);
		if (n) {
			parts[nr].iov_base = (char *)iov[*at].iov_base + *done;
			parts[nr].iov_len = n;
			nr++;
		}
		*done += n;
		len -= n;
		if (*done == iov[*at].iov_len) {
			(*at)++;
			*done = 0;
		}
	}
	return nr;
}

static bool mem_aligned(const struct split_segment *s, uint32_t align)
{
	uintptr_t bits = 0;
	int i;

	for (i = 0; i < s->nr_iov; i++)
		bits |= (uintptr_t)s->iov[i].iov_base | s->iov[i].iov_len;
	return !(bits & (align - 1));
}

static void one_buffered(struct split *out, int64_t off,
			 const struct iovec *iov, int nr_iov, size_t total,
			 enum split_disposition why)
{
	out->disposition = why;
	out->nr = 1;
	out->segments[0] = (struct split_segment){
		.off = off, .len = total, .iov = iov, .nr_iov = nr_iov
	};
}

/* Fills the candidate sizes; false if there is no middle worth going direct. */
static bool candidates(const struct split_rules *rules, uint64_t off,
		       size_t total, struct split *out)
{
	uint64_t c = max_of(rules->offset_align, rules->unit);
	uint64_t end = off + total;

	out->prefix = 0;
	if (off % rules->offset_align)
		out->prefix = min_of(c - off % c, (uint64_t)total);
	out->suffix = 0;
	if (end % rules->offset_align)
		out->suffix = min_of(end % c, (uint64_t)total - out->prefix);
	out->middle = total - out->prefix - out->suffix;
	if (!out->middle)
		return false;
	return (!out->prefix && !out->suffix) ||
	       out->middle >= (uint64_t)rules->num_pages * SPLIT_PAGE;
}

void split_write(const struct split_rules *rules, int64_t off,
		 const struct iovec *iov, int nr_iov, struct iovec *parts,
		 struct split *out)
{
	size_t total = payload_len(iov, nr_iov), done = 0;
	size_t lens[SPLIT_SEGMENTS_MAX];
	int at = 0, i;

	assert(off >= 0);
	*out = (struct split){ 0 };
	if (nr_iov)
		out->mem_offset = (uintptr_t)iov[0].iov_base % SPLIT_PAGE;

	if (!rules->offset_align) {
		one_buffered(out, off, iov, nr_iov, total, SPLIT_NO_ALIGNMENT);
		return;
	}
	if (total < max_of(rules->offset_align, rules->mem_align)) {
		one_buffered(out, off, iov, nr_iov, total, SPLIT_TOO_SMALL);
		return;
	}
	if (!candidates(rules, (uint64_t)off, total, out)) {
		one_buffered(out, off, iov, nr_iov, total, SPLIT_NO_MIDDLE);
		return;
	}

	lens[0] = out->prefix;
	lens[1] = out->middle;
	lens[2] = out->suffix;
	for (i = 0; i < SPLIT_SEGMENTS_MAX; i++) {
		struct split_segment *s = &out->segments[out->nr];

		if (!lens[i])
			continue;
		s->off = off;
		s->len = lens[i];
		s->direct = i == 1;
		s->iov = parts;
		s->nr_iov = cut(iov, &at, &done, lens[i], parts);
		parts += s->nr_iov;
		off += (int64_t)lens[i];
		out->nr++;
		if (s->direct && !mem_aligned(s, rules->mem_align)) {
			off = out->segments[0].off;
			one_buffered(out, off, iov, nr_iov, total,
				     SPLIT_MEM_MISALIGNED);
			return;
		}
	}
	out->disposition = SPLIT_DIRECT;
}

const char *split_disposition_name(enum split_disposition d)
{
	static const char *const names[] = {
		[SPLIT_DIRECT] = "direct",
		[SPLIT_MEM_MISALIGNED] = "mem_misaligned",
		[SPLIT_NO_ALIGNMENT] = "no_alignment",
		[SPLIT_TOO_SMALL] = "too_small",
		[SPLIT_NO_MIDDLE] = "no_middle",
	};

	assert((size_t)d < ARRAY_SIZE(names));
	return names[d];
}

size_t split_widen_read(uint32_t align, int64_t *off, size_t *len)
{
	size_t before = (uint64_t)*off % align;
	size_t room = (size_t)(INT64_MAX - *off);
	size_t after;

	*len = min_of(*len, room);
	after = (align - (*len + before) % align) % align;
	/* The last, partial unit below the largest offset stays partial. */
	after = min_of(after, room - *len);
	*off -= (int64_t)before;
	*len += before + after;
	return before;
}

/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * What the records hold: each is a slice of one table of random bytes, chosen
 * by file and record number. A writer hands the slice itself to the write, so
 * making data costs nothing on either side, and a verifier that knows the
 * record size recomputes any byte at any alignment. Neighbouring records and
 * the same record of another run differ in every word; no byte is 0, so holes
 * show. Constant after init; any thread may read it.
 */
#ifndef TAILRACE_PATTERN_H
#define TAILRACE_PATTERN_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct pattern {
	char *table;
	size_t record;
	size_t step; /* between slices: memory alignment that I/O needs */
};

/* 0 or -ENOMEM. align is a power of two, at most a page. */
int pattern_init(struct pattern *p, size_t record, size_t align);
void pattern_fini(struct pattern *p);

/* The bytes of a record; seed tells files and runs apart. */
const char *pattern_record(const struct pattern *p, uint64_t seed,
			   uint64_t index);

/* Whether buf is what the file holds in [off, off + len). If not, *wrong is
 * the offset of the record that differs. */
bool pattern_matches(const struct pattern *p, uint64_t seed, const char *buf,
		     uint64_t off, size_t len, uint64_t *wrong);

/* A fixed permutation of [0, n), n > 0: what stands at i < n. */
uint64_t pattern_shuffle(uint64_t i, uint64_t n);

#endif

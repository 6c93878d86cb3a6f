/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * What one kind of operation cost: how many, bytes, time and how it spread.
 *
 * Any thread adds and reads; each number is exact, though they may belong to
 * moments a little apart. All zeros is the start.
 */
#ifndef TR_BASE_OPSTAT_H
#define TR_BASE_OPSTAT_H

#include "base/compiler.h"

#include <stdatomic.h>

/* Bucket b counts those of [2^b, 2^(b+1)) us, 0 those below 2 us, the last all
 * from half a second on. */
#define OPSTAT_BUCKETS 20

/* (A) all of it. */
struct opstat {
	atomic_ullong count;
	atomic_ullong bytes_in;
	atomic_ullong bytes_out;
	atomic_ullong ns;
	atomic_ullong max_ns;
	atomic_ullong latency[OPSTAT_BUCKETS];
};

/* Numbers as they were read. */
struct opstat_sum {
	uint64_t count, bytes_in, bytes_out, ns, max_ns;
	uint64_t latency[OPSTAT_BUCKETS];
};

void opstat_add(struct opstat *o, uint64_t bytes_in, uint64_t bytes_out,
		uint64_t ns);

/* Adds what o holds to *sum; a maximum becomes the larger one. */
void opstat_read(const struct opstat *o, struct opstat_sum *sum);

/* Microseconds that permille of all took at the most, as near as the buckets
 * tell; 0 of none. */
uint64_t opstat_percentile(const struct opstat_sum *sum, unsigned permille);

#endif

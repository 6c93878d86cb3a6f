/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Latencies in a log-linear histogram: 64 buckets to each power of two, so a
 * percentile is at most 1.6 % high. One thread adds; afterwards histograms are
 * merged and asked. 30 KiB each.
 */
#ifndef TAILRACE_HIST_H
#define TAILRACE_HIST_H

#include <stdint.h>

#define HIST_LINEAR_BITS 6
#define HIST_BUCKETS ((64 - HIST_LINEAR_BITS + 1) << HIST_LINEAR_BITS)

struct hist {
	uint64_t nr;
	uint64_t max_ns;
	uint64_t buckets[HIST_BUCKETS];
};

static inline unsigned hist_bucket(uint64_t ns)
{
	unsigned shift;

	if (ns < 1u << HIST_LINEAR_BITS)
		return (unsigned)ns;
	shift = 63u - (unsigned)__builtin_clzll(ns) - HIST_LINEAR_BITS;
	return (shift << HIST_LINEAR_BITS) + (unsigned)(ns >> shift);
}

static inline void hist_add(struct hist *h, uint64_t ns)
{
	h->nr++;
	h->buckets[hist_bucket(ns)]++;
	if (ns > h->max_ns)
		h->max_ns = ns;
}

void hist_merge(struct hist *into, const struct hist *from);

/* The latency that a share (0 to 1) of all stay at or below; 0 if empty. */
uint64_t hist_percentile(const struct hist *h, double share);

#endif

/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * A bucket's number is its values' top seven bits and how far they were
 * shifted; hist_bucket_end() is the inverse. A percentile is the end of the
 * bucket where the running count reaches it, and never above the maximum.
 */
#include "cmd/bench/hist.h"

void hist_merge(struct hist *into, const struct hist *from)
{
	into->nr += from->nr;
	if (from->max_ns > into->max_ns)
		into->max_ns = from->max_ns;
	for (unsigned i = 0; i < HIST_BUCKETS; i++)
		into->buckets[i] += from->buckets[i];
}

/* The largest value of a bucket. */
static uint64_t hist_bucket_end(unsigned bucket)
{
	unsigned shift;
	uint64_t top;

	if (bucket < 2u << HIST_LINEAR_BITS)
		return bucket;
	shift = (bucket >> HIST_LINEAR_BITS) - 1;
	top = bucket - (shift << HIST_LINEAR_BITS);
	return ((top + 1) << shift) - 1;
}

uint64_t hist_percentile(const struct hist *h, double share)
{
	double wanted = share * (double)h->nr;
	uint64_t seen = 0, end;

	if (!h->nr)
		return 0;
	for (unsigned i = 0; i < HIST_BUCKETS; i++) {
		seen += h->buckets[i];
		if (!h->buckets[i] || (double)seen < wanted)
			continue;
		end = hist_bucket_end(i);
		return end < h->max_ns ? end : h->max_ns;
	}
	return h->max_ns;
}

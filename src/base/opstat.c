/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * Counting operations.
 *
 * opstat_add() is a handful of relaxed additions: nobody draws conclusions from
 * two of them. Percentiles are taken to lie in their bucket as if all of it
 * were spread evenly, and never above the largest time seen.
 */
#include "base/opstat.h"

#include "base/clock.h"

static void add(atomic_ullong *to, uint64_t n)
{
	atomic_fetch_add_explicit(to, n, memory_order_relaxed);
}

static uint64_t get(const atomic_ullong *from)
{
	return atomic_load_explicit(from, memory_order_relaxed);
}

void opstat_add(struct opstat *o, uint64_t bytes_in, uint64_t bytes_out,
		uint64_t ns)
{
	uint64_t us = ns / NS_PER_US;
	unsigned b = us < 2 ? 0 : 63 - (unsigned)__builtin_clzll(us);
	unsigned long long max = get(&o->max_ns);

	add(&o->count, 1);
	add(&o->bytes_in, bytes_in);
	add(&o->bytes_out, bytes_out);
	add(&o->ns, ns);
	add(&o->latency[min_of(b, OPSTAT_BUCKETS - 1u)], 1);
	while (ns > max && !atomic_compare_exchange_weak_explicit(
				   &o->max_ns, &max, ns, memory_order_relaxed,
				   memory_order_relaxed))
		;
}

void opstat_read(const struct opstat *o, struct opstat_sum *sum)
{
	sum->count += get(&o->count);
	sum->bytes_in += get(&o->bytes_in);
	sum->bytes_out += get(&o->bytes_out);
	sum->ns += get(&o->ns);
	sum->max_ns = max_of(sum->max_ns, (uint64_t)get(&o->max_ns));
	for (unsigned b = 0; b < OPSTAT_BUCKETS; b++)
		sum->latency[b] += get(&o->latency[b]);
}

uint64_t opstat_percentile(const struct opstat_sum *sum, unsigned permille)
{
	uint64_t total = 0, below = 0, want, low, high, at;
	unsigned b;

	for (b = 0; b < OPSTAT_BUCKETS; b++)
		total += sum->latency[b];
	if (!total)
		return 0;
	want = max_of((total * permille + 999) / 1000, (uint64_t)1);
	for (b = 0; below + sum->latency[b] < want; b++)
		below += sum->latency[b];
	low = b ? 1ull << b : 0;
	high = 2ull << b;
	if (b == OPSTAT_BUCKETS - 1)
		high = max_of(high, sum->max_ns / NS_PER_US);
	at = low + (high - low) * (want - below) / sum->latency[b];
	return min_of(at, sum->max_ns / NS_PER_US);
}

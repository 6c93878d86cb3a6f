/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * The table is record bytes plus PATTERN_SLICES steps long; slice s starts at
 * s * step. A record written in another's place goes unseen once in
 * PATTERN_SLICES times; a fault that touches more than a few records does not.
 */
#include "cmd/bench/pattern.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

/* 1024 slices of a cache line are 64 KiB: the table stays in the processor's
 * cache as a payload just received would. */
#define PATTERN_SLICES 1024

/* splitmix64 (Steele, Lea and Flood 2014). */
static uint64_t mix(uint64_t x)
{
	x += 0x9e3779b97f4a7c15;
	x = (x ^ (x >> 30)) * 0xbf58476d1ce4e5b9;
	x = (x ^ (x >> 27)) * 0x94d049bb133111eb;
	return x ^ (x >> 31);
}

int pattern_init(struct pattern *p, size_t record, size_t align)
{
	size_t step = align < 64 ? 64 : align;
	size_t len = (record + PATTERN_SLICES * step + 4095) & ~(size_t)4095;
	char *table = aligned_alloc(4096, len);
	uint64_t word;

	if (!table)
		return -ENOMEM;
	for (size_t i = 0; i < len; i += sizeof(word)) {
		word = mix(i) | 0x0101010101010101;
		memcpy(table + i, &word, sizeof(word));
	}
	*p = (struct pattern){ .table = table, .record = record, .step = step };
	return 0;
}

void pattern_fini(struct pattern *p)
{
	free(p->table);
}

const char *pattern_record(const struct pattern *p, uint64_t seed,
			   uint64_t index)
{
	return p->table + mix(mix(seed) ^ index) % PATTERN_SLICES * p->step;
}

bool pattern_matches(const struct pattern *p, uint64_t seed, const char *buf,
		     uint64_t off, size_t len, uint64_t *wrong)
{
	while (len) {
		uint64_t index = off / p->record;
		size_t skip = off % p->record;
		size_t n = p->record - skip < len ? p->record - skip : len;

		if (memcmp(buf, pattern_record(p, seed, index) + skip, n)) {
			*wrong = index * p->record;
			return false;
		}
		buf += n;
		off += n;
		len -= n;
	}
	return true;
}

/* A four-round Feistel network on the next even number of bits, walked until
 * it lands inside. */
uint64_t pattern_shuffle(uint64_t i, uint64_t n)
{
	unsigned half = n > 1 ? (65 - (unsigned)__builtin_clzll(n - 1)) / 2 : 1;
	uint64_t mask = (1ull << half) - 1;

	do {
		uint64_t left = i >> half, right = i & mask;

		for (uint64_t round = 1; round <= 4; round++) {
			uint64_t f = (right + round) * 0x9e3779b97f4a7c15;
			uint64_t next = left ^ ((f >> 32) & mask);

			left = right;
			right = next;
		}
		i = left << half | right;
	} while (i >= n);
	return i;
}

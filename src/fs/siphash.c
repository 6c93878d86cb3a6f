/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * SipHash-2-4. Happy path: whole words, then the rest of the bytes with the
 * length in the top byte, then the finalisation rounds. It cannot fail.
 */
#include "fs/siphash.h"

#include <endian.h>
#include <string.h>

static uint64_t rotl(uint64_t x, int n)
{
	return x << n | x >> (64 - n);
}

static void rounds(uint64_t v[4], int n)
{
	while (n--) {
		v[0] += v[1];
		v[2] += v[3];
		v[1] = rotl(v[1], 13) ^ v[0];
		v[3] = rotl(v[3], 16) ^ v[2];
		v[0] = rotl(v[0], 32);
		v[2] += v[1];
		v[0] += v[3];
		v[1] = rotl(v[1], 17) ^ v[2];
		v[3] = rotl(v[3], 21) ^ v[0];
		v[2] = rotl(v[2], 32);
	}
}

static void mix(uint64_t v[4], uint64_t word)
{
	v[3] ^= word;
	rounds(v, 2);
	v[0] ^= word;
}

uint64_t siphash(const struct siphash_key *key, const void *data, size_t len)
{
	/* "somepseudorandomlygeneratedbytes", the constants of the paper. */
	uint64_t v[4] = { key->k[0] ^ 0x736f6d6570736575,
			  key->k[1] ^ 0x646f72616e646f6d,
			  key->k[0] ^ 0x6c7967656e657261,
			  key->k[1] ^ 0x7465646279746573 };
	const unsigned char *p = data;
	uint64_t word, last = (uint64_t)len << 56;
	size_t i;

	for (; len >= 8; len -= 8, p += 8) {
		memcpy(&word, p, 8);
		mix(v, le64toh(word));
	}
	for (i = 0; i < len; i++)
		last |= (uint64_t)p[i] << (8 * i);
	mix(v, last);
	v[2] ^= 0xff;
	rounds(v, 4);
	return v[0] ^ v[1] ^ v[2] ^ v[3];
}

/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * xoshiro256** (Blackman and Vigna 2018), seeded by splitmix64 (Steele, Lea
 * and Flood 2014) as its authors advise: no seed leads to the all-zero state.
 */
#include "base/rng.h"

#include <errno.h>
#include <stdlib.h>
#include <sys/random.h>

static uint64_t rotl(uint64_t x, int k)
{
	return (x << k) | (x >> (64 - k));
}

static uint64_t splitmix(uint64_t *x)
{
	uint64_t z = (*x += 0x9e3779b97f4a7c15ull);

	z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9ull;
	z = (z ^ (z >> 27)) * 0x94d049bb133111ebull;
	return z ^ (z >> 31);
}

void rng_seed(struct rng *r, uint64_t seed)
{
	unsigned i;

	for (i = 0; i < ARRAY_SIZE(r->s); i++)
		r->s[i] = splitmix(&seed);
}

uint64_t rng_next(struct rng *r)
{
	uint64_t *s = r->s;
	uint64_t result = rotl(s[1] * 5, 7) * 9;
	uint64_t t = s[1] << 17;

	s[2] ^= s[0];
	s[3] ^= s[1];
	s[1] ^= s[2];
	s[0] ^= s[3];
	s[2] ^= t;
	s[3] = rotl(s[3], 45);
	return result;
}

/*
 * The high half of a 64 by 64 bit product; products whose low half is below
 * 2^64 mod bound would favour some results and are drawn again (Lemire 2019).
 */
uint64_t rng_below(struct rng *r, uint64_t bound)
{
	unsigned __int128 m = (unsigned __int128)rng_next(r) * bound;
	uint64_t reject;

	if (likely((uint64_t)m >= bound))
		return (uint64_t)(m >> 64);
	reject = -bound % bound;
	while ((uint64_t)m < reject)
		m = (unsigned __int128)rng_next(r) * bound;
	return (uint64_t)(m >> 64);
}

void rng_secure(void *buf, size_t len)
{
	char *p = buf;
	ssize_t n;

	while (len) {
		n = getrandom(p, len, 0);
		if (n < 0 && errno == EINTR)
			continue;
		/* A kernel without it is older than any that runs this; keys
		 * that can be guessed would be worse than no server. */
		if (n <= 0)
			abort();
		p += n;
		len -= (size_t)n;
	}
}

/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * Chance through a seam: a small seeded generator (xoshiro256**, Blackman and
 * Vigna 2018) for tests and simulations, and the kernel's for verifiers and
 * keys. A generator belongs to one task at a time.
 */
#ifndef TR_BASE_RNG_H
#define TR_BASE_RNG_H

#include "base/compiler.h"

struct rng {
	uint64_t s[4];
};

void rng_seed(struct rng *r, uint64_t seed);
uint64_t rng_next(struct rng *r);

/* Uniform in [0, bound); bound > 0. */
uint64_t rng_below(struct rng *r, uint64_t bound);

/* Fills buf from getrandom(2); blocks only before the kernel has its seed. */
void rng_secure(void *buf, size_t len);

#endif

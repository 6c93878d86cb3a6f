/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Seeds of randomised tests. Every test that draws anything draws it from one
 * seed, so that a failure can be run again.
 */
#ifndef TR_TEST_SEED_H
#define TR_TEST_SEED_H

#include <stdint.h>

/*
 * The seed of this run: TR_SEED from the environment, else a new one. Prints
 * it with the command that runs the same again; the runner shows that line
 * where the test fails, however it fails.
 */
uint64_t seed_draw(void);

/* How much work a randomised test does: TR_ROUNDS from the environment, else
 * the number given. */
unsigned seed_rounds(unsigned rounds);

#endif

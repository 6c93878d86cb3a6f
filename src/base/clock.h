/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * Time through a seam: tests install a clock of their own (simulated time),
 * everything else reads the kernel's.
 */
#ifndef TR_BASE_CLOCK_H
#define TR_BASE_CLOCK_H

#include "base/compiler.h"

#include <time.h>

#define NS_PER_US 1000ull
#define NS_PER_MS 1000000ull
#define NS_PER_S 1000000000ull

/* Monotonic nanoseconds; never goes back; the origin means nothing. */
uint64_t clock_ns(void);

/* Calendar time, for file times. */
struct timespec clock_real(void);

/* Sleeps at least ns. Not for waiting on others: see base/wait.h. */
void clock_sleep(uint64_t ns);

/*
 * Replaces the clock, tests only: from now on clock_ns() returns what was set
 * and sleepers with deadlines wake when it is moved past them.
 * clock_sim_stop() goes back to the kernel's.
 */
void clock_sim_start(uint64_t now_ns);
void clock_sim_advance(uint64_t ns);
void clock_sim_stop(void);

#endif

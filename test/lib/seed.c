/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Seeds. The line is printed when the seed is drawn and not on failure, since
 * a sanitizer or a failed assertion leaves no time to.
 */
#include "lib/seed.h"

#include <stdio.h>
#include <stdlib.h>
#include <sys/random.h>
#include <unistd.h>

uint64_t seed_draw(void)
{
	const char *given = getenv("TR_SEED");
	char self[512];
	uint64_t seed = 1;
	ssize_t len;

	if (given)
		seed = strtoull(given, NULL, 0);
	else if (getrandom(&seed, sizeof(seed), 0) != sizeof(seed))
		seed = (uint64_t)getpid();
	len = readlink("/proc/self/exe", self, sizeof(self) - 1);
	self[len < 0 ? 0 : len] = 0;
	printf("# again: TR_SEED=%llu %s\n", (unsigned long long)seed, self);
	fflush(stdout);
	return seed;
}

unsigned seed_rounds(unsigned rounds)
{
	const char *given = getenv("TR_ROUNDS");

	return given ? (unsigned)strtoul(given, NULL, 0) : rounds;
}

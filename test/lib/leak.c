/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Leaks of descriptors, found by asking for each number before and after.
 */
#include "lib/leak.h"

#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

void leak_start(struct leak *leak)
{
	for (int fd = 0; fd < LEAK_FD_MAX; fd++)
		leak->open[fd] = fcntl(fd, F_GETFD) >= 0;
}

unsigned leak_end(const struct leak *leak)
{
	unsigned nr = 0;

	for (int fd = 0; fd < LEAK_FD_MAX; fd++) {
		char link[64], target[256];
		ssize_t len;

		if (leak->open[fd] || fcntl(fd, F_GETFD) < 0)
			continue;
		snprintf(link, sizeof(link), "/proc/self/fd/%d", fd);
		len = readlink(link, target, sizeof(target) - 1);
		target[len < 0 ? 0 : len] = 0;
		fprintf(stderr, "leak: descriptor %d: %s\n", fd, target);
		nr++;
	}
	return nr;
}

int leak_setup(void **state)
{
	struct leak *leak = malloc(sizeof(*leak));

	if (!leak)
		return -1;
	leak_start(leak);
	*state = leak;
	return 0;
}

int leak_check(void **state)
{
	struct leak *leak = *state;
	unsigned nr = leak_end(leak);

	free(leak);
	return nr ? -1 : 0;
}

/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Flags as people write them: a mode, then optionally a comma and how each
 * record is synced.
 */
#include "cmd/bench/side.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "base/compiler.h"

static const char *const modes[] = {
	[MODE_DONTCACHE] = "dontcache",
	[MODE_CACHED] = "cached",
	[MODE_DIRECT] = "direct",
};

static const char *const syncs[] = {
	[SYNC_AT_END] = "",
	[SYNC_DATA] = ",dsync",
	[SYNC_ALL] = ",sync",
};

int bench_flags_parse(const char *text, struct bench_flags *out)
{
	for (unsigned m = 0; m < ARRAY_SIZE(modes); m++) {
		size_t n = strlen(modes[m]);

		if (strncmp(text, modes[m], n))
			continue;
		for (unsigned s = 0; s < ARRAY_SIZE(syncs); s++) {
			if (strcmp(text + n, syncs[s]))
				continue;
			*out = (struct bench_flags){ .mode = m, .sync = s };
			return 0;
		}
	}
	return -EINVAL;
}

void bench_flags_print(struct bench_flags flags, char out[BENCH_FLAGS_TEXT])
{
	snprintf(out, BENCH_FLAGS_TEXT, "%s%s", modes[flags.mode],
		 syncs[flags.sync]);
}

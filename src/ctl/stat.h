/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * All statistics as rows of the control protocol.
 *
 *	@cache                  a section
 *	cache_size 67108864 bytes
 *	@exports /srv/data      one of several of its kind, with a name
 *	operations 12 count
 *	@@ops WRITE             one of several within that
 *
 * A row is NAME VALUE UNIT. The value is a whole number, but for the units
 * "text" (a word) and "bool" (Y or N); "hex" says how people want it printed.
 */
#ifndef TR_CTL_STAT_H
#define TR_CTL_STAT_H

#include "ctl/server.h"
#include "ctl/text.h"

/* The server's own numbers, which ctl/server.c knows. */
struct stat_control {
	uint64_t start_ns; /* clock_ns() */
	unsigned clients, trace_clients;
};

void stat_put(const struct ctl_env *env, const struct stat_control *control,
	      struct text *out);

#endif

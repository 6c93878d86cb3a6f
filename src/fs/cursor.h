/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * Who has been told of which write error: error cursors of clients on a file.
 *
 * An error reaches every client that had unstable writes here, once each.
 * Plain data; the caller holds the file's lock.
 */
#ifndef TR_FS_CURSOR_H
#define TR_FS_CURSOR_H

#include "base/compiler.h"

#include <stdbool.h>

/* Clients that write one file at once; with more an error may be reported
 * twice, never not at all. */
#define CURSORS_MAX 8

struct cursor {
	uint8_t client[16];
	uint64_t seen; /* errors it was told of, or that it predates */
	bool used;
};

struct cursors {
	struct cursor slots[CURSORS_MAX];
	unsigned hand;
	uint64_t errors; /* so far */
	int error; /* the newest, -errno */
	bool overflowed; /* a cursor was given up: anyone may be owed one */
};

/* The client has an unstable write here. */
void cursor_start(struct cursors *c, const uint8_t client[16]);

/* A write error happened. */
void cursor_error(struct cursors *c, int error);

/* The error that this client has not been told of, or 0. */
int cursor_check(struct cursors *c, const uint8_t client[16]);

#endif

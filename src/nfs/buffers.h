/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * Page-aligned memory for payloads, kept for the next request: fresh memory
 * costs more in page faults than the request itself. Any thread; never blocks.
 */
#ifndef TR_NFS_BUFFERS_H
#define TR_NFS_BUFFERS_H

#include "base/lock.h"

#define BUFFER_PAGE 4096u
#define BUFFER_SIZES 2

struct buffer {
	struct buffer *next;
	struct buffers *owner;
	unsigned size; /* which of the sizes */
	char *data;
};

struct buffers {
	struct mutex lock; /* LOCK_LEAF */
	struct buffer *free[BUFFER_SIZES] GUARDED(lock);
	unsigned nr_free[BUFFER_SIZES] GUARDED(lock);
};

void buffers_init(struct buffers *b);
/* All must have been given back. */
void buffers_fini(struct buffers *b);

/* At least len bytes; NULL: too long, or out of memory. */
struct buffer *buffer_get(struct buffers *b, size_t len);
void buffer_put(struct buffer *buf);

#endif

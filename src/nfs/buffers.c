/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * Payload buffers in two sizes. Happy path: the newest free one, still in the
 * processor's caches. How many are in use is limited by rpc/, which holds
 * connections to their share of memory; how many stay free, here.
 */
#include "nfs/buffers.h"

#include "base/mem.h"

#include <assert.h>

/* The largest READ or WRITE, widened and shifted within a page. */
static const size_t sizes[BUFFER_SIZES] = { 64u << 10,
					    (1u << 20) + (64u << 10) };

/* Small ones are in use by the dozen; large ones are 1 MiB of memory each. */
static const unsigned free_max[BUFFER_SIZES] = { 64, 12 };

void buffers_init(struct buffers *b)
{
	*b = (struct buffers){ 0 };
	mutex_init(&b->lock, LOCK_LEAF);
}

static void buffer_free(struct buffer *buf)
{
	mem_free(buf->data);
	mem_free(buf);
}

void buffers_fini(struct buffers *b)
{
	struct buffer *buf;
	int i;

	for (i = 0; i < BUFFER_SIZES; i++) {
		while ((buf = b->free[i])) {
			b->free[i] = buf->next;
			buffer_free(buf);
		}
	}
	mutex_fini(&b->lock);
}

static struct buffer *buffer_create(struct buffers *b, unsigned size)
{
	struct buffer *buf = mem_zalloc(sizeof(*buf));

	if (!buf)
		return NULL;
	buf->owner = b;
	buf->size = size;
	buf->data = mem_zalloc_aligned(BUFFER_PAGE, sizes[size]);
	if (!buf->data) {
		mem_free(buf);
		return NULL;
	}
	return buf;
}

struct buffer *buffer_get(struct buffers *b, size_t len)
{
	struct buffer *buf;
	unsigned size = 0;

	while (size < BUFFER_SIZES && sizes[size] < len)
		size++;
	if (size == BUFFER_SIZES)
		return NULL;
	mutex_lock(&b->lock);
	buf = b->free[size];
	if (buf) {
		b->free[size] = buf->next;
		b->nr_free[size]--;
	}
	mutex_unlock(&b->lock);
	return buf ? buf : buffer_create(b, size);
}

void buffer_put(struct buffer *buf)
{
	struct buffers *b = buf->owner;
	bool keep;

	mutex_lock(&b->lock);
	keep = b->nr_free[buf->size] < free_max[buf->size];
	if (keep) {
		buf->next = b->free[buf->size];
		b->free[buf->size] = buf;
		b->nr_free[buf->size]++;
	}
	mutex_unlock(&b->lock);
	if (!keep)
		buffer_free(buf);
}

/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * A store that stands on another: everything goes down unchanged, and a layer
 * (fault.c, delay.c) replaces the operations it is about.
 *
 * A layer's store, file and queue begin with the structures below. Requests go
 * down as copies (layer_pass), because the one above keeps its own file and
 * completion; what comes back is given to the layer's completed().
 */
#ifndef TR_STORE_LAYER_H
#define TR_STORE_LAYER_H

#include "base/compiler.h"

#include <tailrace/store.h>

struct layer_queue;

struct layer_store {
	struct tr_store base;
	struct tr_store *lower;
	size_t queue_size; /* bytes: of the layer's own queue structure */
	/* Sets up what follows the layer_queue, which is zeroed. */
	void (*queue_init)(struct layer_queue *q);
	/* A passed request is back, its result set; NULL: layer_complete(). */
	void (*completed)(struct layer_queue *q, struct tr_io *io);
};

struct layer_file {
	struct tr_store_file base;
	struct tr_store_file *lower;
};

/* A list of requests by their next. */
struct layer_list {
	struct tr_io *first, *last;
	unsigned nr;
};
void layer_list_add(struct layer_list *list, struct tr_io *io);
struct tr_io *layer_list_take(struct layer_list *list); /* NULL: empty */

struct layer_queue {
	struct tr_queue base;
	struct tr_queue *lower;
	struct layer_list ready; /* done without the store below */
	unsigned nr_flight; /* started, completion not run */
	unsigned nr_lower; /* of them, in the store below */
	unsigned nr_ran; /* completions run since ever; wraps */
};

/* Start: the request goes down, its first len bytes only; -ENOMEM as its
 * result if that cannot be. */
void layer_pass(struct layer_queue *q, struct tr_io *io, size_t len);
/* Start: the request is done with result, as the next wait will tell. */
void layer_finish(struct layer_queue *q, struct tr_io *io, ssize_t result);
/* Wait: runs the completion. */
void layer_complete(struct layer_queue *q, struct tr_io *io);
/* Wait: runs those of layer_finish() and takes what is back from below,
 * sleeping for one of those if asked to. */
void layer_poll(struct layer_queue *q, bool sleep);

/* Fills in all operations with those that pass on. */
#define LAYER_OPS                                                              \
	.open = layer_open, .close = layer_close, .getattr = layer_getattr,    \
	.queue_create = layer_queue_create,                                    \
	.queue_destroy = layer_queue_destroy, .submit = layer_submit,          \
	.truncate = layer_truncate, .punch = layer_punch,                      \
	.allocate = layer_allocate, .seek = layer_seek,                        \
	.set_mtime = layer_set_mtime, .space = layer_space,                    \
	.add_memory = layer_add_memory, .drop_memory = layer_drop_memory,      \
	.describe = layer_describe

int layer_open(struct tr_store *store, const char *name, int flags, mode_t mode,
	       struct tr_store_file **out);
void layer_close(struct tr_store_file *file);
int layer_getattr(struct tr_store_file *file, struct tr_store_attr *out);
int layer_queue_create(struct tr_store *store, struct tr_queue **out);
void layer_queue_destroy(struct tr_queue *queue);
void layer_submit(struct tr_queue *queue);
int layer_prepare(struct tr_store_file *file, int64_t off, size_t len,
		  int64_t floor, bool dense);
int layer_write_tail(struct tr_store_file *file, const void *buf, size_t len,
		     int64_t off);
int layer_sync(struct tr_store_file *file, bool datasync);
int layer_truncate(struct tr_store_file *file, int64_t size);
int layer_punch(struct tr_store_file *file, int64_t off, int64_t len);
int layer_allocate(struct tr_store_file *file, int64_t off, int64_t len,
		   bool keep_size);
int layer_seek(struct tr_store_file *file, int64_t off, int whence,
	       int64_t *out);
int layer_set_mtime(struct tr_store_file *file, struct timespec mtime);
int layer_space(struct tr_store *store, struct tr_store_space *out);
int layer_add_memory(struct tr_store *store, void *addr, size_t len);
void layer_drop_memory(struct tr_store *store, void *addr, size_t len);
const char *layer_describe(struct tr_store *store);

#endif

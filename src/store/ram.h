/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * What the two halves of the emulated device share: ram.c, its files and
 * settings, and ram_device.c, its requests and the task that serves them.
 */
#ifndef TR_STORE_RAM_H
#define TR_STORE_RAM_H

#include "store/ram_inode.h"

#include "base/lock.h"
#include "base/rng.h"
#include "base/task.h"
#include "base/wait.h"

#include <tailrace/store.h>

struct ram_store {
	struct tr_store base;
	struct tr_ram_options options; /* (C) */
	struct mutex lock;
	struct ram_disk disk GUARDED(lock);
	struct cds_list_head inodes GUARDED(lock);
	struct cds_list_head queues GUARDED(lock);
	struct cds_list_head submitted GUARDED(lock);
	struct tr_ram_counters counters GUARDED(lock);
	struct rng rng GUARDED(lock);
	uint64_t channel_free_ns GUARDED(lock);
	uint64_t next_ino GUARDED(lock);
	unsigned nr_files GUARDED(lock);
	/* Moves when the device has something new to look at. */
	atomic_uint changes;
	atomic_bool stop;
	struct waitq device_wq;
	struct task *device; /* (C) */
};

struct ram_file {
	struct tr_store_file base;
	struct ram_inode *inode;
};

struct ram_queue {
	struct tr_queue base;
	struct cds_list_head node; /* of store->queues */
	struct cds_list_head started GUARDED(store->lock);
	struct cds_list_head finished GUARDED(store->lock);
	atomic_uint nr_finished; /* changed under the lock */
	unsigned nr_flight; /* its thread only: started, completion not run */
	struct waitq wq;
};

static inline struct ram_store *ram_of(struct tr_store *store)
{
	return (struct ram_store *)store;
}

static inline struct ram_inode *ram_inode_of(struct tr_store_file *file)
{
	return ((struct ram_file *)file)->inode;
}

/* ram_device.c: operations of the store, and the device's task. */
int ram_queue_create(struct tr_store *store, struct tr_queue **out);
void ram_queue_destroy(struct tr_queue *queue);
void ram_start(struct tr_queue *queue, struct tr_io *io);
void ram_submit(struct tr_queue *queue);
unsigned ram_wait(struct tr_queue *queue, unsigned min);
void ram_device_run(void *store);

#endif

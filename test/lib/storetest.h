/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Help for tests of stores: makes one of a kind by name and moves data through
 * its queues. All of it fails the test where it cannot go on.
 */
#ifndef TR_TEST_STORETEST_H
#define TR_TEST_STORETEST_H

#include <tailrace/store.h>

/* Kinds: "ram", "layers" (faults over delays over ram), "uring" and "threads" (host, in a new directory below
 * TR_TEST_DIR or /var/tmp). Ended by tr_store_destroy(). */
struct tr_store *storetest_open(const char *kind);

/* The same of an existing directory; skips the test where there is no
 * io_uring and it is asked for. */
struct tr_store *storetest_host(const char *path, enum tr_engine engine);

/* A new directory, removed at exit or by the next call. */
const char *storetest_dir(void);

/* Opens for reading and writing, creates, truncates. */
struct tr_store_file *storetest_file(struct tr_store *store, const char *name);

/* Page-aligned, zeroed; free(). */
void *storetest_memory(size_t len);

/* prepare(), which must work. */
void storetest_prepare(struct tr_store_file *file, int64_t off, size_t len,
		       int64_t floor, bool dense);

/* One request on a queue of its own, waited for; its result. */
ssize_t storetest_io(struct tr_store_file *file, enum tr_io_op op, void *buf,
		     size_t len, int64_t off);

#define STORETEST_IOS 64
#define STORETEST_VECTORS 64

/* Requests in flight together on one queue. */
struct storetest_batch {
	struct tr_queue *queue;
	unsigned nr, nr_done;
	struct storetest_io {
		struct tr_io io;
		struct storetest_batch *batch;
		struct iovec iov[STORETEST_VECTORS];
	} ios[STORETEST_IOS];
};
void storetest_batch_init(struct storetest_batch *batch,
			  struct tr_store *store);
/* nr_iov vectors of multiples of 4096 bytes, the last takes the rest. */
void storetest_start(struct storetest_batch *batch, enum tr_io_op op,
		     struct tr_store_file *file, void *buf, size_t len,
		     int64_t off, int nr_iov);
/* Waits for all, each of which must complete once, and ends the queue. */
void storetest_finish(struct storetest_batch *batch);

#endif

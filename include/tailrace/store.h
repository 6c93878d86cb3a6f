/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * Stores: where the bytes of a cached file live.
 *
 * A store opens files, and moves whole blocks between them and memory through
 * queues. A queue is one submitter's context: it belongs to one thread at a
 * time, which starts requests on it, submits them, and runs their completions
 * by waiting. No completion ever runs in another thread or inside start, and
 * each runs exactly once, also on failure. Different queues, and all other
 * calls, may be used by any threads at once.
 *
 * Provided: tr_store_host_open() for a directory of the host, opened O_DIRECT;
 * tr_store_ram_create() for an emulated device; and layers that stand on
 * another store: tr_store_fault_create() and tr_store_delay_create(). An
 * application may provide its own by filling struct tr_store_ops.
 *
 * Errors are negative errno values throughout.
 */
#ifndef TAILRACE_STORE_H
#define TAILRACE_STORE_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>
#include <sys/uio.h>
#include <time.h>

#ifdef __cplusplus
extern "C" {
#endif
#pragma GCC visibility push(default)

struct tr_store;
struct tr_store_file;
struct tr_queue;

enum tr_io_op {
	TR_IO_READ,
	TR_IO_WRITE,
};

/*
 * One request. The caller fills the first part, owns it again when done() is
 * called, and keeps it and its memory in place in between.
 */
struct tr_io {
	enum tr_io_op op;
	struct tr_store_file *file;
	/* Bytes in file, a multiple of the file's offset alignment. */
	int64_t off;
	/* Memory: addresses and lengths are multiples of the file's memory
	 * alignment, the lengths add up to len. At most TR_IO_IOV_MAX. */
	struct iovec *iov;
	int nr_iov;
	/* Bytes, a multiple of the file's offset alignment, > 0. */
	size_t len;
	/*
	 * Set before done(): bytes moved, or -errno when none were. A read is
	 * short only at end of file. A short write has written its first
	 * result bytes; the caller deals with the rest.
	 */
	ssize_t result;
	void (*done)(struct tr_io *io);

	/* The store's, from start to done(). */
	struct tr_io *next;
	struct tr_io *lower;
	uint64_t store_word[4];
};

#define TR_IO_IOV_MAX 1024

/* What tells two openings of one file from two files. */
struct tr_file_id {
	uint64_t dev;
	uint64_t ino;
	uint64_t generation;
};

struct tr_store_attr {
	struct tr_file_id id;
	int64_t size; /* bytes; the store's, not the cache's */
	uint32_t block; /* bytes, the file system's block; power of two */
	/*
	 * Alignments for tr_io in bytes, powers of two. offset_align is 0 where
	 * the store cannot do direct I/O at all (then it is buffered beneath
	 * and any alignment does); read_align 0: no direct reads.
	 */
	uint32_t offset_align;
	uint32_t mem_align;
	uint32_t read_align;
	struct timespec mtime;
	struct timespec ctime;
	/* Names the file has; 0: it was removed, and its space is waited for.
	 * A store without names says 1. */
	uint64_t nlink;
};

/* Bytes, as statfs(2) has them for an unprivileged caller. */
struct tr_store_space {
	uint64_t total;
	uint64_t available;
};

/*
 * What a store does. Members that may be NULL say so. Every call may block
 * except start. All but close and destroy return 0 or -errno.
 */
struct tr_store_ops {
	/* "host", "ram", ...: at most 15 bytes, for statistics. */
	const char *name;
	/* Called by tr_store_destroy() when no file and no queue is open. */
	void (*destroy)(struct tr_store *store);

	/* flags as in open(2): O_CREAT, O_EXCL, O_TRUNC, O_RDONLY, O_RDWR. */
	int (*open)(struct tr_store *store, const char *name, int flags,
		    mode_t mode, struct tr_store_file **out);
	void (*close)(struct tr_store_file *file);
	int (*getattr)(struct tr_store_file *file, struct tr_store_attr *out);

	int (*queue_create)(struct tr_store *store, struct tr_queue **out);
	void (*queue_destroy)(struct tr_queue *queue);
	/* Takes the request; the device may not see it before submit. */
	void (*start)(struct tr_queue *queue, struct tr_io *io);
	/* Hands all started requests to the device in one batch. */
	void (*submit)(struct tr_queue *queue);
	/*
	 * Submits, then waits until at least min of the queue's requests (all,
	 * if fewer are in flight) have completed, and runs the completions of
	 * all that have. Returns how many it ran; min 0 never sleeps.
	 */
	unsigned (*wait)(struct tr_queue *queue, unsigned min);

	/*
	 * Called before writes to [off, off + len) are started: makes sure
	 * that none of them extends the file. floor is the size in memory
	 * rounded down to a block, or the end of a direct write: the file's
	 * size becomes at least that and never more. The store may allocate
	 * ahead if dense is set: the file is growing at its end without holes.
	 * Errors: -ENOSPC, -EDQUOT, -EIO.
	 */
	int (*prepare)(struct tr_store_file *file, int64_t off, size_t len,
		       int64_t floor, bool dense);
	/*
	 * Writes the last, partial block: [off, off + len) with off a multiple
	 * of the block, len less than a block, ending at end of file, unless
	 * another writer extends it meanwhile. Just these bytes are written;
	 * the file is never longer because of it, at no moment.
	 */
	int (*write_tail)(struct tr_store_file *file, const void *buf,
			  size_t len, int64_t off);
	/* All completed writes and size changes durable; only what is needed
	 * to read the data back if datasync. */
	int (*sync)(struct tr_store_file *file, bool datasync);
	int (*truncate)(struct tr_store_file *file, int64_t size);
	/* Bytes become a hole that reads as zeros; the size stays. */
	int (*punch)(struct tr_store_file *file, int64_t off, int64_t len);
	int (*allocate)(struct tr_store_file *file, int64_t off, int64_t len,
			bool keep_size);
	/* whence SEEK_DATA or SEEK_HOLE; *out as lseek(2); -ENXIO past end. */
	int (*seek)(struct tr_store_file *file, int64_t off, int whence,
		    int64_t *out);
	/* mtime as users shall see it, set after writeback. May be NULL. */
	int (*set_mtime)(struct tr_store_file *file, struct timespec mtime);
	int (*space)(struct tr_store *store, struct tr_store_space *out);

	/*
	 * [addr, addr + len) will carry I/O (a chunk of the folio arena): may
	 * be registered with the kernel. Failure is not an error of the
	 * caller: I/O then goes unregistered. May be NULL.
	 */
	int (*add_memory)(struct tr_store *store, void *addr, size_t len);
	/* Forgets what add_memory() was told. May be NULL. */
	void (*drop_memory)(struct tr_store *store, void *addr, size_t len);
	/* One line on how I/O is done, for `stat`: "io_uring, registered".
	 * Owned by the store. May be NULL. */
	const char *(*describe)(struct tr_store *store);
};

/* Embedded first in a store's own structures. */
struct tr_store {
	const struct tr_store_ops *ops;
};
struct tr_store_file {
	struct tr_store *store;
};
struct tr_queue {
	struct tr_store *store;
};

/* Frees the store. No file or queue of it may be open. */
void tr_store_destroy(struct tr_store *store);

/* ---- host: files of a directory ---- */

enum tr_engine {
	TR_ENGINE_AUTO, /* io_uring where the kernel permits it */
	TR_ENGINE_URING,
	TR_ENGINE_THREADS,
};

struct tr_host_options {
	size_t struct_size; /* sizeof(struct tr_host_options) */
	enum tr_engine engine;
	/* How long to wait for another process's lock on the directory;
	 * ms, 0: the default of 10 s, < 0: do not wait. */
	int lock_wait_ms;
	/* Bytes to allocate ahead in a growing file; 0: default 16 MiB. */
	uint64_t allocate_ahead;
};

/*
 * Opens a directory as a store and takes its lock: one process a directory.
 * Names given to open are relative to it and may not leave it. options may be
 * NULL. -ENOTDIR, -ENOENT, -EACCES; -EBUSY if another process has the lock;
 * -ENOSYS if TR_ENGINE_URING is asked for and not to be had.
 */
int tr_store_host_open(const char *dir, const struct tr_host_options *options,
		       struct tr_store **out);

/* ---- ram: an emulated device ---- */

struct tr_ram_options {
	size_t struct_size; /* sizeof(struct tr_ram_options) */
	uint32_t block; /* bytes; default 4096 */
	uint32_t offset_align; /* bytes; default: the block */
	uint32_t mem_align; /* bytes; default 512 */
	uint64_t capacity; /* bytes; 0: no limit */
	uint64_t latency_ns; /* of each request */
	uint64_t bytes_per_s; /* 0: no limit */
	/* Writes survive tr_store_ram_crash() only after a sync. */
	bool volatile_cache;
	uint64_t seed; /* decides what a crash keeps, loses and tears */
};

struct tr_ram_counters {
	uint64_t reads, read_bytes, writes, write_bytes, syncs;
	/* Writes that extended a file: must stay 0. */
	uint64_t extending_writes;
	/* Writes in flight to a unit that had one in flight: must stay 0. */
	uint64_t overlapping_writes;
};

/* options may be NULL. Files exist by name until the store is destroyed. */
int tr_store_ram_create(const struct tr_ram_options *options,
			struct tr_store **out);
void tr_store_ram_counters(struct tr_store *store, struct tr_ram_counters *out);
/*
 * Power loss: of each write not covered by a completed sync the device keeps,
 * loses or tears (at offset_align or 512 bytes) by the seed. Requests in
 * flight end with -EIO. Open files stay usable, as after a restart.
 */
void tr_store_ram_crash(struct tr_store *store);
/* Reads the device's content, past everything: for tests. Bytes read. */
ssize_t tr_store_ram_peek(struct tr_store *store, const char *name, void *buf,
			  size_t len, int64_t off);

/* ---- layers; each owns the store below and destroys it with itself ---- */

enum tr_fault_kind {
	TR_FAULT_READ,
	TR_FAULT_WRITE,
	TR_FAULT_SHORT_WRITE, /* error is ignored: half is written */
	TR_FAULT_SYNC,
	TR_FAULT_PREPARE,
	TR_FAULT_TAIL,
	TR_FAULT_HANG, /* a write that completes when released */
	TR_FAULT_KINDS
};

int tr_store_fault_create(struct tr_store *lower, struct tr_store **out);
/*
 * Fails the nth request of this kind from now (1: the next) with -error, and
 * all later ones too if lasting. nth 0 switches the kind off and releases what
 * hangs.
 */
void tr_store_fault_set(struct tr_store *store, enum tr_fault_kind kind,
			uint64_t nth, bool lasting, int error);
/* Requests of this kind seen since the last tr_store_fault_set(). */
uint64_t tr_store_fault_count(struct tr_store *store, enum tr_fault_kind kind);

/* Adds a latency to each read, write and sync. */
int tr_store_delay_create(struct tr_store *lower, uint64_t read_ns,
			  uint64_t write_ns, uint64_t sync_ns,
			  struct tr_store **out);

#pragma GCC visibility pop
#ifdef __cplusplus
}
#endif
#endif

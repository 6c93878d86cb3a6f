/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * A page cache with writeback on files that are read and written past the
 * kernel's own, for data that is written once and not read back soon.
 *
 *	struct tr_store *store;
 *	struct tr_cache *cache;
 *	struct tr_file *file;
 *
 *	tr_store_host_open("/data", NULL, &store);
 *	tr_cache_create(NULL, &cache);
 *	tr_file_open(cache, store, "out", O_RDWR | O_CREAT, 0644, &file);
 *	tr_write(file, buf, len, off, TR_DONTCACHE);
 *	tr_fsync(file);
 *	tr_file_close(file);
 *	tr_cache_destroy(cache);
 *	tr_store_destroy(store);
 *
 * Any thread may call, without registering itself; calls on one file from many
 * threads run in parallel where they touch different pages. All calls may
 * block unless TR_NOWAIT says otherwise. Errors are negative errno values, and
 * out-parameters are written only on success. Offsets and lengths are bytes.
 *
 * Every call that takes a null pointer where one is needed returns -EINVAL, and
 * on a file that was closed -EBADF as far as that can be told.
 */
#ifndef TAILRACE_CACHE_H
#define TAILRACE_CACHE_H

#include <tailrace/store.h>

#ifdef __cplusplus
extern "C" {
#endif
#pragma GCC visibility push(default)

struct tr_cache;
struct tr_file;

/* The largest file offset: a file is at most this many bytes. */
#define TR_OFFSET_MAX INT64_MAX

/* ---- a cache ---- */

struct tr_cache_options {
	size_t struct_size; /* sizeof(struct tr_cache_options) */
	/*
	 * Bytes for folios, their descriptors and the index together: a hard
	 * limit. 0: a quarter of memory, at most 4 GiB. At least 4 MiB.
	 */
	uint64_t size;
	/* Touch all of it before tr_cache_create() returns. */
	bool populate;
	/* Make no threads: nothing is written back but by syncs. For tests. */
	bool no_flushers;
};

/* options may be NULL. -EINVAL: size below 4 MiB; -ENOMEM. */
int tr_cache_create(const struct tr_cache_options *options,
		    struct tr_cache **out);

/* Writes back what is dirty and frees the cache. -EBUSY, and nothing done, if
 * a file is still open. */
int tr_cache_destroy(struct tr_cache *cache);

/*
 * Parameters, by name: see tailrace-parameters(7). -ENOENT: no such parameter;
 * -EINVAL: the value is out of range; nothing changed then. Effective at once.
 */
int tr_cache_set(struct tr_cache *cache, const char *name, int64_t value);
int tr_cache_get(struct tr_cache *cache, const char *name, int64_t *value);

/* name, unit, default, least, most, sentence. 0 as a default that depends on
 * the cache's size is explained by the sentence. */
#define TR_PARAMETERS(X)                                                       \
	X(dirty_background, "bytes", 0, 65536, INT64_MAX,                      \
	  "dirty data above which flushers write back; a tenth of the cache")  \
	X(dirty_limit, "bytes", 0, 131072, INT64_MAX,                          \
	  "dirty data above which writers wait; a fifth of the cache")         \
	X(dontcache_limit, "bytes", 0, 65536, INT64_MAX,                       \
	  "uncached data not yet on disk above which uncached writers wait; "  \
	  "an eighth of the cache, at most 120 MiB")                           \
	X(dirty_expire, "ms", 30000, 0, 86400000,                              \
	  "age at which dirty data is written back")                           \
	X(flush_interval, "ms", 5000, 10, 3600000,                             \
	  "how often flushers look for expired data")                          \
	X(edge_max_age, "ms", 30000, 0, 86400000,                              \
	  "age at which an incomplete shared page is written and dropped")     \
	X(edge_max_pages, "pages", 0, 1, INT64_MAX,                            \
	  "incomplete shared pages kept; a 64th of the cache, at most half "   \
	  "of dirty_background")                                               \
	X(readahead_max, "bytes", 2097152, 0, 16777216,                        \
	  "largest readahead window; 0: none")                                 \
	X(io_max, "bytes", 1048576, 65536, 4194304,                            \
	  "largest device write that writeback builds")                        \
	X(io_depth, "requests", 8, 1, 256,                                     \
	  "device writes a flusher keeps in flight")

/* name, unit, sentence. Gauges unless the sentence says total. */
#define TR_STATISTICS(X)                                                       \
	X(cache_size, "bytes", "configured size")                              \
	X(cache_ready, "bytes", "of it, memory ready for use")                 \
	X(cached_pages, "pages", "in folios of files")                         \
	X(free_pages, "pages", "free in what is ready")                        \
	X(meta_pages, "pages", "holding index nodes, edges and the like")      \
	X(reclaimable, "pages", "dirty, not under writeback")                  \
	X(edge_dirty, "pages", "of them, incomplete edges")                    \
	X(dontcache_dirty, "pages", "dirty and marked drop-behind")            \
	X(writeback, "pages", "under writeback")                               \
	X(dirtied, "pages", "made dirty, total")                               \
	X(written, "pages", "written back, total")                             \
	X(peak_dirty, "pages",                                                 \
	  "dirty or under writeback but for edges, the highest that a write "  \
	  "met, with what it brought")                                         \
	X(edges_held, "units", "incomplete edges held")                        \
	X(edges_completed, "units", "edges completed, total")                  \
	X(edges_aged, "units", "incomplete edges written for age, total")      \
	X(edges_evicted, "units",                                              \
	  "incomplete edges written for number, pressure or close, total")     \
	X(edges_detached, "units",                                             \
	  "edges a cached caller made ordinary pages, total")                  \
	X(lazy_fills, "units",                                                 \
	  "edges filled because coverage could not be "                        \
	  "kept, total")                                                       \
	X(fills, "units", "edges read from the store, total")                  \
	X(kicks, "count", "wake-ups of flushers by uncached writers, total")   \
	X(passes_background, "count", "flusher passes: background, total")     \
	X(passes_periodic, "count", "flusher passes: expired data, total")     \
	X(passes_sync, "count", "flusher passes: sync, total")                 \
	X(passes_reclaim, "count", "flusher passes: reclaim, total")           \
	X(passes_dontcache, "count", "flusher passes: the kick, total")        \
	X(passes_edge_age, "count", "flusher passes: edges, total")            \
	X(dropped_behind, "pages", "dropped at the end of writeback, total")   \
	X(reclaimed, "pages", "reclaimed, total")                              \
	X(throttled, "count", "writers made to wait, total")                   \
	X(throttled_ns, "ns", "time they waited, total")                       \
	X(direct_fallbacks, "count",                                           \
	  "direct writes served by the cache, "                                \
	  "total")                                                             \
	X(adopted, "pages", "written without a copy, total")                   \
	X(read_hits, "count", "folio lookups of reads that hit, total")        \
	X(read_misses, "count", "that missed, total")                          \
	X(device_reads, "count", "reads sent to stores, total")                \
	X(device_read_bytes, "bytes", "read from stores, total")               \
	X(device_writes, "count", "writes sent to stores, total")              \
	X(device_write_bytes, "bytes", "written to stores, total")             \
	X(device_syncs, "count", "syncs sent to stores, total")                \
	X(sync_calls, "count", "sync requests they served, total")             \
	X(writeback_errors, "count", "device writes that failed, total")       \
	X(lost_pages, "pages", "dirty data given up after errors, total")      \
	X(mappings, "count", "files known to the cache")

struct tr_statistics {
#define TR_FIELD_(name, unit, sentence) int64_t name;
	TR_STATISTICS(TR_FIELD_)
#undef TR_FIELD_
};

/* Exact sums. */
void tr_cache_statistics(struct tr_cache *cache, struct tr_statistics *out);

/* Sets peak_dirty back to what is dirty now. */
void tr_cache_reset_peak(struct tr_cache *cache);

/* Writes back and makes durable all files; the first error met, after all have
 * been tried. */
int tr_cache_sync(struct tr_cache *cache);

/* Checks every invariant of every structure, for tests: 0, or -EUCLEAN after
 * a line on stderr. Stops the cache's threads meanwhile. No other call may be
 * running. -ENOMEM, -EAGAIN: a thread could not be started again. */
int tr_cache_check(struct tr_cache *cache);

/* ---- files ---- */

/*
 * Opens a file of a store. Openings of one file share its cached pages. flags
 * as in open(2): O_RDONLY, O_WRONLY or O_RDWR, O_CREAT, O_EXCL, O_TRUNC.
 * Returns the store's error, -EINVAL for other flags.
 */
int tr_file_open(struct tr_cache *cache, struct tr_store *store,
		 const char *name, int flags, mode_t mode,
		 struct tr_file **out);

/*
 * Ends an opening, also on error. The last one of a file that has incomplete
 * edges writes back the file, them included, and waits for it; what else is
 * dirty stays cached. With many files not open, the one longest so is written
 * back and let go. Returns a write error that this opening has not been told
 * yet, else the error of reading what an edge lacks; the data is not durable
 * unless synced before.
 */
int tr_file_close(struct tr_file *file);

struct tr_file_attr {
	int64_t size;
	struct timespec mtime;
	uint32_t block; /* bytes: the store's block */
	uint32_t unit; /* bytes: the smallest folio, max(page, block) */
	uint32_t offset_align, mem_align, read_align; /* for TR_DIRECT */
	uint64_t cached_pages; /* 4096 bytes each */
	uint64_t dirty_pages;
	uint64_t edges; /* incomplete edges held, in units */
};
int tr_file_attr(struct tr_file *file, struct tr_file_attr *out);

/* ---- reading and writing ---- */

enum tr_flags {
	/* Drop what this call brought in: after writeback (write), after use
	 * (read). */
	TR_DONTCACHE = 1 << 0,
	/* Past the cache. Offset, length and memory aligned for the store. A
	 * write that meets a page just dirtied is served by the cache. */
	TR_DIRECT = 1 << 1,
	/* Durable before the call returns: the data, and what is needed to
	 * read it. */
	TR_DSYNC = 1 << 2,
	/* TR_DSYNC and all metadata. */
	TR_SYNC = 1 << 3,
	/* Never sleep on a folio, on I/O or for memory: -EAGAIN instead. */
	TR_NOWAIT = 1 << 4,
	/* At end of file; off is ignored. */
	TR_APPEND = 1 << 5,
};

/*
 * Bytes moved, which may be fewer than asked for at end of file (read) or when
 * an error follows partial progress (write); an error only if nothing was
 * done. Zero bytes succeed and change nothing.
 *
 * -EINVAL: a flag that does not fit (TR_DSYNC, TR_SYNC or TR_APPEND on a read,
 * TR_NOWAIT with a sync flag, unknown bits), off < 0, TR_DIRECT not aligned;
 * -EFBIG: the write would pass TR_OFFSET_MAX; -EBADF: not open for this;
 * -EAGAIN: TR_NOWAIT and it would sleep; -ENOMEM; -ENOSPC, -EDQUOT, -EIO: from
 * the store.
 */
ssize_t tr_read(struct tr_file *file, void *buf, size_t len, int64_t off,
		unsigned flags);
ssize_t tr_readv(struct tr_file *file, const struct iovec *iov, int nr_iov,
		 int64_t off, unsigned flags);
ssize_t tr_write(struct tr_file *file, const void *buf, size_t len, int64_t off,
		 unsigned flags);
ssize_t tr_writev(struct tr_file *file, const struct iovec *iov, int nr_iov,
		  int64_t off, unsigned flags);

/* A piece of one logical write, with a way of its own. */
struct tr_segment {
	const struct iovec *iov;
	int nr_iov;
	unsigned flags; /* of TR_DONTCACHE and TR_DIRECT */
	/* Set by the call: a direct segment that the cache served. */
	bool fell_back;
};

/*
 * One write made of consecutive segments starting at off: writes them in
 * order, syncs once over what was written if flags has TR_DSYNC or TR_SYNC,
 * and only then completes the pages it shares with its neighbours. The first
 * segment that is short or fails ends the write. Returns as tr_writev(); an
 * error of the sync is the write's error.
 */
ssize_t tr_write_segments(struct tr_file *file, struct tr_segment *segments,
			  int nr, int64_t off, unsigned flags);

/* ---- durability ---- */

/*
 * Writes out and waits for what was dirty in the range when the call was made,
 * then makes it durable; concurrent callers share device syncs. len 0: to the
 * end. flags: TR_DSYNC or TR_SYNC. Returns the first writeback error since
 * this opening was last told, once.
 */
int tr_fsync_range(struct tr_file *file, int64_t off, int64_t len,
		   unsigned flags);
int tr_fsync(struct tr_file *file);
int tr_fdatasync(struct tr_file *file);

/*
 * Changes whenever unsynced data may have been lost (a failed device sync,
 * data given up after errors): what an NFS write verifier is made of.
 */
uint64_t tr_file_loss_generation(struct tr_file *file);

/* ---- size and space ---- */

/* -EFBIG above the store's limit, -EINVAL below 0. */
int tr_truncate(struct tr_file *file, int64_t size);
int tr_punch(struct tr_file *file, int64_t off, int64_t len);
int tr_allocate(struct tr_file *file, int64_t off, int64_t len, bool keep_size);
/* whence SEEK_DATA or SEEK_HOLE, as lseek(2). The offset or -errno. */
int64_t tr_seek(struct tr_file *file, int64_t off, int whence);

/* Drops clean cached pages of the range (len 0: to the end). -EBUSY if some
 * are dirty, in use or mapped; the others are dropped all the same. */
int tr_invalidate(struct tr_file *file, int64_t off, int64_t len);

/* ---- mapped access ---- */

/*
 * Pins the page of off in the cache, read in and up to date, and returns its
 * memory: *addr is the byte at off, *len how many bytes follow in the folio
 * before end of file; what lies beyond is not the application's. It may load and
 * store there until tr_unmap(); after storing, and before tr_unmap(), it calls
 * tr_map_dirty(), which takes no folio lock.
 * -ENXIO: off is at or beyond end of file; -EIO: the read failed; -ENOMEM.
 */
struct tr_map;
int tr_map(struct tr_file *file, int64_t off, struct tr_map **out, void **addr,
	   size_t *len);
void tr_map_dirty(struct tr_map *map);
void tr_unmap(struct tr_map *map);

#pragma GCC visibility pop
#ifdef __cplusplus
}
#endif
#endif

/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * The table of files: every file that a request named lately, kept open.
 *
 * A file is found by its handle and held by a reference; without references it
 * stays for file_age_ns, or until its descriptors are needed. It is synced
 * before it is closed, so that errors of the host reach somebody. At the limit
 * of descriptors requests wait for others to end rather than fail.
 */
#ifndef TR_FS_FILE_H
#define TR_FS_FILE_H

#include "base/wait.h"
#include "fs/access.h"
#include "fs/cursor.h"
#include "fs/server.h"
#include "fs/syncgroup.h"

#include <time.h>

/*
 * What clients are shown of a file while its data is in memory. From the first
 * write until the file leaves the table these answer for the host's (see
 * attr.h).
 */
struct file_view {
	int64_t size;
	struct timespec mtime, ctime;
};

/* (T) the table's lock, (L) lock, (C) constant, (A) atomic. */
struct fs_file {
	struct cds_list_head bucket; /* (T) */
	struct cds_list_head idle; /* (T) on the list while refs is 0 */
	int refs; /* (T) */
	bool closing; /* (T) being closed: look-ups wait */
	uint64_t used_ns; /* (T) when refs became 0 */
	unsigned nr_fds; /* (T) what it counts for */

	struct file_table *table; /* (C) */
	struct fs_volume *volume; /* (C) */
	struct fs_handle handle; /* (C) */
	uint64_t ino; /* (C) */
	mode_t type; /* (C) S_IFMT bits */
	int fd; /* (C) O_PATH */

	struct mutex lock; /* LOCK_FILE */
	struct waitq changed; /* busy, io_users or io_switching changed */
	/* Whoever changes names in the directory or attributes of the file. */
	bool busy; /* (L) */
	unsigned changing; /* (L) who changes the host's attributes now */

	/* ---- the opening in the cache: fileio.c ---- */
	struct tr_file *io; /* (L) NULL: not open */
	bool io_writable; /* (L) */
	bool io_switching; /* (L) being opened or closed */
	bool io_want_write; /* (L) somebody waits to write */
	bool io_stale; /* (L) to be opened again: the host changed it */
	unsigned io_users; /* (L) */

	/* ---- attributes: attr.c ---- */
	bool own; /* (L) view answers for the host */
	struct file_view view; /* (L) */
	struct timespec ctime_min; /* (L) later than any shown of a lost view */
	struct file_view host; /* (L) the host's after our last device write */
	bool host_known; /* (L) */
	atomic_bool wrote; /* (A) written since host was recorded */
	atomic_uint writers; /* (A) writes that run now */
	atomic_uint mode; /* (A) permission bits as last seen */

	struct access_cache access; /* (L) */
	struct cursors cursors; /* (L) */
	struct fs_export *export; /* (L) that was written through last */
	uint64_t loss; /* (L) loss generation last seen */
	atomic_bool loss_told; /* (A) the administrator knows of a loss */
	atomic_bool gone; /* (A) no link is left: stale for clients */
	struct syncgroup sync; /* of fd: directories and metadata */
};

int file_table_create(uint64_t fds_max, uint64_t age_ns, struct tr_cache *cache,
		      struct file_table **out) MUST_CHECK;
/* Syncs and closes all. No reference may be left. */
void file_table_destroy(struct file_table *t);
struct tr_cache *file_table_cache(struct file_table *t);

/* Files and descriptors held, for statistics. */
void file_table_read(struct file_table *t, uint64_t *files, uint64_t *fds);

/*
 * The file of a handle, with a reference. fd is an O_PATH descriptor of it
 * which the call takes over (also on failure), or -1 to open it. -ESTALE,
 * -ENOMEM, or open(2)'s errors.
 */
int file_get(struct fs_server *fs, struct fs_export *x,
	     const struct fs_handle *handle, int fd,
	     struct fs_file **out) MUST_CHECK;

/* As file_get() but only what the table holds now; NULL else. */
struct fs_file *file_find(struct fs_server *fs, const struct fs_volume *v,
			  const struct fs_handle *handle);
/* NULL is none. */
void file_put(struct fs_file *f);

/* Counts nr more (or fewer) descriptors of the file; waits for room when they
 * get more. */
void file_count_fds(struct fs_file *f, int nr);

/* Alone among those who change names or attributes here. Blocks. */
void file_busy_start(struct fs_file *f);
void file_busy_end(struct fs_file *f);
/* Two at once (RENAME), in an order that cannot deadlock. They may be one. */
void file_busy_start2(struct fs_file *a, struct fs_file *b);
void file_busy_end2(struct fs_file *a, struct fs_file *b);

/* Makes the file's metadata, or a directory's names, durable on the host;
 * shared among concurrent callers. */
int file_sync_host(struct fs_file *f) MUST_CHECK;

#endif

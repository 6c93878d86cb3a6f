/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * What front ends share: the cache, the exports as they are served, the table
 * of files, and who may do what.
 *
 * Exports are only ever added while the server runs (EXPORTS_MAX): one that
 * left the export list stays as a structure whose entry is NULL, so pointers
 * to exports stay good until fs_server_destroy(). Any thread may call all but
 * create and destroy.
 */
#ifndef TR_FS_SERVER_H
#define TR_FS_SERVER_H

#include "base/lock.h"
#include "base/opstat.h"
#include "base/rcu.h"
#include "base/wait.h"
#include "fs/handle.h"
#include "fs/identity.h"
#include "fs/iomode.h"

#include <tailrace/cache.h>

#include <urcu/list.h>

/* Kinds of operations that an export counts: NFSv3 has 22. */
#define FS_OPS_MAX 22

/* A host file system: exports on one share the store that files are adopted
 * into, so that a file has one mapping however it is reached. */
struct fs_volume {
	struct cds_list_head node; /* (E) */
	uint64_t dev; /* (C) */
	struct tr_store *store; /* (C) of the first export's directory */
};

/* (C) constant, (A) atomic, (R) RCU, written by who changes exports. */
struct fs_export {
	uint64_t id; /* (C) in handles */
	char *path; /* (C) */
	int fd; /* (C) its directory */
	int mount_id; /* (C) */
	struct pathmap *paths; /* (C) NULL: handles are the kernel's */
	uint64_t root_ino; /* (C) */
	struct fs_handle root; /* (C) */
	struct fs_volume *volume; /* (C) */
	struct tr_store *lock_store; /* (C) holds its flock; NULL: volume's */
	struct export_entry *entry; /* (R) NULL: not exported now */
	struct io_knobs knobs; /* (A) */
	atomic_ulong verifier; /* (A) see fs_export_loss() */
	atomic_ulong bytes_read, bytes_written; /* (A) totals, payload */
	/* By procedure; the front end knows their names. */
	struct opstat ops[FS_OPS_MAX];
};

struct fs_server_options {
	struct tr_cache *cache; /* the server's, once it is created */
	struct tr_host_options host; /* how stores are opened */
	struct siphash_key key;
	uint64_t file_age_ns; /* how long an idle file stays open */
	/* Descriptors that open files may use; 0: half of RLIMIT_NOFILE. */
	uint64_t fds_max;
};

struct file_table;

struct fs_server {
	struct fs_server_options options; /* (C) */
	struct io_knobs knobs; /* (A) */
	struct file_table *files; /* (C) */
	struct mutex lock; /* LOCK_EXPORTS */
	/* One changes exports at a time; opening them may block long, so this
	 * is a state that is waited for. It owns what is marked (E). */
	bool changing GUARDED(lock);
	struct waitq changed;
	struct cds_list_head volumes; /* (E) */
	struct exports *current; /* (E) what the entries point into */
	struct fs_export *exports[EXPORTS_MAX]; /* published by nr_exports */
	atomic_int nr_exports; /* (A) */
};

/* 0, -ENOMEM or -EAGAIN. */
int fs_server_create(const struct fs_server_options *options,
		     struct fs_server **out) MUST_CHECK;

/* Writes back and closes all files, destroys the cache, and only then its
 * stores. No call may be running. Returns tr_cache_destroy()'s error. */
int fs_server_destroy(struct fs_server *fs);

/*
 * Makes the list the one that is served and takes it over. Exports that are in
 * both keep their handles, verifiers and knobs set since. On failure the old
 * list stays, *exports is the caller's still, and error says what is wrong.
 */
int fs_server_export(struct fs_server *fs, struct exports *exports,
		     char error[EXPORTS_ERROR_MAX]) MUST_CHECK;

/* NULL: no such export, or not exported now. */
struct fs_export *fs_export_find(struct fs_server *fs, uint64_t id);

/*
 * The export that a path of MOUNT names, and what follows its own path (""
 * for the export itself). "/" and "/export" are the only export where there is
 * but one. NULL: none.
 */
struct fs_export *fs_export_by_path(struct fs_server *fs, const char *path,
				    const char **rest);

/*
 * The handle of name in dirfd (not followed; "" is dirfd itself); seen_in and
 * seen_as as in fs/pathmap.h. -EACCES: it lies on another mount.
 */
int fs_export_handle(const struct fs_export *x, int dirfd, const char *name,
		     uint64_t seen_in, const char *seen_as,
		     struct fs_handle *out) MUST_CHECK;

/* An O_PATH descriptor of the file, or -ESTALE and what open(2) says. */
int fs_export_open(const struct fs_export *x,
		   const struct fs_handle *h) MUST_CHECK;

/* Unsynced data of the export was lost: clients must send theirs again. */
void fs_export_loss(struct fs_export *x);

/* One request, as far as the file layer is concerned. */
struct fs_request {
	struct fs_server *fs;
	struct fs_export *export;
	struct export_options options;
	struct fs_cred cred; /* after squashing */
	uint8_t client[16]; /* address: IPv6 or mapped IPv4 */
	uint32_t xid; /* for traces */
	uint8_t *traced; /* points of them that the call has passed; 0 first */
};

/*
 * Whether the peer may use the export at all; fills *r but xid and traced. cred
 * is what the call's credential says. -ESTALE: not exported any more; -EACCES: not to
 * this client; -EPERM: not from this port. May block where clients are named
 * by patterns and the peer's name is not yet known.
 */
int fs_request_init(struct fs_request *r, struct fs_server *fs,
		    struct fs_export *export, const struct sockaddr *peer,
		    const struct fs_cred *cred) MUST_CHECK;

#endif

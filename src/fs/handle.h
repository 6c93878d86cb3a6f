/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * File handles: what names a file for clients, across restarts and renames.
 *
 * On the wire a handle is the export, the host kernel's own handle of the file
 * (name_to_handle_at(2)) or, where the server may not open those, the
 * server's (fs/pathmap.h), and a checksum that only this server can make.
 * Pure but for handle_at(), handle_open() and handle_key_load(); any thread.
 */
#ifndef TR_FS_HANDLE_H
#define TR_FS_HANDLE_H

#include "fs/siphash.h"

#include <stdbool.h>

/* RFC 1813, section 2.4: NFS3_FHSIZE. */
#define HANDLE_WIRE_MAX 64
#define HANDLE_BYTES_MAX 40

enum handle_kind { HANDLE_KERNEL, HANDLE_PATH };

struct fs_handle {
	uint64_t export_id;
	int32_t type; /* the kernel's handle_type */
	uint8_t kind; /* enum handle_kind */
	uint8_t len;
	uint8_t bytes[HANDLE_BYTES_MAX];
};

/* Writes the wire form; returns its length. */
size_t handle_encode(const struct siphash_key *key, const struct fs_handle *h,
		     uint8_t wire[HANDLE_WIRE_MAX]);

/* -EBADFD: not made by this server. */
int handle_decode(const struct siphash_key *key, const void *wire, size_t len,
		  struct fs_handle *out) MUST_CHECK;

/* The file, whatever export it was reached through. */
uint64_t handle_hash(const struct fs_handle *h);
bool handle_same(const struct fs_handle *a, const struct fs_handle *b);

/*
 * The kernel's handle of name in dirfd (not followed; "" is dirfd itself) and
 * the mount it lies on. export_id is left to the caller. -EOVERFLOW: the file
 * system's handles do not fit; -EOPNOTSUPP: it has none.
 */
int handle_at(int dirfd, const char *name, struct fs_handle *out,
	      int *mount_id) MUST_CHECK;

/* Opens it; mount_fd is any file of the mount. The fd, or -ESTALE, -EPERM. */
int handle_open(int mount_fd, const struct fs_handle *h, int flags) MUST_CHECK;

/*
 * Reads the key from a file that only its owner may read, or makes one. The
 * file and its directory are durable before the first handle is made. 0,
 * -EPERM if others may read it, -EINVAL if it is not a key, or open(2)'s.
 */
int handle_key_load(const char *path, struct siphash_key *out) MUST_CHECK;

#endif

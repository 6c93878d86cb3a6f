/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * Handles for servers that may not open the kernel's (open_by_handle_at(2)
 * needs a capability): inode number and birth time name the file, and a map in
 * memory remembers under which name in which directory it was last seen. What
 * the map does not know, after a restart or a rename on the host, is searched
 * for in the export's tree.
 *
 * Any thread may call. pathmap_open() may block for as long as a search takes.
 */
#ifndef TR_FS_PATHMAP_H
#define TR_FS_PATHMAP_H

#include "fs/handle.h"

struct pathmap;

/* root_fd stays the caller's and open. */
int pathmap_create(int root_fd, struct pathmap **out) MUST_CHECK;
void pathmap_destroy(struct pathmap *p);

/*
 * The handle of name in dirfd (not followed; "" is dirfd itself). If seen_in is
 * not 0 the file was found in the directory of that inode number as seen_as,
 * which is remembered. -EACCES: another file system is mounted there.
 */
int pathmap_handle(struct pathmap *p, int dirfd, const char *name,
		   uint64_t seen_in, const char *seen_as,
		   struct fs_handle *out) MUST_CHECK;

/* An O_PATH descriptor, or -ESTALE. */
int pathmap_open(struct pathmap *p, const struct fs_handle *h) MUST_CHECK;

#endif

/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * The opening of a file in the cache: made when data is first asked for, kept
 * while the file is in the table.
 */
#ifndef TR_FS_FILEIO_H
#define TR_FS_FILEIO_H

#include "fs/file.h"

/* The descriptors that an opening may use beside the file's own: for data and
 * for the partial tail. */
#define FILEIO_FDS 2

/*
 * The opening, until fileio_end(). May block on descriptors and on the host.
 * -EISDIR, -EINVAL: no regular file; -EROFS, -ETXTBSY: write is set and the
 * host refuses; -EAGAIN: come again, see fileio.c; what else open(2) says.
 */
int fileio_start(struct fs_file *f, bool write,
		 struct tr_file **out) MUST_CHECK;
void fileio_end(struct fs_file *f);

/* As fileio_start(), of an opening that is there already; false else. Never
 * blocks. */
bool fileio_try_start(struct fs_file *f, bool write, struct tr_file **out);

/* What the cache knows of the file, without a look at its pages. */
struct fileio_facts {
	int64_t size;
	struct timespec mtime; /* of the last write; zero: none was made */
	uint32_t unit, offset_align, mem_align, read_align;
};

void fileio_facts(struct tr_file *io, struct fileio_facts *out);

/*
 * Takes notice of what was lost since last time, or of an error that a sync
 * told: every client with unstable writes here will be told. If data was lost,
 * the verifier changes of the export that is asked through (NULL: none) and of
 * the one that was written through, and the administrator is told, once a file.
 * ends: the opening does, and with it what could not be synced.
 */
void fileio_note_loss(struct fs_file *f, struct tr_file *io,
		      struct fs_export *asked, int error, bool ends);

/* Nothing is dirty or on its way to the device. */
bool fileio_is_settled(struct tr_file *io);

/* The host's file changed behind our back: the next one who starts while
 * nobody is inside opens it again. */
void fileio_refresh(struct fs_file *f);

/* Syncs and closes; what is lost changes the verifier of the export that was
 * written through. No reference may be held but by the caller, who closes the
 * file. */
void fileio_close(struct fs_file *f);

/* The file's last link is gone: what is dirty is not written any more. */
void fileio_cancel(struct fs_file *f);

#endif

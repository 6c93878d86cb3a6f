/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * READ, WRITE and COMMIT: rights, I/O mode, splitting, stability.
 *
 * nowait: never sleep on I/O, memory or the host; -EAGAIN means that the caller
 * is to say that it may block and ask again without.
 */
#ifndef TR_FS_IO_H
#define TR_FS_IO_H

#include "cache/gift.h"
#include "cache/loan.h"
#include "fs/attr.h"

/* In the protocol's order: each promises what those before it do. */
enum fs_stable { FS_UNSTABLE, FS_DATA_SYNC, FS_FILE_SYNC };

/* Largest READ and WRITE. */
#define FS_IO_MAX (1u << 20)

/* Vectors of a WRITE's payload. */
#define FS_IOV_MAX 260

struct fs_read {
	int64_t off;
	size_t count;
	/*
	 * Memory for the answer: buf has room for FS_READ_ROOM(count) bytes
	 * and is page-aligned. The bytes asked for begin at *data, inside it.
	 */
	void *buf;
	char *data; /* out, unless lent */
	/*
	 * Not NULL: the cache may lend the bytes rather than copy them; the
	 * caller then sends loan->iov and ends the loan.
	 */
	struct loan *loan;
	bool lent; /* out */
	size_t len; /* out */
	bool eof; /* out */
	bool after_valid; /* out */
	struct fs_attr after; /* out */
};

/* A direct READ is widened by less than two of the largest alignment. */
#define FS_READ_ALIGN_MAX 16384u
#define FS_READ_ROOM(count) ((size_t)(count) + 2 * FS_READ_ALIGN_MAX)

int io_read(const struct fs_request *r, struct fs_file *f, struct fs_read *rd,
	    bool nowait) MUST_CHECK;

struct fs_write {
	int64_t off;
	const struct iovec *iov;
	int nr_iov;
	size_t len; /* the sum */
	struct gift *gift; /* of which some of iov is memory, or NULL */
	enum fs_stable stable; /* asked for */
	/* In: 0, or what an earlier call, which was to come again, left here:
	 * it goes on behind that. Out: of all calls. */
	size_t written;
	enum fs_stable committed; /* out: achieved */
	uint64_t verifier; /* out */
	struct fs_before before; /* out */
	bool after_valid; /* out */
	struct fs_attr after; /* out */
};

int io_write(const struct fs_request *r, struct fs_file *f, struct fs_write *w,
	     bool nowait) MUST_CHECK;

/* Any offset and count; *verifier and *after as after a WRITE. */
int io_commit(const struct fs_request *r, struct fs_file *f, uint64_t off,
	      uint32_t count, uint64_t *verifier, bool *after_valid,
	      struct fs_attr *after) MUST_CHECK;

/* What stability a WRITE is really given. */
enum fs_stable io_stable_floor(const struct export_options *o,
			       enum io_write_mode mode, enum fs_stable asked);

#endif

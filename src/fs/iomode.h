/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * I/O modes: which way reads and writes go, for the server and for each
 * export.
 *
 * A struct io_knobs belongs to the server or to one export; in an export's any
 * knob may be IO_INHERIT. Values are atomic: workers read them while the one
 * who holds LOCK_CONTROL sets them; a request reads each knob once.
 */
#ifndef TR_FS_IOMODE_H
#define TR_FS_IOMODE_H

#include "base/compiler.h"

#include <stdatomic.h>
#include <stdbool.h>

enum io_read_mode { IO_READ_CACHED, IO_READ_UNCACHED, IO_READ_DIRECT };

enum io_write_mode {
	IO_WRITE_CACHED,
	IO_WRITE_UNCACHED,
	IO_WRITE_DIRECT,
	IO_WRITE_DATA_SYNC, /* direct, answered at least DATA_SYNC */
	IO_WRITE_FILE_SYNC, /* direct, answered at least FILE_SYNC */
};

/* name, is a boolean, default, least, most, sentence. */
#define IO_KNOBS(X)                                                            \
	X(io_cache_read, false, 0, 0, 2,                                       \
	  "reads: 0 cached, 1 uncached, 2 direct")                             \
	X(io_cache_write, false, 1, 0, 4,                                      \
	  "writes: 0 cached, 1 uncached, 2 direct, 3 direct and answered at "  \
	  "least DATA_SYNC, 4 direct and answered at least FILE_SYNC")         \
	X(io_interlock, true, 0, 0, 1,                                         \
	  "keep reads and writes on the same side of the cache")               \
	X(disable_splice_read, true, 0, 0, 1,                                  \
	  "copy into READ replies rather than send from the cache")            \
	X(direct_misaligned_num_pages, false, 2, 0, 1024,                      \
	  "pages that the middle of a misaligned WRITE must have to go "       \
	  "direct")                                                            \
	X(direct_misaligned_dontcache, true, 1, 0, 1,                          \
	  "drop the buffered ends of a direct WRITE after writeback")

enum io_knob {
#define IO_ENUM_(name, ...) IO_KNOB_##name,
	IO_KNOBS(IO_ENUM_)
#undef IO_ENUM_
		IO_NR_KNOBS
};

#define IO_INHERIT (-1)

struct io_knobs {
	atomic_int value[IO_NR_KNOBS]; /* (A) */
};

/* What one request goes by. */
struct io_mode {
	enum io_read_mode read;
	enum io_write_mode write;
	bool splice_read;
	unsigned num_pages;
	bool dontcache;
};

/* The defaults (server), or all IO_INHERIT (export). */
void io_knobs_init(struct io_knobs *k, bool inherit);

/* The knob's number, or -ENOENT. */
int io_knob_find(const char *name);
const char *io_knob_name(enum io_knob knob);
/* "0, 1 or 2"; "Y or N": what is allowed, for messages. */
const char *io_knob_allowed(enum io_knob knob);

/*
 * Parses a value: a number, Y or N for booleans, "inherit" where inherit is
 * allowed. *out is written on success; -EINVAL otherwise.
 */
int io_knob_parse(enum io_knob knob, const char *text, bool inherit, int *out);

/* Writes the value as text: Y or N for booleans, "inherit". */
void io_knob_format(enum io_knob knob, int value, char *buf, size_t len);

/*
 * Sets one knob of k and what follows from it. server is NULL when k is the
 * server's own. changed receives a bit for each knob of k whose value is
 * another now. -EINVAL, and nothing changed, for a value out of range.
 */
int io_knob_set(struct io_knobs *k, const struct io_knobs *server,
		enum io_knob knob, int value, unsigned *changed);

/* The value in force: the export's, else the server's. export may be NULL. */
int io_knob_get(const struct io_knobs *server, const struct io_knobs *export,
		enum io_knob knob);

void io_mode_get(const struct io_knobs *server, const struct io_knobs *export,
		 struct io_mode *out);

#endif

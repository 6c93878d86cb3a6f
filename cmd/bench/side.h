/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * The two sides of a comparison behind one set of calls: Tailrace through its
 * public interface, and the host kernel through its system calls. A side is
 * opened once per invocation (its cache is then populated and stays so) and
 * its files once per run. Files may be used by many threads at once, the rest
 * by one. All calls return 0, bytes, or -errno.
 */
#ifndef TAILRACE_SIDE_H
#define TAILRACE_SIDE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#include <tailrace/cache.h>

#include "cmd/options.h"

enum bench_mode { MODE_DONTCACHE, MODE_CACHED, MODE_DIRECT };
enum bench_sync { SYNC_AT_END, SYNC_DATA, SYNC_ALL };

struct bench_flags {
	enum bench_mode mode;
	enum bench_sync sync; /* of each record */
};

#define BENCH_FLAGS_TEXT 24

/* "dontcache,dsync" and the like. -EINVAL: not one of them. */
int bench_flags_parse(const char *text, struct bench_flags *out);
void bench_flags_print(struct bench_flags flags, char out[BENCH_FLAGS_TEXT]);

struct side_config {
	const char *dir;
	uint64_t cache; /* bytes; 0: the library's default */
	enum tr_engine engine;
	const struct option_list *parameters; /* NAME=VALUE */
};

struct side_file;

struct side {
	const struct side_ops *ops;
};

struct side_ops {
	const char *name; /* as reports have it */
	/* Prints what was wrong with a parameter; -EINVAL then. */
	int (*open)(const struct side_config *config, struct side **out);
	void (*close)(struct side *side);

	int (*file_open)(struct side *side, const char *name, bool create,
			 bool direct, struct side_file **out);
	int (*file_close)(struct side_file *file);
	ssize_t (*write)(struct side_file *file, const void *buf, size_t len,
			 int64_t off, struct bench_flags flags);
	ssize_t (*read)(struct side_file *file, void *buf, size_t len,
			int64_t off);
	int (*sync)(struct side_file *file);
	/* Drops the file's pages from the side's own cache. */
	int (*forget)(struct side_file *file);

	/* False where the side keeps no statistics of its own. */
	bool (*statistics)(struct side *side, struct tr_statistics *out);
	void (*reset_peak)(struct side *side);
	int64_t (*parameter)(struct side *side, const char *name);
};

extern const struct side_ops side_kernel;
extern const struct side_ops side_tailrace;

#endif

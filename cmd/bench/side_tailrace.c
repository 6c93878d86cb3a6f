/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Tailrace's side, through the installed headers only: one host store on the
 * directory and one cache, populated before anything is timed, since the first
 * touch of idle memory costs ten times the later ones on virtual machines.
 */
#include "cmd/bench/side.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/compiler.h"

struct tailrace_side {
	struct side side;
	struct tr_store *store;
	struct tr_cache *cache;
};

/* The structure is opaque to the frame; the library's file needs no more. */
static struct tr_file *tr_file_of(struct side_file *file)
{
	return (struct tr_file *)file;
}

static int set_parameter(struct tr_cache *cache, const char *text)
{
	const char *equals = strchr(text, '=');
	char name[64];
	uint64_t value;
	int err;

	if (!equals || (size_t)(equals - text) >= sizeof(name) ||
	    parse_size(equals + 1, &value) || value > INT64_MAX) {
		fprintf(stderr,
			"tailrace bench: --set: '%s' is not NAME=VALUE with a "
			"number (K, M, G, T)\n",
			text);
		return -EINVAL;
	}
	memcpy(name, text, (size_t)(equals - text));
	name[equals - text] = '\0';
	err = tr_cache_set(cache, name, (int64_t)value);
	if (err)
		fprintf(stderr, "tailrace bench: --set: %s '%s'\n",
			err == -ENOENT ? "unknown parameter in"
				       : "value out of range in",
			text);
	return err ? -EINVAL : 0;
}

static int tailrace_open(const struct side_config *config, struct side **out)
{
	struct tr_host_options host = { .struct_size = sizeof(host),
					.engine = config->engine };
	struct tr_cache_options options = { .struct_size = sizeof(options),
					    .size = config->cache,
					    .populate = true };
	struct tailrace_side *t = calloc(1, sizeof(*t));
	int err;

	if (!t)
		return -ENOMEM;
	t->side.ops = &side_tailrace;
	err = tr_store_host_open(config->dir, &host, &t->store);
	if (err)
		goto out_free;
	err = tr_cache_create(&options, &t->cache);
	if (err)
		goto out_store;
	for (int i = 0; i < config->parameters->nr; i++) {
		err = set_parameter(t->cache, config->parameters->values[i]);
		if (err)
			goto out_cache;
	}
	*out = &t->side;
	return 0;
out_cache:
	tr_cache_destroy(t->cache);
out_store:
	tr_store_destroy(t->store);
out_free:
	free(t);
	return err;
}

static void tailrace_close(struct side *side)
{
	struct tailrace_side *t =
		container_of(side, struct tailrace_side, side);

	if (tr_cache_destroy(t->cache))
		fprintf(stderr, "tailrace bench: the cache is still in use\n");
	else
		tr_store_destroy(t->store);
	free(t);
}

static int tailrace_file_open(struct side *side, const char *name, bool create,
			      bool direct, struct side_file **out)
{
	struct tailrace_side *t =
		container_of(side, struct tailrace_side, side);

	return tr_file_open(t->cache, t->store, name,
			    O_RDWR | (create ? O_CREAT | O_TRUNC : 0), 0644,
			    (struct tr_file **)out);
}

static int tailrace_file_close(struct side_file *file)
{
	return tr_file_close(tr_file_of(file));
}

static ssize_t tailrace_write(struct side_file *file, const void *buf,
			      size_t len, int64_t off, struct bench_flags flags)
{
	static const unsigned modes[] = {
		[MODE_DONTCACHE] = TR_DONTCACHE,
		[MODE_DIRECT] = TR_DIRECT,
	};
	static const unsigned syncs[] = {
		[SYNC_DATA] = TR_DSYNC,
		[SYNC_ALL] = TR_SYNC,
	};

	return tr_write(tr_file_of(file), buf, len, off,
			modes[flags.mode] | syncs[flags.sync]);
}

static ssize_t tailrace_read(struct side_file *file, void *buf, size_t len,
			     int64_t off)
{
	return tr_read(tr_file_of(file), buf, len, off, 0);
}

static int tailrace_sync(struct side_file *file)
{
	return tr_fsync(tr_file_of(file));
}

static int tailrace_forget(struct side_file *file)
{
	return tr_invalidate(tr_file_of(file), 0, 0);
}

static bool tailrace_statistics(struct side *side, struct tr_statistics *out)
{
	tr_cache_statistics(
		container_of(side, struct tailrace_side, side)->cache, out);
	return true;
}

static void tailrace_reset_peak(struct side *side)
{
	tr_cache_reset_peak(
		container_of(side, struct tailrace_side, side)->cache);
}

static int64_t tailrace_parameter(struct side *side, const char *name)
{
	int64_t value = 0;

	tr_cache_get(container_of(side, struct tailrace_side, side)->cache,
		     name, &value);
	return value;
}

const struct side_ops side_tailrace = {
	.name = "tailrace",
	.open = tailrace_open,
	.close = tailrace_close,
	.file_open = tailrace_file_open,
	.file_close = tailrace_file_close,
	.write = tailrace_write,
	.read = tailrace_read,
	.sync = tailrace_sync,
	.forget = tailrace_forget,
	.statistics = tailrace_statistics,
	.reset_peak = tailrace_reset_peak,
	.parameter = tailrace_parameter,
};

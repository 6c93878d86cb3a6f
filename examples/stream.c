/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Copies standard input into a file, uncached: what is written does not stay
 * in memory, neither here nor in the kernel.
 *
 *	stream DIR NAME <input
 *
 * The records have an odd size on purpose; no alignment is asked for. Any
 * failure ends the program with one line and status 1.
 */
#include <tailrace/cache.h>

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>

#define RECORD 47008

static int fail(const char *what, long error)
{
	fprintf(stderr, "stream: %s: %s\n", what, strerror((int)-error));
	return 1;
}

static int copy(struct tr_cache *cache, struct tr_file *file)
{
	static char buf[RECORD];
	struct tr_statistics s;
	int64_t off = 0;
	size_t len;

	while ((len = fread(buf, 1, sizeof(buf), stdin)) > 0) {
		ssize_t n = tr_write(file, buf, len, off, TR_DONTCACHE);

		if (n < 0 || (size_t)n < len)
			return fail("write", n < 0 ? n : -ENOSPC);
		off += n;
	}
	/* Only now is it on disk, and only now are errors all told. */
	int ret = tr_fsync(file);
	if (ret)
		return fail("sync", ret);
	tr_cache_statistics(cache, &s);
	printf("%lld bytes, %lld device reads, %lld pages still cached\n",
	       (long long)off, (long long)s.device_reads,
	       (long long)s.cached_pages);
	return 0;
}

int main(int argc, char **argv)
{
	struct tr_cache_options options = { .struct_size = sizeof(options),
					    .size = 64 << 20 };
	struct tr_store *store;
	struct tr_cache *cache;
	struct tr_file *file;
	int ret, status;

	if (argc != 3) {
		fprintf(stderr, "usage: stream DIR NAME <input\n");
		return 2;
	}
	ret = tr_store_host_open(argv[1], NULL, &store);
	if (ret)
		return fail(argv[1], ret);
	ret = tr_cache_create(&options, &cache);
	if (ret)
		return fail("cache", ret);
	ret = tr_file_open(cache, store, argv[2], O_RDWR | O_CREAT | O_TRUNC,
			   0644, &file);
	if (ret)
		return fail(argv[2], ret);
	status = copy(cache, file);
	ret = tr_file_close(file);
	if (ret && !status)
		status = fail("close", ret);
	tr_cache_destroy(cache);
	tr_store_destroy(store);
	return status;
}

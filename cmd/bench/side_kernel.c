/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * The host kernel's side: pwritev2(2) with RWF_DONTCACHE, buffered, or on a
 * descriptor opened O_DIRECT, and RWF_DSYNC or RWF_SYNC for each record. A
 * kernel without RWF_DONTCACHE (before 6.14) answers -EOPNOTSUPP.
 */
#include "cmd/bench/side.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/uio.h>
#include <unistd.h>

#include "base/compiler.h"

/* Linux 6.14; Debian 12's headers are older. */
#ifndef RWF_DONTCACHE
#define RWF_DONTCACHE 0x80
#endif

struct kernel_side {
	struct side side;
	int dir;
};

struct side_file {
	int fd;
};

static int kernel_open(const struct side_config *config, struct side **out)
{
	struct kernel_side *k = malloc(sizeof(*k));
	int err;

	if (!k)
		return -ENOMEM;
	k->side.ops = &side_kernel;
	k->dir = open(config->dir, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	if (k->dir < 0) {
		err = -errno;
		free(k);
		return err;
	}
	*out = &k->side;
	return 0;
}

static void kernel_close(struct side *side)
{
	struct kernel_side *k = container_of(side, struct kernel_side, side);

	close(k->dir);
	free(k);
}

static int kernel_file_open(struct side *side, const char *name, bool create,
			    bool direct, struct side_file **out)
{
	struct kernel_side *k = container_of(side, struct kernel_side, side);
	struct side_file *f = malloc(sizeof(*f));
	int err;

	if (!f)
		return -ENOMEM;
	f->fd = openat(k->dir, name,
		       O_RDWR | O_CLOEXEC | (create ? O_CREAT | O_TRUNC : 0) |
			       (direct ? O_DIRECT : 0),
		       0644);
	if (f->fd < 0) {
		err = -errno;
		free(f);
		return err;
	}
	*out = f;
	return 0;
}

static int kernel_file_close(struct side_file *file)
{
	int err = close(file->fd) ? -errno : 0;

	free(file);
	return err;
}

static ssize_t kernel_write(struct side_file *file, const void *buf, size_t len,
			    int64_t off, struct bench_flags flags)
{
	static const int sync_flags[] = {
		[SYNC_DATA] = RWF_DSYNC,
		[SYNC_ALL] = RWF_SYNC,
	};
	struct iovec iov = { .iov_base = (void *)buf, .iov_len = len };
	int rwf = sync_flags[flags.sync];
	ssize_t n;

	if (flags.mode == MODE_DONTCACHE)
		rwf |= RWF_DONTCACHE;
	/* Where the device is full a write ends early; the next says why. */
	while (iov.iov_len) {
		n = pwritev2(file->fd, &iov, 1, off, rwf);
		if (n < 0)
			return -errno;
		if (!n)
			break;
		iov.iov_base = (char *)iov.iov_base + n;
		iov.iov_len -= (size_t)n;
		off += n;
	}
	return (ssize_t)(len - iov.iov_len);
}

static ssize_t kernel_read(struct side_file *file, void *buf, size_t len,
			   int64_t off)
{
	ssize_t n = pread(file->fd, buf, len, off);

	return n < 0 ? -errno : n;
}

static int kernel_sync(struct side_file *file)
{
	return fsync(file->fd) ? -errno : 0;
}

static int kernel_forget(struct side_file *file)
{
	return -posix_fadvise(file->fd, 0, 0, POSIX_FADV_DONTNEED);
}

static bool kernel_statistics(struct side *side, struct tr_statistics *out)
{
	memset(out, 0, sizeof(*out));
	return false;
}

static void kernel_reset_peak(struct side *side)
{
}

static int64_t kernel_parameter(struct side *side, const char *name)
{
	return 0;
}

const struct side_ops side_kernel = {
	.name = "kernel",
	.open = kernel_open,
	.close = kernel_close,
	.file_open = kernel_file_open,
	.file_close = kernel_file_close,
	.write = kernel_write,
	.read = kernel_read,
	.sync = kernel_sync,
	.forget = kernel_forget,
	.statistics = kernel_statistics,
	.reset_peak = kernel_reset_peak,
	.parameter = kernel_parameter,
};

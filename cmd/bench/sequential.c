/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * The ceiling of every comparison: what the device takes from a writer who
 * asks nothing of it, sequential 1 MiB O_DIRECT writes, eight in flight. Also
 * what fills a file before it is rewritten. Eight threads take the next 1 MiB
 * each until none is left or one fails.
 */
#include "cmd/bench/bench.h"

#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/compiler.h"

#define SEQUENTIAL_DEPTH 8
#define SEQUENTIAL_LEN (1u << 20)

/* No pattern has this byte everywhere: stale data shows. */
#define FILL_BYTE 0xa5

struct sequential {
	int fd;
	const char *buf;
	uint64_t size;
	_Atomic uint64_t next; /* offset */
	atomic_int error;
};

static void *sequential_main(void *arg)
{
	struct sequential *s = arg;

	while (!atomic_load(&s->error)) {
		uint64_t off = atomic_fetch_add(&s->next, SEQUENTIAL_LEN);
		uint64_t len;
		ssize_t n;

		if (off >= s->size)
			break;
		len = min_of(s->size - off, (uint64_t)SEQUENTIAL_LEN);
		n = pwrite(s->fd, s->buf, len, (off_t)off);
		if (n != (ssize_t)len)
			atomic_store(&s->error, n < 0 ? -errno : -EIO);
	}
	return NULL;
}

static int sequential_run(struct sequential *s)
{
	pthread_t threads[SEQUENTIAL_DEPTH];
	int nr, err = 0;

	for (nr = 0; nr < SEQUENTIAL_DEPTH && !err; nr++)
		err = -pthread_create(&threads[nr], NULL, sequential_main, s);
	if (err) {
		nr--;
		atomic_store(&s->error, err);
	}
	while (nr--)
		pthread_join(threads[nr], NULL);
	err = atomic_load(&s->error);
	return !err && fsync(s->fd) ? -errno : err;
}

int sequential_write(const char *path, uint64_t size, bool create,
		     double *seconds, const char **what)
{
	struct sequential s = { .size = align_up(size, 4096) };
	uint64_t start;
	char *buf;
	int err;

	s.fd = open(path,
		    O_RDWR | O_DIRECT | O_CLOEXEC |
			    (create ? O_CREAT | O_TRUNC : 0),
		    0644);
	if (s.fd < 0)
		return -errno;
	buf = aligned_alloc(4096, SEQUENTIAL_LEN);
	if (!buf) {
		close(s.fd);
		return -ENOMEM;
	}
	memset(buf, FILL_BYTE, SEQUENTIAL_LEN);
	s.buf = buf;
	*what = "O_DIRECT sequential 1 MiB, 8 threads";
	start = now_ns();
	err = sequential_run(&s);
	*seconds = (double)(now_ns() - start) * 1e-9;
	if (!err && size != s.size && ftruncate(s.fd, (off_t)size))
		err = -errno;
	free(buf);
	close(s.fd);
	return err;
}

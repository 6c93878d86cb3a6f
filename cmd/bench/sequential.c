/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * The ceiling of every comparison: what the device takes from a writer who
 * asks nothing of it, sequential 1 MiB O_DIRECT writes by io_uring, eight in
 * flight. Also what fills a file before it is rewritten. Where the kernel
 * refuses io_uring, the ring's threads do the same and *what says so.
 *
 * The memory is not registered: the ceiling is the plainest writer.
 */
#include "cmd/bench/bench.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/compiler.h"
#include "ring/ring.h"

#define SEQUENTIAL_DEPTH 8
#define SEQUENTIAL_LEN (1u << 20)

/* No pattern has this byte everywhere: stale data shows. */
#define FILL_BYTE 0xa5

struct sequential;

struct sequential_io {
	struct tr_io io;
	struct iovec iov;
	struct sequential *s;
	bool flying;
};

struct sequential {
	int fd;
	char *buf;
	uint64_t size, next;
	unsigned nr_flying;
	int error;
	struct sequential_io ios[SEQUENTIAL_DEPTH];
};

static void sequential_done(struct tr_io *io)
{
	struct sequential_io *sio = container_of(io, struct sequential_io, io);

	sio->flying = false;
	sio->s->nr_flying--;
	if (io->result != (ssize_t)io->len && !sio->s->error)
		sio->s->error = io->result < 0 ? (int)io->result : -EIO;
}

static void sequential_start(struct sequential *s, struct sequential_io *sio,
			     struct ring_queue *q)
{
	uint64_t len = min_of(s->size - s->next, (uint64_t)SEQUENTIAL_LEN);

	sio->iov = (struct iovec){ .iov_base = s->buf, .iov_len = len };
	sio->io = (struct tr_io){
		.op = TR_IO_WRITE,
		.off = (int64_t)s->next,
		.iov = &sio->iov,
		.nr_iov = 1,
		.len = len,
		.done = sequential_done,
	};
	sio->s = s;
	sio->flying = true;
	s->nr_flying++;
	s->next += len;
	ring_start(q, s->fd, &sio->io);
}

static int sequential_run(struct sequential *s, struct ring_queue *q)
{
	for (;;) {
		for (unsigned i = 0; i < SEQUENTIAL_DEPTH; i++) {
			if (!s->ios[i].flying && !s->error && s->next < s->size)
				sequential_start(s, &s->ios[i], q);
		}
		if (!s->nr_flying)
			break;
		ring_submit(q);
		ring_wait(q, 1);
	}
	if (!s->error && fsync(s->fd))
		s->error = -errno;
	return s->error;
}

/* The ring with io_uring if it is to be had. */
static int make_ring(struct ring **out, const char **what)
{
	int err = ring_create(TR_ENGINE_URING, -1, out);

	*what = "O_DIRECT sequential 1 MiB";
	if (err != -ENOSYS)
		return err;
	*what = "O_DIRECT sequential 1 MiB by threads";
	return ring_create(TR_ENGINE_THREADS, -1, out);
}

int sequential_write(const char *path, uint64_t size, bool create,
		     double *seconds, const char **what)
{
	struct sequential *s = calloc(1, sizeof(*s));
	struct ring_queue *q;
	struct ring *ring;
	uint64_t start;
	int err;

	if (!s)
		return -ENOMEM;
	s->size = align_up(size, 4096);
	s->buf = aligned_alloc(4096, SEQUENTIAL_LEN);
	err = s->buf ? make_ring(&ring, what) : -ENOMEM;
	if (err)
		goto out_free;
	err = ring_queue_create(ring, &q);
	if (err)
		goto out_ring;
	s->fd = open(path,
		     O_RDWR | O_DIRECT | O_CLOEXEC |
			     (create ? O_CREAT | O_TRUNC : 0),
		     0644);
	if (s->fd < 0) {
		err = -errno;
		goto out_queue;
	}
	memset(s->buf, FILL_BYTE, SEQUENTIAL_LEN);
	start = now_ns();
	err = sequential_run(s, q);
	*seconds = (double)(now_ns() - start) * 1e-9;
	if (!err && size != s->size && ftruncate(s->fd, (off_t)size))
		err = -errno;
	close(s->fd);
out_queue:
	ring_queue_destroy(q);
out_ring:
	ring_destroy(ring);
out_free:
	free(s->buf);
	free(s);
	return err;
}

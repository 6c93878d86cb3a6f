/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * The choice of the engine, and the plain system calls both fall back on.
 *
 * Happy path: ring_create() tries io_uring, and threads where the kernel or
 * the administrator refuses it; every other call goes to the engine's row.
 *
 * Failure modes: an engine that was asked for by name and is not to be had.
 */
#include "ring/engine.h"

#include "base/mem.h"

#include <assert.h>
#include <errno.h>
#include <sys/resource.h>
#include <unistd.h>

/* File systems end a direct read early only at end of file or at a multiple
 * of their sector; less than this is end of file for certain. */
#define SECTOR_MIN 512

static_assert(sizeof(struct ring_request) <=
		      sizeof(((struct tr_io *)NULL)->store_word),
	      "fits into the store's words");

/*
 * Queues charge their rings, 16 KiB each, to the user's locked memory. Where
 * that is as small as it was before systemd 240 (64 KiB) a few would use it
 * up, and the next could not be had in the middle of work.
 */
#define MEMLOCK_MIN (1 << 20)

static bool memlock_is_short(void)
{
	struct rlimit limit;

	return geteuid() != 0 && getrlimit(RLIMIT_MEMLOCK, &limit) == 0 &&
	       limit.rlim_cur < MEMLOCK_MIN;
}

int ring_create(enum tr_engine engine, int lock_fd, struct ring **out)
{
	struct ring *ring = mem_zalloc(sizeof(*ring));
	int err = -ENOSYS;

	if (!ring)
		return -ENOMEM;
	ring->lock_fd = lock_fd;
	mutex_init(&ring->lock, LOCK_RING);
	if (engine == TR_ENGINE_AUTO && memlock_is_short())
		engine = TR_ENGINE_THREADS;
	if (engine != TR_ENGINE_THREADS) {
		ring->engine = &ring_uring;
		err = ring->engine->create(ring);
		if (err && engine == TR_ENGINE_URING && err != -ENOMEM)
			err = -ENOSYS;
	}
	if (err && engine != TR_ENGINE_URING) {
		ring->engine = &ring_threads;
		err = ring->engine->create(ring);
	}
	if (err) {
		mutex_fini(&ring->lock);
		mem_free(ring);
		return err;
	}
	*out = ring;
	return 0;
}

void ring_destroy(struct ring *ring)
{
	ring->engine->destroy(ring);
	mutex_fini(&ring->lock);
	mem_free(ring);
}

const char *ring_describe(const struct ring *ring)
{
	return __atomic_load_n(&ring->description, __ATOMIC_ACQUIRE);
}

int ring_add_memory(struct ring *ring, void *addr, size_t len)
{
	int err;

	if (!ring->engine->add_memory)
		return -ENOSYS;
	mutex_lock(&ring->lock);
	err = ring->engine->add_memory(ring, addr, len);
	mutex_unlock(&ring->lock);
	return err;
}

void ring_drop_memory(struct ring *ring, void *addr, size_t len)
{
	if (!ring->engine->drop_memory)
		return;
	mutex_lock(&ring->lock);
	ring->engine->drop_memory(ring, addr, len);
	mutex_unlock(&ring->lock);
}

int ring_queue_create(struct ring *ring, struct ring_queue **out)
{
	return ring->engine->queue_create(ring, out);
}

void ring_queue_destroy(struct ring_queue *q)
{
	q->ring->engine->queue_destroy(q);
}

void ring_start(struct ring_queue *q, int fd, struct tr_io *io)
{
	struct ring_request *r = ring_request_of(io);

	assert(io->nr_iov <= TR_IO_IOV_MAX);
	r->queue = q;
	r->fd = fd;
	q->ring->engine->start(q, io);
}

void ring_submit(struct ring_queue *q)
{
	q->ring->engine->submit(q);
}

unsigned ring_wait(struct ring_queue *q, unsigned min)
{
	return q->ring->engine->wait(q, min);
}

/* What of the request's vectors lies behind its first done bytes. */
static int vector_rest(const struct tr_io *io, size_t done, struct iovec *rest)
{
	int i, nr = 0;
	size_t n;

	for (i = 0; i < io->nr_iov; i++) {
		n = min_of(done, io->iov[i].iov_len);
		done -= n;
		if (n == io->iov[i].iov_len)
			continue;
		rest[nr].iov_base = (char *)io->iov[i].iov_base + n;
		rest[nr].iov_len = io->iov[i].iov_len - n;
		nr++;
	}
	return nr;
}

ssize_t ring_transfer(struct tr_io *io, size_t done)
{
	struct iovec rest[TR_IO_IOV_MAX];
	int fd = ring_request_of(io)->fd, nr;
	ssize_t n;

	while (done < io->len && !(done & (SECTOR_MIN - 1))) {
		nr = vector_rest(io, done, rest);
		if (io->op == TR_IO_READ)
			n = preadv(fd, rest, nr, io->off + (int64_t)done);
		else
			n = pwritev(fd, rest, nr, io->off + (int64_t)done);
		if (n < 0 && errno == EINTR)
			continue;
		if (n < 0)
			return -errno;
		done += n;
		if (n == 0 || io->op == TR_IO_WRITE)
			break;
	}
	return done;
}

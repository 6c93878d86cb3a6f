/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * Files of a host directory: the store itself and its queues.
 *
 * Happy path: tr_store_host_open() opens the directory, takes the flock on it,
 * starts the ring and registers the directory's descriptor there, so that the
 * lock lives until the last device write of a killed process has ended. A
 * request then goes from start straight to the ring.
 *
 * Failure modes: another process has the directory (-EBUSY after the wait);
 * the engine asked for is not to be had (-ENOSYS).
 *
 * The parts: host_name.c names, host_file.c descriptors, host_align.c what the
 * host file system demands, host_xfs.c descriptors that keep times,
 * host_size.c size, allocation and durability.
 */
#include "store/host.h"

#include "base/clock.h"
#include "base/mem.h"

#include <assert.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <sys/statfs.h>
#include <unistd.h>

#define LOCK_WAIT_MS 10000
/* flock has no wait with a limit: looked for this often. */
#define LOCK_POLL_NS (10 * NS_PER_MS)
#define AHEAD_MIN (16ull << 20)

int host_store_dir_fd(struct tr_store *store)
{
	return host_store_of(store)->dir_fd;
}

static int lock_directory(int fd, int wait_ms)
{
	uint64_t end = clock_ns() + (uint64_t)max_of(wait_ms, 0) * NS_PER_MS;

	while (flock(fd, LOCK_EX | LOCK_NB)) {
		if (errno != EWOULDBLOCK && errno != EINTR)
			return -errno;
		if (clock_ns() >= end)
			return -EBUSY;
		clock_sleep(LOCK_POLL_NS);
	}
	return 0;
}

static int host_queue_create(struct tr_store *base, struct tr_queue **out)
{
	struct host_store *store = host_store_of(base);
	struct host_queue *q = mem_zalloc(sizeof(*q));
	int err;

	if (!q)
		return -ENOMEM;
	err = ring_queue_create(store->ring, &q->ring);
	if (err) {
		mem_free(q);
		return err;
	}
	q->base.store = base;
	atomic_fetch_add(&store->nr_open, 1);
	*out = &q->base;
	return 0;
}

static void host_queue_destroy(struct tr_queue *queue)
{
	struct host_queue *q = (struct host_queue *)queue;

	ring_queue_destroy(q->ring);
	atomic_fetch_sub(&host_store_of(queue->store)->nr_open, 1);
	mem_free(q);
}

static void host_start(struct tr_queue *queue, struct tr_io *io)
{
	ring_start(((struct host_queue *)queue)->ring,
		   host_file_of(io->file)->fd, io);
}

static void host_submit(struct tr_queue *queue)
{
	ring_submit(((struct host_queue *)queue)->ring);
}

static unsigned host_wait(struct tr_queue *queue, unsigned min)
{
	return ring_wait(((struct host_queue *)queue)->ring, min);
}

static int host_space(struct tr_store *base, struct tr_store_space *out)
{
	struct statfs fs;

	if (fstatfs(host_store_of(base)->dir_fd, &fs))
		return -errno;
	out->total = (uint64_t)fs.f_blocks * fs.f_frsize;
	out->available = (uint64_t)fs.f_bavail * fs.f_frsize;
	return 0;
}

static int host_add_memory(struct tr_store *base, void *addr, size_t len)
{
	return ring_add_memory(host_store_of(base)->ring, addr, len);
}

static void host_drop_memory(struct tr_store *base, void *addr, size_t len)
{
	ring_drop_memory(host_store_of(base)->ring, addr, len);
}

static const char *host_describe(struct tr_store *base)
{
	return ring_describe(host_store_of(base)->ring);
}

static void host_destroy(struct tr_store *base)
{
	struct host_store *store = host_store_of(base);

	assert(atomic_load(&store->nr_open) == 0);
	ring_destroy(store->ring);
	mutex_fini(&store->lock);
	/* Nothing is in flight; the rings, which end later on their own, need
	 * not keep the next owner waiting. */
	(void)flock(store->dir_fd, LOCK_UN);
	close(store->dir_fd);
	mem_free(store);
}

static const struct tr_store_ops host_ops = {
	.name = "host",
	.destroy = host_destroy,
	.open = host_open,
	.close = host_close,
	.getattr = host_getattr,
	.queue_create = host_queue_create,
	.queue_destroy = host_queue_destroy,
	.start = host_start,
	.submit = host_submit,
	.wait = host_wait,
	.prepare = host_prepare,
	.write_tail = host_write_tail,
	.sync = host_sync,
	.truncate = host_truncate,
	.punch = host_punch,
	.allocate = host_allocate,
	.seek = host_seek,
	.set_mtime = host_set_mtime,
	.space = host_space,
	.add_memory = host_add_memory,
	.drop_memory = host_drop_memory,
	.describe = host_describe,
};

/* The rest of opening, once the directory is open. */
static int host_init(struct host_store *store, const struct tr_host_options *o)
{
	struct stat st;
	int err, i;

	err = lock_directory(store->dir_fd,
			     o->lock_wait_ms ? o->lock_wait_ms : LOCK_WAIT_MS);
	if (err)
		return err;
	if (fstat(store->dir_fd, &st))
		return -errno;
	store->base.ops = &host_ops;
	store->dev = st.st_dev;
	store->ahead_min = max_of(o->allocate_ahead, AHEAD_MIN);
	store->by_handle = host_xfs_usable(store->dir_fd);
	err = ring_create(o->engine, store->dir_fd, &store->ring);
	if (err)
		return err;
	mutex_init(&store->lock, LOCK_STORE);
	for (i = 0; i < HOST_BUCKETS; i++)
		CDS_INIT_LIST_HEAD(&store->inodes[i]);
	return 0;
}

int tr_store_host_open(const char *dir, const struct tr_host_options *options,
		       struct tr_store **out)
{
	struct tr_host_options o = { 0 };
	struct host_store *store;
	int err;

	if (!dir || !out)
		return -EINVAL;
	if (options)
		memcpy(&o, options, min_of(options->struct_size, sizeof(o)));
	store = mem_zalloc(sizeof(*store));
	if (!store)
		return -ENOMEM;
	store->dir_fd = open(dir, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	if (store->dir_fd < 0) {
		err = -errno;
		mem_free(store);
		return err;
	}
	err = host_init(store, &o);
	if (err) {
		close(store->dir_fd);
		mem_free(store);
		return err;
	}
	*out = &store->base;
	return 0;
}

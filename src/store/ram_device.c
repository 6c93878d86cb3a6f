/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * Requests to the emulated device, and the task that is the device.
 *
 * Happy path: ram_start() puts a request on its queue's list of started ones,
 * ram_submit() moves those to the device's list, the device picks one whose
 * time has come, moves its data at that moment and puts it on the queue's list
 * of finished ones, and ram_wait() runs its completion. The device picks by
 * the seed among requests that do not depend on each other; requests that
 * overlap are served in the order of their submission.
 *
 * Time: a request of n bytes holds the transfer channel for n / bytes_per_s
 * and is served latency_ns after that. Without both it is served as soon as
 * the device gets to run.
 *
 * Failure modes: -ENOSPC at the capacity, -ENOMEM, -EINVAL for what is not
 * aligned, -EIO for what a crash met in flight: all as results of requests.
 *
 * Invariants: a request is on exactly one list from start until its completion
 * runs; the lock is never held while completions run.
 */
#include "store/ram.h"

#include "base/clock.h"
#include "base/mem.h"

#include <assert.h>
#include <errno.h>

/* Requests the device chooses among: bounds the search for overlaps. */
#define CHOICE_MAX 16

/* The store's words of a tr_io. */
struct ram_request {
	struct cds_list_head node;
	struct ram_queue *queue;
	uint64_t due_ns;
};
static_assert(sizeof(struct ram_request) <=
		      sizeof(((struct tr_io *)0)->store_word),
	      "fits into the store's words");

static struct ram_request *request_of(struct tr_io *io)
{
	return (struct ram_request *)io->store_word;
}

static struct tr_io *io_of(struct ram_request *r)
{
	return (struct tr_io *)((char *)r - offsetof(struct tr_io, store_word));
}

/* ---- requests ---- */

static bool overlaps(const struct tr_io *a, const struct tr_io *b, int64_t unit)
{
	if (ram_inode_of(a->file) != ram_inode_of(b->file))
		return false;
	return align_down(a->off, unit) < align_up(b->off + b->len, unit) &&
	       align_down(b->off, unit) < align_up(a->off + a->len, unit);
}

static bool list_overlaps(struct cds_list_head *list, struct tr_io *io,
			  int64_t unit)
{
	struct ram_request *r;

	cds_list_for_each_entry (r, list, node) {
		if (io_of(r)->op == TR_IO_WRITE && overlaps(io_of(r), io, unit))
			return true;
	}
	return false;
}

/* Sees what a correct cache never does. */
static void watch_write(struct ram_store *store, struct tr_io *io)
	REQUIRES(store->lock)
{
	int64_t unit = store->disk.block;
	struct ram_queue *q;

	if (io->off + io->len > (uint64_t)ram_inode_of(io->file)->size)
		store->counters.extending_writes++;
	cds_list_for_each_entry (q, &store->queues, node) {
		if (list_overlaps(&q->started, io, unit) ||
		    list_overlaps(&q->finished, io, unit)) {
			store->counters.overlapping_writes++;
			return;
		}
	}
	if (list_overlaps(&store->submitted, io, unit))
		store->counters.overlapping_writes++;
}

void ram_start(struct tr_queue *queue, struct tr_io *io)
{
	struct ram_queue *q = (struct ram_queue *)queue;
	struct ram_store *store = ram_of(queue->store);
	struct ram_request *r = request_of(io);

	r->queue = q;
	r->due_ns = 0;
	mutex_lock(&store->lock);
	if (io->op == TR_IO_WRITE)
		watch_write(store, io);
	cds_list_add_tail(&r->node, &q->started);
	mutex_unlock(&store->lock);
	q->nr_flight++;
}

static void set_due(struct ram_store *store, struct tr_io *io)
	REQUIRES(store->lock)
{
	uint64_t rate = store->options.bytes_per_s, now;

	if (!rate && !store->options.latency_ns)
		return;
	now = clock_ns();
	if (rate) {
		now = max_of(now, store->channel_free_ns);
		now += (uint64_t)((double)io->len * NS_PER_S / rate);
		store->channel_free_ns = now;
	}
	request_of(io)->due_ns = now + store->options.latency_ns;
}

void ram_submit(struct tr_queue *queue)
{
	struct ram_queue *q = (struct ram_queue *)queue;
	struct ram_store *store = ram_of(queue->store);
	struct ram_request *r, *tmp;
	bool any = false;

	mutex_lock(&store->lock);
	cds_list_for_each_entry_safe (r, tmp, &q->started, node) {
		set_due(store, io_of(r));
		cds_list_del(&r->node);
		cds_list_add_tail(&r->node, &store->submitted);
		any = true;
	}
	mutex_unlock(&store->lock);
	if (any) {
		atomic_fetch_add(&store->changes, 1);
		waitq_wake_all(&store->device_wq);
	}
}

unsigned ram_wait(struct tr_queue *queue, unsigned min)
{
	struct ram_queue *q = (struct ram_queue *)queue;
	struct ram_store *store = ram_of(queue->store);
	struct ram_request *r;
	unsigned nr = 0;

	ram_submit(queue);
	min = min_of(min, q->nr_flight);
	while (nr < min || atomic_load(&q->nr_finished)) {
		wait_event(&q->wq, atomic_load(&q->nr_finished));
		mutex_lock(&store->lock);
		r = cds_list_first_entry(&q->finished, struct ram_request,
					 node);
		cds_list_del(&r->node);
		atomic_fetch_sub(&q->nr_finished, 1);
		mutex_unlock(&store->lock);
		q->nr_flight--;
		nr++;
		io_of(r)->done(io_of(r));
	}
	return nr;
}

/* ---- the device ---- */

static bool aligned(struct ram_store *store, const struct tr_io *io)
{
	uint64_t bits = io->off | io->len;
	int i;

	for (i = 0; i < io->nr_iov; i++) {
		if (((uintptr_t)io->iov[i].iov_base | io->iov[i].iov_len) &
		    (store->options.mem_align - 1))
			return false;
	}
	return io->off >= 0 && io->len &&
	       !(bits & (store->options.offset_align - 1));
}

static ssize_t move_data(struct ram_store *store, struct tr_io *io,
			 bool unsynced) REQUIRES(store->lock)
{
	struct ram_inode *inode = ram_inode_of(io->file);

	if (!aligned(store, io))
		return -EINVAL;
	if (io->op == TR_IO_READ) {
		store->counters.reads++;
		store->counters.read_bytes += io->len;
		return ram_inode_read(inode, io->iov, io->off, io->len);
	}
	store->counters.writes++;
	store->counters.write_bytes += io->len;
	inode->mtime = inode->ctime = clock_real();
	return ram_inode_write(inode, io->iov, io->off, io->len, unsynced);
}

/* Hands the request back to its queue; the caller wakes the queue. */
static struct ram_queue *finish(struct tr_io *io, ssize_t result)
{
	struct ram_request *r = request_of(io);

	io->result = result;
	cds_list_del(&r->node);
	cds_list_add_tail(&r->node, &r->queue->finished);
	atomic_fetch_add(&r->queue->nr_finished, 1);
	return r->queue;
}

/* Whether a request submitted before r must be served before it. */
static bool depends(struct ram_store *store, struct ram_request *r)
{
	struct ram_request *before;

	cds_list_for_each_entry (before, &store->submitted, node) {
		if (before == r)
			return false;
		if (overlaps(io_of(before), io_of(r), 1) &&
		    (io_of(before)->op == TR_IO_WRITE ||
		     io_of(r)->op == TR_IO_WRITE))
			return true;
	}
	return false;
}

/*
 * A request whose time has come, by the seed if there are several, or NULL and
 * when to look again (UINT64_MAX: when there is something new).
 */
static struct tr_io *pick(struct ram_store *store, uint64_t *again_ns)
	REQUIRES(store->lock)
{
	uint64_t now = store->options.latency_ns || store->options.bytes_per_s
			       ? clock_ns()
			       : 0;
	struct ram_request *r, *able[CHOICE_MAX];
	unsigned nr = 0, seen = 0;

	*again_ns = UINT64_MAX;
	cds_list_for_each_entry (r, &store->submitted, node) {
		if (seen++ == CHOICE_MAX)
			break;
		if (r->due_ns > now)
			*again_ns = min_of(*again_ns, r->due_ns);
		else if (!depends(store, r))
			able[nr++] = r;
	}
	return nr ? io_of(able[rng_below(&store->rng, nr)]) : NULL;
}

void ram_device_run(void *arg)
{
	struct ram_store *store = arg;
	struct ram_queue *q;
	uint64_t again_ns;
	struct tr_io *io;
	unsigned seen;

	while (!atomic_load(&store->stop)) {
		seen = atomic_load(&store->changes);
		q = NULL;
		mutex_lock(&store->lock);
		io = pick(store, &again_ns);
		if (io)
			q = finish(io, move_data(store, io,
						 store->disk.volatile_cache));
		/* Under the lock: the queue may end once it has seen this. */
		if (q)
			waitq_wake_all(&q->wq);
		mutex_unlock(&store->lock);
		if (q)
			continue;
		if (again_ns == UINT64_MAX)
			wait_event(&store->device_wq,
				   atomic_load(&store->changes) != seen);
		else
			(void)wait_event_until(
				&store->device_wq,
				atomic_load(&store->changes) != seen, again_ns);
	}
}

void tr_store_ram_crash(struct tr_store *base)
{
	struct ram_store *store = ram_of(base);
	struct ram_request *r, *tmp;
	struct ram_inode *inode;

	mutex_lock(&store->lock);
	cds_list_for_each_entry_safe (r, tmp, &store->submitted, node) {
		if (io_of(r)->op == TR_IO_WRITE)
			(void)move_data(store, io_of(r), true);
		waitq_wake_all(&finish(io_of(r), -EIO)->wq);
	}
	store->disk.crashes++;
	cds_list_for_each_entry (inode, &store->inodes, node)
		ram_inode_crash(inode);
	mutex_unlock(&store->lock);
}

/* ---- queues ---- */

int ram_queue_create(struct tr_store *base, struct tr_queue **out)
{
	struct ram_store *store = ram_of(base);
	struct ram_queue *q = mem_zalloc(sizeof(*q));

	if (!q)
		return -ENOMEM;
	q->base.store = base;
	CDS_INIT_LIST_HEAD(&q->started);
	CDS_INIT_LIST_HEAD(&q->finished);
	waitq_init(&q->wq);
	mutex_lock(&store->lock);
	cds_list_add_tail(&q->node, &store->queues);
	mutex_unlock(&store->lock);
	*out = &q->base;
	return 0;
}

void ram_queue_destroy(struct tr_queue *queue)
{
	struct ram_queue *q = (struct ram_queue *)queue;
	struct ram_store *store = ram_of(queue->store);

	assert(q->nr_flight == 0);
	mutex_lock(&store->lock);
	cds_list_del(&q->node);
	mutex_unlock(&store->lock);
	mem_free(q);
}

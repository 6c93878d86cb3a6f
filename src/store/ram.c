/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * An emulated device, for tests and simulations.
 *
 * Happy path: ram_start() puts a request on its queue's list of started ones,
 * ram_submit() moves those to the device's list, the device - a task - picks
 * one whose time has come, moves its data at that moment and puts it on the
 * queue's list of finished ones, and ram_wait() runs its completion. The
 * device picks by the seed among requests that do not depend on each other;
 * requests that overlap are served in the order of their submission.
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
#include "store/ram_inode.h"

#include "base/clock.h"
#include "base/lock.h"
#include "base/mem.h"
#include "base/rng.h"
#include "base/task.h"
#include "base/wait.h"

#include <tailrace/store.h>

#include <assert.h>
#include <errno.h>
#include <fcntl.h>
#include <string.h>

/* Requests the device chooses among: bounds the search for overlaps. */
#define CHOICE_MAX 16

struct ram_store {
	struct tr_store base;
	struct tr_ram_options options; /* (C) */
	struct mutex lock;
	struct ram_disk disk GUARDED(lock);
	struct cds_list_head inodes GUARDED(lock);
	struct cds_list_head queues GUARDED(lock);
	struct cds_list_head submitted GUARDED(lock);
	struct tr_ram_counters counters GUARDED(lock);
	struct rng rng GUARDED(lock);
	uint64_t channel_free_ns GUARDED(lock);
	uint64_t next_ino GUARDED(lock);
	unsigned nr_files GUARDED(lock);
	/* Moves when the device has something new to look at. */
	atomic_uint changes;
	atomic_bool stop;
	struct waitq device_wq;
	struct task *device; /* (C) */
};

struct ram_file {
	struct tr_store_file base;
	struct ram_inode *inode;
};

struct ram_queue {
	struct tr_queue base;
	struct cds_list_head node; /* of store->queues */
	struct cds_list_head started GUARDED(store->lock);
	struct cds_list_head finished GUARDED(store->lock);
	atomic_uint nr_finished; /* changed under the lock */
	unsigned nr_flight; /* its thread only: started, completion not run */
	struct waitq wq;
};

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

static struct ram_store *ram_of(struct tr_store *store)
{
	return (struct ram_store *)store;
}

static struct ram_inode *inode_of(struct tr_store_file *file)
{
	return ((struct ram_file *)file)->inode;
}

/* ---- requests ---- */

static bool overlaps(const struct tr_io *a, const struct tr_io *b, int64_t unit)
{
	if (inode_of(a->file) != inode_of(b->file))
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

	if (io->off + io->len > (uint64_t)inode_of(io->file)->size)
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

static void ram_start(struct tr_queue *queue, struct tr_io *io)
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

static void ram_submit(struct tr_queue *queue)
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

static unsigned ram_wait(struct tr_queue *queue, unsigned min)
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
	struct ram_inode *inode = inode_of(io->file);

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

static void device_run(void *arg)
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

static int ram_queue_create(struct tr_store *base, struct tr_queue **out)
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

static void ram_queue_destroy(struct tr_queue *queue)
{
	struct ram_queue *q = (struct ram_queue *)queue;
	struct ram_store *store = ram_of(queue->store);

	assert(q->nr_flight == 0);
	mutex_lock(&store->lock);
	cds_list_del(&q->node);
	mutex_unlock(&store->lock);
	mem_free(q);
}

/* ---- files ---- */

static struct ram_inode *find(struct ram_store *store, const char *name)
	REQUIRES(store->lock)
{
	struct ram_inode *inode;

	cds_list_for_each_entry (inode, &store->inodes, node) {
		if (!strcmp(inode->name, name))
			return inode;
	}
	return NULL;
}

static int create(struct ram_store *store, const char *name,
		  struct ram_inode **out) REQUIRES(store->lock)
{
	struct ram_inode *inode;

	inode = ram_inode_create(&store->disk, name, ++store->next_ino);
	if (!inode)
		return -ENOMEM;
	inode->mtime = inode->ctime = clock_real();
	cds_list_add_tail(&inode->node, &store->inodes);
	*out = inode;
	return 0;
}

static int ram_open(struct tr_store *base, const char *name, int flags,
		    mode_t mode, struct tr_store_file **out)
{
	struct ram_store *store = ram_of(base);
	struct ram_inode *inode;
	struct ram_file *file;
	int err = 0;

	file = mem_zalloc(sizeof(*file));
	if (!file)
		return -ENOMEM;
	mutex_lock(&store->lock);
	inode = find(store, name);
	if (inode && (flags & O_CREAT) && (flags & O_EXCL))
		err = -EEXIST;
	else if (!inode && !(flags & O_CREAT))
		err = -ENOENT;
	else if (!inode)
		err = create(store, name, &inode);
	else if (flags & O_TRUNC)
		err = ram_inode_truncate(inode, 0);
	if (!err)
		store->nr_files++;
	mutex_unlock(&store->lock);
	if (err) {
		mem_free(file);
		return err;
	}
	file->base.store = base;
	file->inode = inode;
	*out = &file->base;
	return 0;
}

static void ram_close(struct tr_store_file *file)
{
	struct ram_store *store = ram_of(file->store);

	mutex_lock(&store->lock);
	store->nr_files--;
	mutex_unlock(&store->lock);
	mem_free(file);
}

static int ram_getattr(struct tr_store_file *file, struct tr_store_attr *out)
{
	struct ram_store *store = ram_of(file->store);
	struct ram_inode *inode = inode_of(file);

	mutex_lock(&store->lock);
	*out = (struct tr_store_attr){
		.id = { .dev = (uintptr_t)store, .ino = inode->ino },
		.size = inode->size,
		.block = store->disk.block,
		.offset_align = store->options.offset_align,
		.mem_align = store->options.mem_align,
		.read_align = store->options.offset_align,
		.mtime = inode->mtime,
		.ctime = inode->ctime,
	};
	mutex_unlock(&store->lock);
	return 0;
}

static int ram_prepare(struct tr_store_file *file, int64_t off, size_t len,
		       int64_t floor, bool dense)
{
	struct ram_store *store = ram_of(file->store);
	int err = 0;

	mutex_lock(&store->lock);
	if (floor > inode_of(file)->size)
		err = ram_inode_truncate(inode_of(file), floor);
	mutex_unlock(&store->lock);
	return err;
}

static int ram_write_tail(struct tr_store_file *file, const void *buf,
			  size_t len, int64_t off)
{
	struct ram_store *store = ram_of(file->store);
	struct iovec iov = { (void *)buf, len };
	ssize_t n;

	mutex_lock(&store->lock);
	store->counters.writes++;
	store->counters.write_bytes += len;
	n = ram_inode_write(inode_of(file), &iov, off, len,
			    store->disk.volatile_cache);
	inode_of(file)->mtime = inode_of(file)->ctime = clock_real();
	mutex_unlock(&store->lock);
	if (n < 0)
		return n;
	return (size_t)n == len ? 0 : -ENOSPC;
}

/*
 * What is in the device's cache when the call begins reaches the medium; what
 * arrives while it sleeps does not: the harsher of what a device may do.
 */
static int ram_sync(struct tr_store_file *file, bool datasync)
{
	struct ram_store *store = ram_of(file->store);

	mutex_lock(&store->lock);
	store->counters.syncs++;
	ram_inode_sync(inode_of(file));
	mutex_unlock(&store->lock);
	if (store->options.latency_ns)
		clock_sleep(store->options.latency_ns);
	return 0;
}

static int ram_truncate(struct tr_store_file *file, int64_t size)
{
	struct ram_store *store = ram_of(file->store);
	int err;

	if (size < 0)
		return -EINVAL;
	mutex_lock(&store->lock);
	err = ram_inode_truncate(inode_of(file), size);
	inode_of(file)->mtime = inode_of(file)->ctime = clock_real();
	mutex_unlock(&store->lock);
	return err;
}

static int ram_punch(struct tr_store_file *file, int64_t off, int64_t len)
{
	struct ram_store *store = ram_of(file->store);
	int err;

	if (off < 0 || len <= 0)
		return -EINVAL;
	mutex_lock(&store->lock);
	err = ram_inode_punch(inode_of(file), off, len);
	inode_of(file)->mtime = inode_of(file)->ctime = clock_real();
	mutex_unlock(&store->lock);
	return err;
}

static int ram_allocate(struct tr_store_file *file, int64_t off, int64_t len,
			bool keep_size)
{
	struct ram_store *store = ram_of(file->store);
	struct ram_inode *inode = inode_of(file);
	int err;

	if (off < 0 || len <= 0)
		return -EINVAL;
	if (len > INT64_MAX - off)
		return -EFBIG;
	mutex_lock(&store->lock);
	err = ram_inode_allocate(inode, off, len);
	if (!err && !keep_size && off + len > inode->size)
		err = ram_inode_truncate(inode, off + len);
	mutex_unlock(&store->lock);
	return err;
}

static int ram_seek(struct tr_store_file *file, int64_t off, int whence,
		    int64_t *out)
{
	struct ram_store *store = ram_of(file->store);
	int err;

	mutex_lock(&store->lock);
	err = ram_inode_seek(inode_of(file), off, whence, out);
	mutex_unlock(&store->lock);
	return err;
}

static int ram_set_mtime(struct tr_store_file *file, struct timespec mtime)
{
	struct ram_store *store = ram_of(file->store);

	mutex_lock(&store->lock);
	inode_of(file)->mtime = mtime;
	inode_of(file)->ctime = clock_real();
	mutex_unlock(&store->lock);
	return 0;
}

static int ram_space(struct tr_store *base, struct tr_store_space *out)
{
	struct ram_store *store = ram_of(base);
	uint64_t total = store->disk.capacity ? store->disk.capacity
					      : (uint64_t)INT64_MAX;

	mutex_lock(&store->lock);
	out->total = total;
	out->available = total - min_of(total, store->disk.used);
	mutex_unlock(&store->lock);
	return 0;
}

static const char *ram_describe(struct tr_store *base)
{
	return "emulated device";
}

/* ---- the store ---- */

static void ram_destroy(struct tr_store *base)
{
	struct ram_store *store = ram_of(base);
	struct ram_inode *inode, *tmp;

	assert(store->nr_files == 0);
	assert(cds_list_empty(&store->queues));
	atomic_store(&store->stop, true);
	atomic_fetch_add(&store->changes, 1);
	waitq_wake_all(&store->device_wq);
	task_join(store->device);
	cds_list_for_each_entry_safe (inode, tmp, &store->inodes, node)
		ram_inode_destroy(inode);
	mutex_fini(&store->lock);
	mem_free(store);
}

static const struct tr_store_ops ram_ops = {
	.name = "ram",
	.destroy = ram_destroy,
	.open = ram_open,
	.close = ram_close,
	.getattr = ram_getattr,
	.queue_create = ram_queue_create,
	.queue_destroy = ram_queue_destroy,
	.start = ram_start,
	.submit = ram_submit,
	.wait = ram_wait,
	.prepare = ram_prepare,
	.write_tail = ram_write_tail,
	.sync = ram_sync,
	.truncate = ram_truncate,
	.punch = ram_punch,
	.allocate = ram_allocate,
	.seek = ram_seek,
	.set_mtime = ram_set_mtime,
	.space = ram_space,
	.describe = ram_describe,
};

/* Fills in defaults; -EINVAL for what cannot be. */
static int check_options(struct tr_ram_options *o)
{
	o->block = o->block ? o->block : 4096;
	o->offset_align = o->offset_align ? o->offset_align : o->block;
	o->mem_align = o->mem_align ? o->mem_align : 512;
	if (!is_power_of_two(o->block) || !is_power_of_two(o->offset_align) ||
	    !is_power_of_two(o->mem_align) || o->block < 512 ||
	    o->offset_align > o->block)
		return -EINVAL;
	return 0;
}

int tr_store_ram_create(const struct tr_ram_options *options,
			struct tr_store **out)
{
	struct tr_ram_options o = { 0 };
	struct ram_store *store;
	int err;

	if (!out)
		return -EINVAL;
	if (options)
		memcpy(&o, options, min_of(options->struct_size, sizeof(o)));
	err = check_options(&o);
	if (err)
		return err;
	store = mem_zalloc(sizeof(*store));
	if (!store)
		return -ENOMEM;
	store->base.ops = &ram_ops;
	store->options = o;
	store->disk = (struct ram_disk){
		.block = o.block,
		.sector = min_of(o.offset_align, 512u),
		.capacity = o.capacity,
		.volatile_cache = o.volatile_cache,
		.seed = o.seed,
	};
	rng_seed(&store->rng, o.seed);
	mutex_init(&store->lock, LOCK_STORE);
	CDS_INIT_LIST_HEAD(&store->inodes);
	CDS_INIT_LIST_HEAD(&store->queues);
	CDS_INIT_LIST_HEAD(&store->submitted);
	waitq_init(&store->device_wq);
	err = task_create(&store->device, "ram-device", device_run, store);
	if (err) {
		mutex_fini(&store->lock);
		mem_free(store);
		return err;
	}
	*out = &store->base;
	return 0;
}

void tr_store_ram_counters(struct tr_store *base, struct tr_ram_counters *out)
{
	struct ram_store *store = ram_of(base);

	mutex_lock(&store->lock);
	*out = store->counters;
	mutex_unlock(&store->lock);
}

ssize_t tr_store_ram_peek(struct tr_store *base, const char *name, void *buf,
			  size_t len, int64_t off)
{
	struct ram_store *store = ram_of(base);
	struct iovec iov = { buf, len };
	struct ram_inode *inode;
	ssize_t n = -ENOENT;

	mutex_lock(&store->lock);
	inode = find(store, name);
	if (inode)
		n = ram_inode_read(inode, &iov, off, len);
	mutex_unlock(&store->lock);
	return n;
}

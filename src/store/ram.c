/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * An emulated device, for tests and simulations: its files and settings.
 *
 * Happy path: files exist by name in a list until the store is destroyed;
 * calls on them change the content (ram_inode.c) under the store's lock at
 * once, requests go through the device's task (ram_device.c).
 *
 * Failure modes: -ENOSPC at the capacity and -ENOMEM, with part of the work
 * done.
 */
#include "store/ram.h"

#include "base/clock.h"
#include "base/mem.h"

#include <assert.h>
#include <errno.h>
#include <fcntl.h>
#include <string.h>

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
	struct ram_inode *inode = ram_inode_of(file);

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
		.nlink = 1,
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
	if (floor > ram_inode_of(file)->size)
		err = ram_inode_truncate(ram_inode_of(file), floor);
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
	n = ram_inode_write(ram_inode_of(file), &iov, off, len,
			    store->disk.volatile_cache);
	ram_inode_of(file)->mtime = ram_inode_of(file)->ctime = clock_real();
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
	ram_inode_sync(ram_inode_of(file));
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
	err = ram_inode_truncate(ram_inode_of(file), size);
	ram_inode_of(file)->mtime = ram_inode_of(file)->ctime = clock_real();
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
	err = ram_inode_punch(ram_inode_of(file), off, len);
	ram_inode_of(file)->mtime = ram_inode_of(file)->ctime = clock_real();
	mutex_unlock(&store->lock);
	return err;
}

static int ram_allocate(struct tr_store_file *file, int64_t off, int64_t len,
			bool keep_size)
{
	struct ram_store *store = ram_of(file->store);
	struct ram_inode *inode = ram_inode_of(file);
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
	err = ram_inode_seek(ram_inode_of(file), off, whence, out);
	mutex_unlock(&store->lock);
	return err;
}

static int ram_set_mtime(struct tr_store_file *file, struct timespec mtime)
{
	struct ram_store *store = ram_of(file->store);

	mutex_lock(&store->lock);
	ram_inode_of(file)->mtime = mtime;
	ram_inode_of(file)->ctime = clock_real();
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
	err = task_create(&store->device, "ram-device", ram_device_run, store);
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

/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * The table of files.
 *
 * Happy path: the handle's bucket holds the file, it gets a reference. A miss
 * opens the handle without the table's lock and inserts it, unless another did
 * so meanwhile. The last reference puts the file at the end of the idle list;
 * from its head the keeper closes what is old, and who needs descriptors
 * closes what is there.
 *
 *	idle --file_get--> held --file_put--> idle --close_start--> closing
 *	held --file_put, if it has no name left--> closing
 *
 * A closing file stays in its bucket until all is synced and closed, and those
 * who want it wait: two structures for one file would show two sizes.
 *
 * Failure modes: a host error when closing changes the verifier of the export
 * that was written through.
 *
 * Invariants: a file is idle exactly when it has no reference and is not being
 * closed; nr_fds is the sum over all files.
 */
#include "fs/file.h"

#include "base/clock.h"
#include "base/mem.h"
#include "base/task.h"
#include "fs/fileio.h"

#include <assert.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <unistd.h>

#define FILE_BUCKETS 4096

/* How often the keeper looks for files to close. */
#define KEEPER_NS NS_PER_S

/* Fewer descriptors than this do not serve even one rename per worker. */
#define FDS_MIN 128

/* Idle files looked at under the lock, a microsecond each at most. */
#define REMOVED_LOOKS 256

struct file_table {
	struct mutex lock; /* LOCK_FILES */
	struct cds_list_head buckets[FILE_BUCKETS] GUARDED(lock);
	struct cds_list_head idle GUARDED(lock); /* oldest first */
	uint64_t nr_files GUARDED(lock);
	uint64_t nr_fds GUARDED(lock);
	uint64_t fds_max; /* (C) */
	uint64_t age_ns; /* (C) */
	struct tr_cache *cache; /* (C) */
	struct waitq room; /* a file became idle or was closed */
	struct task *keeper; /* (C) */
	struct waitq wake;
	atomic_bool stopping; /* (A) */
};

struct tr_cache *file_table_cache(struct file_table *t)
{
	return t->cache;
}

void file_table_read(struct file_table *t, uint64_t *files, uint64_t *fds)
{
	mutex_lock(&t->lock);
	*files = t->nr_files;
	*fds = t->nr_fds;
	mutex_unlock(&t->lock);
}

/* ---- closing ---- */

/* Takes the oldest idle file, if it is older than before_ns, for closing. */
static struct fs_file *close_start(struct file_table *t, uint64_t before_ns)
	REQUIRES(t->lock)
{
	struct fs_file *f;

	if (cds_list_empty(&t->idle))
		return NULL;
	f = cds_list_first_entry(&t->idle, struct fs_file, idle);
	if (f->used_ns > before_ns)
		return NULL;
	cds_list_del(&f->idle);
	f->closing = true;
	return f;
}

static void close_end(struct file_table *t, struct fs_file *f)
{
	fileio_close(f);
	close(f->fd);
	mutex_lock(&t->lock);
	cds_list_del(&f->bucket);
	t->nr_files--;
	t->nr_fds -= f->nr_fds;
	mutex_unlock(&t->lock);
	waitq_wake_all(&t->room);
	syncgroup_fini(&f->sync);
	mutex_fini(&f->lock);
	mem_free(f);
}

/* Takes an idle file that the host has no name of any more: it frees the space
 * of it no sooner than it is closed. Of the oldest, as many as may be looked at
 * while others wait. */
static struct fs_file *close_start_removed(struct file_table *t)
	REQUIRES(t->lock)
{
	unsigned looks = REMOVED_LOOKS;
	struct fs_file *f;
	struct stat st;

	cds_list_for_each_entry (f, &t->idle, idle) {
		if (!looks--)
			break;
		if (fstat(f->fd, &st) || st.st_nlink)
			continue;
		cds_list_del(&f->idle);
		f->closing = true;
		return f;
	}
	return NULL;
}

static bool close_removed(struct file_table *t)
{
	struct fs_file *f;

	mutex_lock(&t->lock);
	f = close_start_removed(t);
	mutex_unlock(&t->lock);
	if (f)
		close_end(t, f);
	return f;
}

/* Closes one idle file older than before_ns; false if there is none. */
static bool close_one(struct file_table *t, uint64_t before_ns)
{
	struct fs_file *f;

	mutex_lock(&t->lock);
	f = close_start(t, before_ns);
	mutex_unlock(&t->lock);
	if (f)
		close_end(t, f);
	return f;
}

static void keeper_run(void *arg)
{
	struct file_table *t = arg;
	uint64_t now;

	while (!atomic_load(&t->stopping)) {
		now = clock_ns();
		if (now > t->age_ns)
			while (close_one(t, now - t->age_ns))
				continue;
		while (close_removed(t))
			continue;
		(void)wait_event_until(&t->wake, atomic_load(&t->stopping),
				       clock_ns() + KEEPER_NS);
	}
}

/* ---- the table ---- */

static uint64_t default_fds(void)
{
	struct rlimit r;

	if (getrlimit(RLIMIT_NOFILE, &r))
		return FDS_MIN;
	return max_of((uint64_t)r.rlim_cur / 2, (uint64_t)FDS_MIN);
}

int file_table_create(uint64_t fds_max, uint64_t age_ns, struct tr_cache *cache,
		      struct file_table **out)
{
	struct file_table *t = mem_zalloc(sizeof(*t));
	int i, ret;

	if (!t)
		return -ENOMEM;
	mutex_init(&t->lock, LOCK_FILES);
	for (i = 0; i < FILE_BUCKETS; i++)
		CDS_INIT_LIST_HEAD(&t->buckets[i]);
	CDS_INIT_LIST_HEAD(&t->idle);
	t->fds_max = fds_max ? fds_max : default_fds();
	t->age_ns = age_ns;
	t->cache = cache;
	waitq_init(&t->room);
	waitq_init(&t->wake);
	ret = task_create(&t->keeper, "tr-files", keeper_run, t);
	if (ret) {
		mutex_fini(&t->lock);
		mem_free(t);
		return ret;
	}
	*out = t;
	return 0;
}

void file_table_destroy(struct file_table *t)
{
	atomic_store(&t->stopping, true);
	waitq_wake_all(&t->wake);
	task_join(t->keeper);
	while (close_one(t, UINT64_MAX))
		continue;
	assert(!t->nr_files);
	mutex_fini(&t->lock);
	mem_free(t);
}

/* ---- finding ---- */

enum found { FOUND, FOUND_CLOSING, FOUND_NONE };

static enum found take(struct file_table *t, const struct fs_volume *v,
		       const struct fs_handle *h, struct fs_file **out)
	REQUIRES(t->lock)
{
	struct cds_list_head *b = &t->buckets[handle_hash(h) % FILE_BUCKETS];
	struct fs_file *f;

	cds_list_for_each_entry (f, b, bucket) {
		if (f->volume != v || !handle_same(&f->handle, h))
			continue;
		if (f->closing)
			return FOUND_CLOSING;
		if (!f->refs++)
			cds_list_del(&f->idle);
		*out = f;
		return FOUND;
	}
	return FOUND_NONE;
}

static enum found take_unlocked(struct file_table *t, const struct fs_volume *v,
				const struct fs_handle *h, struct fs_file **out)
{
	enum found found;

	mutex_lock(&t->lock);
	found = take(t, v, h, out);
	mutex_unlock(&t->lock);
	return found;
}

struct fs_file *file_find(struct fs_server *fs, const struct fs_volume *v,
			  const struct fs_handle *handle)
{
	struct fs_file *f = NULL;

	(void)take_unlocked(fs->files, v, handle, &f);
	return f;
}

void file_put(struct fs_file *f)
{
	struct file_table *t;
	bool idle, full, gone;

	if (!f)
		return;
	t = f->table;
	mutex_lock(&t->lock);
	idle = !--f->refs;
	/* What has no name gives its space back at once. */
	gone = idle && atomic_load(&f->gone);
	f->closing = gone;
	if (idle && !gone) {
		f->used_ns = clock_ns();
		cds_list_add_tail(&f->idle, &t->idle);
	}
	full = t->nr_fds >= t->fds_max;
	mutex_unlock(&t->lock);
	if (gone)
		close_end(t, f);
	else if (idle && full)
		waitq_wake_all(&t->room);
}

/* Room for nr more descriptors, or an idle file closed to make it. */
static bool try_room(struct file_table *t, unsigned nr)
{
	bool room;

	do {
		mutex_lock(&t->lock);
		room = t->nr_fds + nr <= t->fds_max;
		if (room)
			t->nr_fds += nr;
		mutex_unlock(&t->lock);
	} while (!room && close_one(t, UINT64_MAX));
	return room;
}

static void give_room(struct file_table *t, unsigned nr)
{
	mutex_lock(&t->lock);
	t->nr_fds -= nr;
	mutex_unlock(&t->lock);
	waitq_wake_all(&t->room);
}

void file_count_fds(struct fs_file *f, int nr)
{
	struct file_table *t = f->table;

	if (nr > 0)
		wait_event(&t->room, try_room(t, (unsigned)nr));
	else
		give_room(t, (unsigned)-nr);
	mutex_lock(&t->lock);
	f->nr_fds = (unsigned)((int)f->nr_fds + nr);
	mutex_unlock(&t->lock);
}

static int file_create(struct file_table *t, struct fs_volume *v,
		       const struct fs_handle *h, int fd, struct fs_file **out)
{
	struct fs_file *f;
	struct stat st;

	if (fstat(fd, &st))
		return -errno;
	/* Somebody on the host still has it open; for clients it is gone. */
	if (!st.st_nlink)
		return -ESTALE;
	f = mem_zalloc(sizeof(*f));
	if (!f)
		return -ENOMEM;
	f->table = t;
	f->volume = v;
	f->handle = *h;
	f->fd = fd;
	f->ino = st.st_ino;
	f->type = st.st_mode & S_IFMT;
	atomic_init(&f->mode, st.st_mode & 07777);
	f->refs = 1;
	f->nr_fds = 1;
	mutex_init(&f->lock, LOCK_FILE);
	waitq_init(&f->changed);
	syncgroup_init(&f->sync);
	*out = f;
	return 0;
}

/* Inserts f unless another was quicker; then that one is taken instead. */
static bool try_insert(struct file_table *t, struct fs_file *f,
		       struct fs_file **out)
{
	struct cds_list_head *b =
		&t->buckets[handle_hash(&f->handle) % FILE_BUCKETS];
	enum found found;

	mutex_lock(&t->lock);
	found = take(t, f->volume, &f->handle, out);
	if (found == FOUND_NONE) {
		cds_list_add(&f->bucket, b);
		t->nr_files++;
		*out = f;
	}
	mutex_unlock(&t->lock);
	return found != FOUND_CLOSING;
}

static int open_new(struct file_table *t, struct fs_export *x,
		    const struct fs_handle *h, int fd, struct fs_file **out)
{
	struct fs_file *f = NULL;
	int ret;

	wait_event(&t->room, try_room(t, 1));
	if (fd < 0)
		fd = fs_export_open(x, h);
	ret = fd < 0 ? fd : file_create(t, x->volume, h, fd, &f);
	if (!ret)
		wait_event(&t->room, try_insert(t, f, out));
	if (!ret && *out == f)
		return 0;
	if (f) {
		syncgroup_fini(&f->sync);
		mutex_fini(&f->lock);
		mem_free(f);
	}
	if (fd >= 0)
		close(fd);
	give_room(t, 1);
	return ret;
}

int file_get(struct fs_server *fs, struct fs_export *x,
	     const struct fs_handle *handle, int fd, struct fs_file **out)
{
	struct file_table *t = fs->files;
	struct fs_file *f = NULL;
	enum found found;
	int ret = 0;

	wait_event(&t->room, (found = take_unlocked(t, x->volume, handle,
						    &f)) != FOUND_CLOSING);
	if (found == FOUND_NONE)
		ret = open_new(t, x, handle, fd, &f);
	else if (fd >= 0)
		close(fd);
	if (ret)
		return ret;
	if (atomic_load(&f->gone)) {
		file_put(f);
		return -ESTALE;
	}
	*out = f;
	return 0;
}

/* ---- one at a time ---- */

static bool try_busy(struct fs_file *f)
{
	bool mine;

	mutex_lock(&f->lock);
	mine = !f->busy;
	f->busy = true;
	mutex_unlock(&f->lock);
	return mine;
}

void file_busy_start(struct fs_file *f)
{
	wait_event(&f->changed, try_busy(f));
}

void file_busy_end(struct fs_file *f)
{
	mutex_lock(&f->lock);
	f->busy = false;
	mutex_unlock(&f->lock);
	waitq_wake_all(&f->changed);
}

void file_busy_start2(struct fs_file *a, struct fs_file *b)
{
	file_busy_start(a < b ? a : b);
	if (a != b)
		file_busy_start(a < b ? b : a);
}

void file_busy_end2(struct fs_file *a, struct fs_file *b)
{
	file_busy_end(a);
	if (a != b)
		file_busy_end(b);
}

static int sync_fd(void *arg)
{
	struct fs_file *f = arg;
	char path[32];
	int fd, ret;

	snprintf(path, sizeof(path), "/proc/self/fd/%d", f->fd);
	fd = open(path, O_RDONLY | O_NONBLOCK | O_NOCTTY | O_CLOEXEC);
	if (fd < 0)
		return -errno;
	ret = fsync(fd) ? -errno : 0;
	close(fd);
	return ret;
}

int file_sync_host(struct fs_file *f)
{
	/* What has no data has its inode made durable with its directory. */
	if (f->type != S_IFREG && f->type != S_IFDIR)
		return 0;
	return syncgroup_sync(&f->sync, sync_fd, f);
}

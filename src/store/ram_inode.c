/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * Files of the emulated device: hash tables of blocks.
 *
 * A block that never was written is not there and reads as zeros. The first
 * change of a block after a sync puts its old content aside (unit_save);
 * ram_inode_sync() forgets what was put aside, ram_inode_crash() chooses
 * between it and the new content. The choice depends on the seed, the number
 * of the crash, the file and the block only, so that threads that write in
 * another order do not change it.
 *
 * Failure modes: no memory and no space, both of single blocks; a write that
 * meets them in its middle is short.
 *
 * Invariants: a unit exists only if it has content or is unsynced; cur is
 * counted in disk->used exactly while it exists; bytes of cur beyond the
 * file's size are zeros.
 */
#include "store/ram_inode.h"

#include "base/mem.h"
#include "base/rng.h"

#include <errno.h>
#include <string.h>
#include <unistd.h>

#define BUCKETS_MIN 64

struct ram_unit {
	struct ram_unit *next;
	uint64_t idx; /* block number */
	unsigned char *cur; /* NULL: a hole */
	unsigned char *stable; /* if unsynced: on the medium; NULL: a hole */
	bool unsynced;
};

/* A place in a vector. */
struct cursor {
	const struct iovec *iov;
	size_t done; /* of *iov */
};

struct ram_inode *ram_inode_create(struct ram_disk *disk, const char *name,
				   uint64_t ino)
{
	struct ram_inode *inode = mem_zalloc(sizeof(*inode));

	if (!inode)
		return NULL;
	inode->disk = disk;
	inode->ino = ino;
	inode->name = mem_strdup(name);
	inode->buckets = mem_zalloc_array(BUCKETS_MIN, sizeof(void *));
	inode->nr_buckets = BUCKETS_MIN;
	if (!inode->name || !inode->buckets) {
		mem_free(inode->name);
		mem_free(inode->buckets);
		mem_free(inode);
		return NULL;
	}
	return inode;
}

static struct ram_unit **bucket_of(struct ram_inode *inode, uint64_t idx)
{
	uint64_t hash = idx * 0x9e3779b97f4a7c15ull;

	return &inode->buckets[(hash >> 32) & (inode->nr_buckets - 1)];
}

static struct ram_unit *unit_find(struct ram_inode *inode, uint64_t idx)
{
	struct ram_unit *unit = *bucket_of(inode, idx);

	while (unit && unit->idx != idx)
		unit = unit->next;
	return unit;
}

/* Doubles the table; without memory for it chains just grow longer. */
static void table_grow(struct ram_inode *inode)
{
	struct ram_unit **old = inode->buckets, *unit, **head;
	uint64_t i, nr_old = inode->nr_buckets;
	struct ram_unit **new = mem_zalloc_array(2 * nr_old, sizeof(*new));

	if (!new)
		return;
	inode->buckets = new;
	inode->nr_buckets = 2 * nr_old;
	for (i = 0; i < nr_old; i++) {
		while ((unit = old[i])) {
			old[i] = unit->next;
			head = bucket_of(inode, unit->idx);
			unit->next = *head;
			*head = unit;
		}
	}
	mem_free(old);
}

static struct ram_unit *unit_get(struct ram_inode *inode, uint64_t idx)
{
	struct ram_unit *unit = unit_find(inode, idx), **head;

	if (unit)
		return unit;
	unit = mem_zalloc(sizeof(*unit));
	if (!unit)
		return NULL;
	if (inode->nr_units >= 2 * inode->nr_buckets)
		table_grow(inode);
	head = bucket_of(inode, idx);
	unit->idx = idx;
	unit->next = *head;
	*head = unit;
	inode->nr_units++;
	return unit;
}

static void unit_drop_cur(struct ram_inode *inode, struct ram_unit *unit)
{
	if (!unit->cur)
		return;
	mem_free(unit->cur);
	unit->cur = NULL;
	inode->disk->used -= inode->disk->block;
}

/* Unlinks and frees *link if nothing depends on it; else moves link on. */
static struct ram_unit **unit_reap(struct ram_inode *inode,
				   struct ram_unit **link)
{
	struct ram_unit *unit = *link;

	if (unit->cur || unit->unsynced)
		return &unit->next;
	*link = unit->next;
	inode->nr_units--;
	mem_free(unit->stable);
	mem_free(unit);
	return link;
}

/* Calls fn on every unit; it may take the content away. */
static int units_each(struct ram_inode *inode,
		      int (*fn)(struct ram_inode *inode, struct ram_unit *unit,
				const void *arg),
		      const void *arg)
{
	struct ram_unit **link;
	int err, result = 0;
	uint64_t i;

	for (i = 0; i < inode->nr_buckets; i++) {
		link = &inode->buckets[i];
		while (*link) {
			err = fn(inode, *link, arg);
			if (err)
				result = err;
			link = unit_reap(inode, link);
		}
	}
	return result;
}

static int unit_forget(struct ram_inode *inode, struct ram_unit *unit,
		       const void *arg)
{
	unit_drop_cur(inode, unit);
	unit->unsynced = false;
	return 0;
}

void ram_inode_destroy(struct ram_inode *inode)
{
	(void)units_each(inode, unit_forget, NULL);
	mem_free(inode->buckets);
	mem_free(inode->name);
	mem_free(inode);
}

/* Before content changes: puts it aside for a crash to come back to. */
static int unit_save(struct ram_inode *inode, struct ram_unit *unit)
{
	if (unit->unsynced)
		return 0;
	if (unit->cur) {
		unit->stable = mem_alloc(inode->disk->block);
		if (!unit->stable)
			return -ENOMEM;
		memcpy(unit->stable, unit->cur, inode->disk->block);
	}
	unit->unsynced = true;
	return 0;
}

static int unit_fill(struct ram_inode *inode, struct ram_unit *unit)
{
	struct ram_disk *disk = inode->disk;

	if (unit->cur)
		return 0;
	if (disk->capacity && disk->used + disk->block > disk->capacity)
		return -ENOSPC;
	unit->cur = mem_zalloc(disk->block);
	if (!unit->cur)
		return -ENOMEM;
	disk->used += disk->block;
	return 0;
}

/* Makes the unit of idx ready to be changed. */
static int unit_prepare(struct ram_inode *inode, uint64_t idx, bool unsynced,
			struct ram_unit **out)
{
	struct ram_unit *unit = unit_get(inode, idx);
	int err;

	if (!unit)
		return -ENOMEM;
	err = unsynced ? unit_save(inode, unit) : 0;
	if (!err)
		err = unit_fill(inode, unit);
	if (!err)
		*out = unit;
	return err;
}

static void size_set(struct ram_inode *inode, int64_t size, bool unsynced)
{
	if (unsynced && !inode->size_unsynced) {
		inode->stable_size = inode->size;
		inode->size_unsynced = true;
	}
	inode->size = size;
}

/* Copies len bytes between p and the cursor; p NULL: zeros to it. */
static void cursor_copy(struct cursor *c, unsigned char *p, size_t len,
			bool from_vector)
{
	unsigned char *v;
	size_t n;

	while (len) {
		while (c->done == c->iov->iov_len) {
			c->iov++;
			c->done = 0;
		}
		n = min_of(len, c->iov->iov_len - c->done);
		v = (unsigned char *)c->iov->iov_base + c->done;
		if (from_vector)
			memcpy(p, v, n);
		else if (p)
			memcpy(v, p, n);
		else
			memset(v, 0, n);
		p = p ? p + n : NULL;
		c->done += n;
		len -= n;
	}
}

ssize_t ram_inode_read(struct ram_inode *inode, const struct iovec *iov,
		       int64_t off, size_t len)
{
	uint32_t block = inode->disk->block;
	struct cursor c = { iov, 0 };
	struct ram_unit *unit;
	size_t done, n, start;

	if (off >= inode->size)
		return 0;
	len = min_of(len, (size_t)(inode->size - off));
	for (done = 0; done < len; done += n) {
		start = (off + done) & (block - 1);
		n = min_of(len - done, block - start);
		unit = unit_find(inode, (off + done) / block);
		cursor_copy(&c, unit && unit->cur ? unit->cur + start : NULL, n,
			    false);
	}
	return done;
}

ssize_t ram_inode_write(struct ram_inode *inode, const struct iovec *iov,
			int64_t off, size_t len, bool unsynced)
{
	uint32_t block = inode->disk->block;
	struct cursor c = { iov, 0 };
	struct ram_unit *unit;
	size_t done, n, start;
	int err = 0;

	for (done = 0; done < len; done += n) {
		start = (off + done) & (block - 1);
		n = min_of(len - done, block - start);
		err = unit_prepare(inode, (off + done) / block, unsynced,
				   &unit);
		if (err)
			break;
		cursor_copy(&c, unit->cur + start, n, true);
	}
	if (done && (int64_t)(off + done) > inode->size)
		size_set(inode, off + done, unsynced);
	return done ? (ssize_t)done : err;
}

/* Zeros from byte start of the block to its byte end. */
static int unit_zero(struct ram_inode *inode, struct ram_unit *unit,
		     size_t start, size_t end)
{
	int err;

	if (!unit->cur)
		return 0;
	if (start == 0 && end == inode->disk->block) {
		if (inode->disk->volatile_cache && !unit->unsynced) {
			unit->stable = unit->cur;
			unit->cur = NULL;
			unit->unsynced = true;
			inode->disk->used -= inode->disk->block;
		}
		unit_drop_cur(inode, unit);
		return 0;
	}
	err = inode->disk->volatile_cache ? unit_save(inode, unit) : 0;
	if (!err)
		memset(unit->cur + start, 0, end - start);
	return err;
}

static int unit_cut(struct ram_inode *inode, struct ram_unit *unit,
		    const void *arg)
{
	int64_t size = *(const int64_t *)arg;
	uint32_t block = inode->disk->block;
	int64_t start = unit->idx * block;

	/* start + block may be past INT64_MAX. */
	if (size >= start && size - start >= block)
		return 0;
	return unit_zero(inode, unit, size > start ? size - start : 0, block);
}

int ram_inode_truncate(struct ram_inode *inode, int64_t size)
{
	int err = 0;

	if (size < inode->size)
		err = units_each(inode, unit_cut, &size);
	if (!err && size != inode->size)
		size_set(inode, size, inode->disk->volatile_cache);
	return err;
}

struct hole {
	int64_t off, end;
};

static int unit_punch(struct ram_inode *inode, struct ram_unit *unit,
		      const void *arg)
{
	const struct hole *hole = arg;
	uint32_t block = inode->disk->block;
	int64_t start = unit->idx * block;
	int64_t from = max_of(hole->off - start, (int64_t)0);
	int64_t to = min_of(hole->end - start, (int64_t)block);

	return from < to ? unit_zero(inode, unit, from, to) : 0;
}

int ram_inode_punch(struct ram_inode *inode, int64_t off, int64_t len)
{
	struct hole hole = { off, INT64_MAX };

	if (len < INT64_MAX - off)
		hole.end = off + len;
	return units_each(inode, unit_punch, &hole);
}

int ram_inode_allocate(struct ram_inode *inode, int64_t off, int64_t len)
{
	uint32_t block = inode->disk->block;
	struct ram_unit *unit;
	uint64_t idx;
	int err;

	for (idx = off / block; idx <= (uint64_t)(off + len - 1) / block;
	     idx++) {
		err = unit_prepare(inode, idx, inode->disk->volatile_cache,
				   &unit);
		if (err)
			return err;
	}
	return 0;
}

static bool has_data(struct ram_inode *inode, uint64_t idx)
{
	struct ram_unit *unit = unit_find(inode, idx);

	return unit && unit->cur;
}

/* The first block with data at or after idx; UINT64_MAX: none. */
static uint64_t next_data(struct ram_inode *inode, uint64_t idx)
{
	uint64_t best = UINT64_MAX, i;
	struct ram_unit *unit;

	for (i = 0; i < inode->nr_buckets; i++) {
		for (unit = inode->buckets[i]; unit; unit = unit->next) {
			if (unit->cur && unit->idx >= idx && unit->idx < best)
				best = unit->idx;
		}
	}
	return best;
}

int ram_inode_seek(struct ram_inode *inode, int64_t off, int whence,
		   int64_t *out)
{
	uint32_t block = inode->disk->block;
	uint64_t idx;

	if (whence != SEEK_DATA && whence != SEEK_HOLE)
		return -EINVAL;
	if (off < 0 || off >= inode->size)
		return -ENXIO;
	idx = off / block;
	if (whence == SEEK_DATA) {
		idx = next_data(inode, idx);
		if (idx == UINT64_MAX || (int64_t)(idx * block) >= inode->size)
			return -ENXIO;
		*out = max_of(off, (int64_t)(idx * block));
		return 0;
	}
	while ((int64_t)(idx * block) < inode->size && has_data(inode, idx))
		idx++;
	off = max_of(off, (int64_t)(idx * block));
	*out = min_of(off, inode->size);
	return 0;
}

static int unit_sync(struct ram_inode *inode, struct ram_unit *unit,
		     const void *arg)
{
	mem_free(unit->stable);
	unit->stable = NULL;
	unit->unsynced = false;
	return 0;
}

void ram_inode_sync(struct ram_inode *inode)
{
	(void)units_each(inode, unit_sync, NULL);
	inode->size_unsynced = false;
}

static void chance_init(struct ram_inode *inode, uint64_t idx, struct rng *rng)
{
	rng_seed(rng, inode->disk->seed ^
			      (inode->disk->crashes * 0x9e3779b97f4a7c15ull) ^
			      (inode->ino * 0xbf58476d1ce4e5b9ull) ^
			      (idx * 0x94d049bb133111ebull));
}

/* Mixes sectors of the old content into the new. */
static void unit_tear(struct ram_inode *inode, struct ram_unit *unit,
		      struct rng *rng)
{
	uint32_t sector = inode->disk->sector, i;

	for (i = 0; i < inode->disk->block; i += sector) {
		if (rng_below(rng, 2))
			continue;
		if (unit->stable)
			memcpy(unit->cur + i, unit->stable + i, sector);
		else
			memset(unit->cur + i, 0, sector);
	}
}

static int unit_crash(struct ram_inode *inode, struct ram_unit *unit,
		      const void *arg)
{
	struct rng rng;
	uint64_t choice;

	if (!unit->unsynced)
		return 0;
	chance_init(inode, unit->idx, &rng);
	choice = rng_below(&rng, 3);
	if (choice == 2 && unit->cur) {
		unit_tear(inode, unit, &rng);
	} else if (choice != 0) {
		unit_drop_cur(inode, unit);
		unit->cur = unit->stable;
		unit->stable = NULL;
		if (unit->cur)
			inode->disk->used += inode->disk->block;
	}
	return unit_sync(inode, unit, NULL);
}

/* After a crash: nothing may stand beyond the size that it left. */
static int unit_trim(struct ram_inode *inode, struct ram_unit *unit,
		     const void *arg)
{
	int64_t size = *(const int64_t *)arg;
	uint32_t block = inode->disk->block;
	int64_t start = unit->idx * block;

	if (size <= start)
		unit_drop_cur(inode, unit);
	else if (size - start < block && unit->cur)
		memset(unit->cur + (size - start), 0, block - (size - start));
	return 0;
}

void ram_inode_crash(struct ram_inode *inode)
{
	struct rng rng;

	chance_init(inode, UINT64_MAX, &rng);
	if (inode->size_unsynced && rng_below(&rng, 2))
		inode->size = inode->stable_size;
	(void)units_each(inode, unit_crash, NULL);
	(void)units_each(inode, unit_trim, &inode->size);
	inode->size_unsynced = false;
}

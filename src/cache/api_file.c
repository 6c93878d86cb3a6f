/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * The public calls for durability, size and mapped access: arguments checked,
 * then passed on.
 */
#include "cache/cache.h"
#include "cache/file.h"
#include "cache/invalidate.h"
#include "cache/map.h"

#include <errno.h>
#include <fcntl.h>
#include <unistd.h>

static int check_open(struct tr_file *f, bool to_write)
{
	if (!f)
		return -EINVAL;
	if (!file_is_open(f))
		return -EBADF;
	return to_write && f->flags == O_RDONLY ? -EBADF : 0;
}

static bool range_ok(int64_t off, int64_t len)
{
	return off >= 0 && len >= 0;
}

/* ---- durability ---- */

int tr_fsync_range(struct tr_file *f, int64_t off, int64_t len, unsigned flags)
{
	int err = check_open(f, false);

	if (err)
		return err;
	if (!range_ok(off, len) || (flags != TR_DSYNC && flags != TR_SYNC))
		return -EINVAL;
	err = cache_sync_range(f->m, off, len, flags == TR_SYNC);
	return file_told_error(f) ?: err;
}

int tr_fsync(struct tr_file *f)
{
	return tr_fsync_range(f, 0, 0, TR_SYNC);
}

int tr_fdatasync(struct tr_file *f)
{
	return tr_fsync_range(f, 0, 0, TR_DSYNC);
}

uint64_t tr_file_loss_generation(struct tr_file *f)
{
	return check_open(f, false) ? 0 : atomic_load(&f->m->loss);
}

/* ---- size and space ---- */

int tr_truncate(struct tr_file *f, int64_t size)
{
	int err = check_open(f, true);

	if (err)
		return err;
	return size < 0 ? -EINVAL : cache_truncate(f->m, size);
}

int tr_punch(struct tr_file *f, int64_t off, int64_t len)
{
	int err = check_open(f, true);

	if (err)
		return err;
	if (!range_ok(off, len) || !len)
		return -EINVAL;
	return cache_punch(f->m, off, len);
}

int tr_allocate(struct tr_file *f, int64_t off, int64_t len, bool keep_size)
{
	int err = check_open(f, true);

	if (err)
		return err;
	if (!range_ok(off, len) || !len)
		return -EINVAL;
	if (len > TR_OFFSET_MAX - off)
		return -EFBIG;
	return cache_allocate(f->m, off, len, keep_size);
}

int64_t tr_seek(struct tr_file *f, int64_t off, int whence)
{
	int err = check_open(f, false);

	if (err)
		return err;
	if (whence != SEEK_DATA && whence != SEEK_HOLE)
		return -EINVAL;
	return off < 0 ? -ENXIO : cache_seek(f->m, off, whence);
}

int tr_invalidate(struct tr_file *f, int64_t off, int64_t len)
{
	int err = check_open(f, false);
	int64_t last;

	if (err)
		return err;
	if (!range_ok(off, len))
		return -EINVAL;
	last = len && len <= TR_OFFSET_MAX - off ? off + len - 1
						 : TR_OFFSET_MAX;
	return cache_invalidate(f->m, off >> PAGE_SHIFT, last >> PAGE_SHIFT,
				false);
}

/* ---- mapped access ---- */

int tr_map(struct tr_file *f, int64_t off, struct tr_map **out, void **addr,
	   size_t *len)
{
	struct tr_map *map;
	int err = check_open(f, false);

	if (err)
		return err;
	if (off < 0 || !out || !addr || !len)
		return -EINVAL;
	err = cache_map(f->m, off, &map);
	if (err)
		return err;
	*out = map;
	*addr = cache_map_addr(map, off, len);
	return 0;
}

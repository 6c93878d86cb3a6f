/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * The public calls on files: arguments are checked here, once; what they stand
 * on takes them for granted. A front end that has its own mapping (fs/) calls
 * the functions of cache/io.h.
 */
#include "base/mem.h"
#include "cache/gift.h"
#include "cache/cache.h"
#include "cache/file.h"
#include "cache/invalidate.h"
#include "cache/map.h"
#include "writeback/flush.h"

#include <errno.h>
#include <fcntl.h>

#define OPEN_FLAGS (O_ACCMODE | O_CREAT | O_EXCL | O_TRUNC | O_CLOEXEC)
#define READ_FLAGS (TR_DONTCACHE | TR_DIRECT | TR_NOWAIT)
#define WRITE_FLAGS                                                            \
	(TR_DONTCACHE | TR_DIRECT | TR_DSYNC | TR_SYNC | TR_NOWAIT | TR_APPEND)

/* ---- opening and closing ---- */

static struct tr_file *get_file(struct tr_cache *c)
{
	struct tr_file *f = NULL;

	mutex_lock(&c->lock);
	/* Oldest first, so that a late use finds it closed for long. */
	if (c->nr_files > FILES_KEPT) {
		f = cds_list_first_entry(&c->files, struct tr_file, node);
		cds_list_del(&f->node);
		c->nr_files--;
	}
	mutex_unlock(&c->lock);
	return f ?: mem_zalloc(sizeof(*f));
}

static void keep_file(struct tr_file *f)
{
	struct tr_cache *c = f->cache;

	mutex_lock(&c->lock);
	cds_list_add_tail(&f->node, &c->files);
	c->nr_files++;
	mutex_unlock(&c->lock);
}

int cache_file_open(struct tr_cache *c, struct tr_store *store,
		    struct tr_store_file *sf, int flags, struct tr_file **out)
{
	struct bdi *bdi;
	struct tr_file *f;
	int err = cache_bdi(c, store, &bdi);

	if (err) {
		store->ops->close(sf);
		return err;
	}
	f = get_file(c);
	if (!f) {
		store->ops->close(sf);
		return -ENOMEM;
	}
	f->cache = c;
	err = mapping_open(c, bdi, sf, &f->m);
	if (err) {
		keep_file(f);
		return err;
	}
	f->flags = flags & O_ACCMODE;
	atomic_store(&f->err_seen, err_sample(f->m));
	atomic_store(&f->ra.next, 0);
	atomic_store(&f->ra.window, 0);
	atomic_store(&f->open, FILE_OPEN);
	*out = f;
	return 0;
}

/*
 * Openings share the store's file, and writing partial blocks needs reading:
 * so it is opened for both if it can be, whatever the caller wants. The cache
 * does the truncation.
 */
static int open_store(struct tr_store *store, const char *name, int flags,
		      mode_t mode, struct tr_store_file **out)
{
	int rest = flags & ~(O_ACCMODE | O_TRUNC);
	int err = store->ops->open(store, name, rest | O_RDWR, mode, out);

	if ((flags & O_ACCMODE) == O_RDONLY &&
	    (err == -EACCES || err == -EPERM || err == -EROFS ||
	     err == -ETXTBSY))
		err = store->ops->open(store, name, rest, mode, out);
	return err;
}

int tr_file_open(struct tr_cache *c, struct tr_store *store, const char *name,
		 int flags, mode_t mode, struct tr_file **out)
{
	struct tr_store_file *sf;
	struct tr_file *f;
	int err;

	if (!c || !store || !name || !out || flags & ~OPEN_FLAGS ||
	    (flags & O_ACCMODE) == O_ACCMODE)
		return -EINVAL;
	err = open_store(store, name, flags, mode, &sf);
	if (err)
		return err;
	err = cache_file_open(c, store, sf, flags, &f);
	if (err)
		return err;
	atomic_store(&f->m->sets_mtime, true);
	if (flags & O_TRUNC && (flags & O_ACCMODE) != O_RDONLY)
		err = cache_truncate(f->m, 0);
	if (err)
		(void)tr_file_close(f);
	else
		*out = f;
	return err;
}

int file_told_error(struct tr_file *f)
{
	uint32_t seen = atomic_load(&f->err_seen);
	int err = err_check(f->m, &seen);

	atomic_store(&f->err_seen, seen);
	return err;
}

int tr_file_close(struct tr_file *f)
{
	unsigned open = FILE_OPEN;
	struct mapping *m;
	int err = 0;

	if (!f)
		return -EINVAL;
	if (!atomic_compare_exchange_strong(&f->open, &open, 0))
		return -EBADF;
	m = f->m;
	if (!mapping_close(m)) {
		err = flush_edges_of(m);
		mapping_settle_mtime(m);
		/* What was in use when its writeback ended is the flusher's to
		 * drop, soon; nobody uses it now. */
		(void)wb_run_drops(m->bdi->root);
		/* Or being listed alone would keep the store's file open. */
		wb_unlist(m);
	}
	err = file_told_error(f) ?: err;
	mapping_put(m);
	idle_shed_surplus(f->cache);
	keep_file(f);
	return err;
}

void cache_file_forget(struct tr_file *f)
{
	(void)cache_invalidate(f->m, 0, INDEX_MAX, false);
	wb_unlist(f->m);
}

void cache_file_cancel(struct tr_file *f)
{
	cache_cancel(f->m);
	wb_unlist(f->m);
}

struct mapping *cache_file_mapping(struct tr_file *f)
{
	return f->m;
}

int tr_file_attr(struct tr_file *f, struct tr_file_attr *out)
{
	struct tr_file_attr a = { 0 };
	struct mapping *m;
	int64_t ns;

	if (!f || !out)
		return -EINVAL;
	if (!file_is_open(f))
		return -EBADF;
	m = f->m;
	a.size = mapping_size(m);
	a.block = m->attr.block;
	a.unit = m->unit;
	a.offset_align = m->attr.offset_align;
	a.mem_align = m->attr.mem_align;
	a.read_align = m->attr.read_align;
	a.mtime = m->attr.mtime;
	ns = atomic_load(&m->mtime_ns);
	if (ns) {
		a.mtime.tv_sec = ns / 1000000000;
		a.mtime.tv_nsec = ns % 1000000000;
	}
	a.edges = atomic_load(&m->nr_edges);
	mutex_lock(&m->index_lock);
	a.cached_pages = m->index.nr_pages;
	mutex_unlock(&m->index_lock);
	a.dirty_pages = mapping_dirty_pages(m);
	*out = a;
	return 0;
}

/* ---- reading ---- */

static bool iov_ok(const struct iovec *iov, int nr)
{
	size_t len = 0;

	if (nr < 0 || (nr && !iov) || nr > TR_IO_IOV_MAX)
		return false;
	for (int i = 0; i < nr; i++)
		if ((iov[i].iov_len && !iov[i].iov_base) ||
		    __builtin_add_overflow(len, iov[i].iov_len, &len) ||
		    len > INT64_MAX)
			return false;
	return true;
}

/* Whether offset, length and every vector fit the store's alignments. */
static bool is_aligned(const struct mapping *m, const struct iovec *iov, int nr,
		       int64_t off, size_t len, uint32_t off_align)
{
	uint32_t mem = m->attr.mem_align ?: 1;

	if (!off_align || off % off_align || len % off_align)
		return false;
	for (int i = 0; i < nr; i++)
		if ((uintptr_t)iov[i].iov_base % mem || iov[i].iov_len % mem)
			return false;
	return true;
}

ssize_t tr_readv(struct tr_file *f, const struct iovec *iov, int nr,
		 int64_t off, unsigned flags)
{
	struct iter it = { .iov = iov, .nr = nr };
	size_t len;

	if (!f || !iov_ok(iov, nr) || off < 0 || flags & ~READ_FLAGS)
		return -EINVAL;
	if (!file_is_open(f) || f->flags == O_WRONLY)
		return -EBADF;
	len = iov_total(iov, nr);
	if (!len)
		return 0;
	if (!(flags & TR_DIRECT))
		return cache_read(f->m, &f->ra, &it, off, len, flags);
	if (!is_aligned(f->m, iov, nr, off, len, f->m->attr.read_align))
		return -EINVAL;
	return cache_read_direct(f->m, &it, off, len, flags);
}

ssize_t tr_read(struct tr_file *f, void *buf, size_t len, int64_t off,
		unsigned flags)
{
	struct iovec iov = { buf, len };

	return tr_readv(f, &iov, 1, off, flags);
}

/* ---- writing ---- */

/* What tr_write_segments() and the single writes share: one logical write. */
struct write {
	struct tr_file *f;
	struct tr_segment *segments;
	int nr;
	struct gift *gift;
	unsigned flags; /* of the whole */
	bool inside; /* the gate is held exclusively */
	unsigned long loss; /* the loss generation before it */
};

static int check_segment(struct tr_file *f, const struct tr_segment *s,
			 int64_t off, size_t len)
{
	if (s->flags & ~(TR_DONTCACHE | TR_DIRECT) ||
	    !iov_ok(s->iov, s->nr_iov))
		return -EINVAL;
	if (s->flags & TR_DIRECT && len &&
	    !is_aligned(f->m, s->iov, s->nr_iov, off, len,
			f->m->attr.offset_align))
		return -EINVAL;
	return 0;
}

/* Checks all before anything is written. */
static int check_write(struct write *w, int64_t off, size_t *total)
{
	*total = 0;
	for (int i = 0; i < w->nr; i++) {
		struct tr_segment *s = &w->segments[i];
		size_t len;

		if (!iov_ok(s->iov, s->nr_iov))
			return -EINVAL;
		len = iov_total(s->iov, s->nr_iov);
		if (len > (uint64_t)(TR_OFFSET_MAX - off) - *total)
			return -EFBIG;
		if (check_segment(w->f, s, off + *total, len))
			return -EINVAL;
		*total += len;
		s->fell_back = false;
	}
	return 0;
}

static ssize_t write_segment(struct write *w, struct tr_segment *s, int64_t off,
			     size_t len)
{
	struct iter it = { .iov = s->iov, .nr = s->nr_iov, .gift = w->gift };
	unsigned flags = s->flags | (w->flags & TR_NOWAIT);
	struct mapping *m = w->f->m;

	if (s->flags & TR_DONTCACHE &&
	    (w->nr > 1 || w->flags & (TR_DSYNC | TR_SYNC)))
		flags |= IO_DEFER;
	/* Whoever appends excludes others, so the cache serves it. */
	if (w->inside) {
		s->fell_back = s->flags & TR_DIRECT;
		return cache_write(m, &it, off, len,
				   (flags & ~TR_DIRECT) | IO_INSIDE);
	}
	if (s->flags & TR_DIRECT)
		return cache_write_direct(m, &it, off, len, flags,
					  &s->fell_back);
	return cache_write(m, &it, off, len, flags);
}

/* Syncs what was written and ends the segments' edges, whatever comes of it. */
static ssize_t end_write(struct write *w, int64_t off, ssize_t done)
{
	bool sync = w->flags & (TR_DSYNC | TR_SYNC), kick = false;
	struct mapping *m = w->f->m;
	size_t at = 0;
	int err = 0;

	if (sync)
		err = cache_sync_range(m, off, done, w->flags & TR_SYNC);
	/* What was lost before the sync began left nothing for it to do. */
	if (sync && !err && atomic_load(&m->loss) != w->loss)
		err = err_last(m) ?: -EIO;
	for (int i = 0; i < w->nr && at < (size_t)done; i++) {
		struct tr_segment *s = &w->segments[i];
		size_t len = iov_total(s->iov, s->nr_iov);

		len = min_of(len, (size_t)done - at);
		if (s->flags & TR_DONTCACHE && (w->nr > 1 || sync)) {
			cache_write_end(m, off + at, len);
			/* A segment that stayed direct left nothing. */
			kick |= !(s->flags & TR_DIRECT) || s->fell_back;
		}
		at += len;
	}
	if (kick && !sync)
		cache_kick(m);
	if (err)
		(void)file_told_error(w->f);
	return err ?: done;
}

static ssize_t do_write(struct write *w, int64_t off)
{
	struct mapping *m = w->f->m;
	size_t done = 0, total;
	ssize_t n = 0;
	int err;

	if (w->inside)
		off = mapping_size(m);
	err = check_write(w, off, &total);
	if (err || !total)
		return err;
	mapping_touch(m);
	w->loss = atomic_load(&m->loss);
	for (int i = 0; i < w->nr; i++) {
		struct tr_segment *s = &w->segments[i];
		size_t len = iov_total(s->iov, s->nr_iov);

		if (!len)
			continue;
		n = write_segment(w, s, off + done, len);
		if (n > 0)
			done += n;
		if (n < (ssize_t)len)
			break;
	}
	if (w->inside)
		gate_open(m);
	w->inside = false;
	/* After progress what was written counts. */
	return done ? end_write(w, off, done) : n;
}

static ssize_t write_segments(struct tr_file *f, struct gift *gift,
			      struct tr_segment *segments, int nr, int64_t off,
			      unsigned flags)
{
	struct write w = { .f = f,
			   .segments = segments,
			   .nr = nr,
			   .gift = gift,
			   .flags = flags };
	ssize_t n;

	if (!f || nr < 0 || (nr && !segments) || off < 0 ||
	    flags & ~(WRITE_FLAGS & ~(TR_DONTCACHE | TR_DIRECT)) ||
	    (flags & TR_NOWAIT && flags & (TR_DSYNC | TR_SYNC | TR_APPEND)))
		return -EINVAL;
	if (!file_is_open(f) || f->flags == O_RDONLY)
		return -EBADF;
	if (flags & TR_APPEND) {
		/* Where end of file is must not change until it is written. */
		gate_close(f->m);
		w.inside = true;
	}
	n = do_write(&w, off);
	if (w.inside)
		gate_open(f->m);
	return n;
}

ssize_t tr_write_segments(struct tr_file *f, struct tr_segment *segments,
			  int nr, int64_t off, unsigned flags)
{
	return write_segments(f, NULL, segments, nr, off, flags);
}

ssize_t gift_writev(struct tr_file *f, struct gift *gift,
		    const struct iovec *iov, int nr, int64_t off,
		    unsigned flags)
{
	struct tr_segment s = { .iov = iov,
				.nr_iov = nr,
				.flags = flags & (TR_DONTCACHE | TR_DIRECT) };

	if (flags & ~WRITE_FLAGS || !iov_ok(iov, nr))
		return -EINVAL;
	return write_segments(f, gift, &s, 1, off,
			      flags & ~(TR_DONTCACHE | TR_DIRECT));
}

ssize_t tr_writev(struct tr_file *f, const struct iovec *iov, int nr,
		  int64_t off, unsigned flags)
{
	return gift_writev(f, NULL, iov, nr, off, flags);
}

ssize_t tr_write(struct tr_file *f, const void *buf, size_t len, int64_t off,
		 unsigned flags)
{
	struct iovec iov = { (void *)buf, len };

	return tr_writev(f, &iov, 1, off, flags);
}

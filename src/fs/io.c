/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * READ, WRITE and COMMIT.
 *
 * Happy path of a WRITE: rights (remembered for a second), the mode in force,
 * the cut in direct modes, one call into the cache that writes the segments and
 * syncs once, size and times in one step, the reply's facts.
 *
 * Failure modes: a write error is the answer; it is also noted for every other
 * client with unstable writes here, and a risen loss generation changes the
 * export's verifier before the reply that tells of it.
 *
 * Invariant: committed is never less than what was asked for, and on a sync
 * export never more than what was done.
 */
#include "fs/io.h"

#include "base/trace.h"
#include "fs/fileio.h"
#include "fs/setattr.h"
#include "fs/split.h"

#include <assert.h>
#include <errno.h>
#include <string.h>

static uint32_t fh_hash(const struct fs_file *f)
{
	return (uint32_t)handle_hash(&f->handle);
}

#define TRACE_IO(name, o, n)                                                   \
	TRACE(name, .xid = r->xid, .fh_hash = fh_hash(f),                      \
	      .offset = (uint64_t)(o), .len = (uint64_t)(n))

/* Points that each call passes once, however often it is tried. */
#define TRACED_START 1u
#define TRACED_OPENED 2u

#define TRACE_IO_ONCE(bit, name, o, n)                                         \
	do {                                                                   \
		if (!(*r->traced & (bit)))                                     \
			TRACE_IO(name, o, n);                                  \
		*r->traced |= (bit);                                           \
	} while (0)

/* ---- reading ---- */

/* The window of a direct READ, or false: it goes through the cache. */
static bool direct_window(struct tr_file *io, const struct fs_read *rd,
			  int64_t *off, size_t *len, size_t *before)
{
	struct fileio_facts a;

	fileio_facts(io, &a);
	if (!a.read_align || a.read_align > FS_READ_ALIGN_MAX ||
	    rd->count < a.read_align)
		return false;
	*off = rd->off;
	*len = rd->count;
	*before = split_widen_read(a.read_align, off, len);
	/* The last unit below the largest offset is partial. */
	return *len % a.read_align == 0;
}

static ssize_t read_direct(const struct fs_request *r, struct fs_file *f,
			   struct tr_file *io, struct fs_read *rd)
{
	size_t len, before;
	int64_t off;
	ssize_t n;

	if (!direct_window(io, rd, &off, &len, &before)) {
		TRACE_IO(nfsd_read_dontcache, rd->off, rd->count);
		rd->data = rd->buf;
		return tr_read(io, rd->buf, rd->count, rd->off, TR_DONTCACHE);
	}
	TRACE_IO(nfsd_read_direct, rd->off, rd->count);
	n = tr_read(io, rd->buf, len, off, TR_DIRECT | TR_DONTCACHE);
	rd->data = (char *)rd->buf + before;
	if (n < 0)
		return n;
	if ((size_t)n <= before)
		return 0;
	return min_of(n - (ssize_t)before, (ssize_t)rd->count);
}

static ssize_t read_by_mode(const struct fs_request *r, struct fs_file *f,
			    struct tr_file *io, struct fs_read *rd, bool nowait)
{
	unsigned flags = nowait ? TR_NOWAIT : 0;
	struct io_mode mode;
	ssize_t n;

	io_mode_get(&r->fs->knobs, &r->export->knobs, &mode);
	if (mode.read == IO_READ_DIRECT)
		return nowait ? -EAGAIN : read_direct(r, f, io, rd);
	if (rd->loan && mode.splice_read && nowait) {
		n = loan_start(io, rd->off, rd->count, rd->loan);
		rd->lent = n >= 0;
		if (rd->lent)
			TRACE_IO(nfsd_read_splice, rd->off, rd->count);
		if (n != -E2BIG)
			return n;
	}
	rd->data = rd->buf;
	if (mode.read == IO_READ_UNCACHED) {
		TRACE_IO(nfsd_read_dontcache, rd->off, rd->count);
		flags |= TR_DONTCACHE;
	} else {
		TRACE_IO(nfsd_read_vector, rd->off, rd->count);
	}
	return tr_read(io, rd->buf, rd->count, rd->off, flags);
}

/* Opens the file for I/O; with nowait only if it is open. */
static int start(struct fs_file *f, bool write, bool nowait,
		 struct tr_file **io)
{
	if (!nowait)
		return fileio_start(f, write, io);
	return fileio_try_start(f, write, io) ? 0 : -EAGAIN;
}

static bool more(struct tr_file *io, int64_t off)
{
	struct fileio_facts a;

	fileio_facts(io, &a);
	return off < a.size;
}

static int read_once(const struct fs_request *r, struct fs_file *f,
		     struct fs_read *rd, bool nowait)
{
	struct tr_file *io;
	ssize_t n;
	int ret;

	TRACE_IO_ONCE(TRACED_START, nfsd_read_start, rd->off, rd->count);
	rd->len = 0;
	rd->eof = rd->after_valid = rd->lent = false;
	ret = access_check(f, &r->cred, ACCESS_READ);
	if (!ret)
		ret = start(f, false, nowait, &io);
	if (ret)
		return ret;
	TRACE_IO_ONCE(TRACED_OPENED, nfsd_read_opened, rd->off, rd->count);
	n = read_by_mode(r, f, io, rd, nowait);
	/* Short of what is there: the rest has to be waited for. */
	if (nowait && !rd->lent && n >= 0 && (size_t)n < rd->count &&
	    more(io, rd->off + n))
		n = -EAGAIN;
	if (n != -EAGAIN || !nowait)
		TRACE_IO(nfsd_read_io_done, rd->off, n < 0 ? 0 : n);
	fileio_end(f);
	if (n < 0)
		return (int)n;
	rd->len = (size_t)n;
	rd->after_valid = !attr_get(f, r->export, &rd->after);
	rd->eof = rd->after_valid ? rd->off + n >= rd->after.size
				  : rd->len < rd->count;
	/* The file grew since: nothing, and no end, is an error to clients. */
	if (!n && rd->count && !rd->eof)
		return -EAGAIN;
	atomic_fetch_add(&r->export->bytes_read, rd->len);
	TRACE_IO(nfsd_read_done, rd->off, rd->len);
	return 0;
}

/* A file that grows and shrinks all the time is read again so often; then the
 * client is told to come again. */
#define READ_TRIES 8

int io_read(const struct fs_request *r, struct fs_file *f, struct fs_read *rd,
	    bool nowait)
{
	int i, ret = -EAGAIN;

	for (i = 0; i < (nowait ? 1 : READ_TRIES) && ret == -EAGAIN; i++)
		ret = read_once(r, f, rd, nowait);
	return ret;
}

/* ---- writing ---- */

enum fs_stable io_stable_floor(const struct export_options *o,
			       enum io_write_mode mode, enum fs_stable asked)
{
	enum fs_stable least = FS_UNSTABLE;

	if (!o->sync)
		return asked;
	if (mode == IO_WRITE_DATA_SYNC)
		least = FS_DATA_SYNC;
	else if (mode == IO_WRITE_FILE_SYNC)
		least = FS_FILE_SYNC;
	return max_of(asked, least);
}

/* A payload as the segments of a direct mode. */
static int cut(const struct fs_request *r, struct fs_file *f,
	       struct tr_file *io, const struct fs_write *w,
	       const struct io_mode *mode, struct iovec *parts,
	       struct tr_segment segments[SPLIT_SEGMENTS_MAX])
{
	struct fileio_facts a;
	struct split_rules rules;
	struct split s;
	int i;

	fileio_facts(io, &a);
	rules = (struct split_rules){ .offset_align = a.offset_align,
				      .mem_align = max_of(a.mem_align, 1u),
				      .unit = a.unit,
				      .num_pages = mode->num_pages };
	split_write(&rules, w->off, w->iov, w->nr_iov, parts, &s);
	TRACE(nfsd_write_dio_split, .xid = r->xid, .fh_hash = fh_hash(f),
	      .offset = (uint64_t)w->off, .len = w->len,
	      .offset_align = rules.offset_align, .mem_align = rules.mem_align,
	      .mem_offset = s.mem_offset, .prefix = s.prefix,
	      .middle = s.middle, .suffix = s.suffix, .nsegs = (uint32_t)s.nr,
	      .disposition = split_disposition_name(s.disposition),
	      .dontcache = mode->dontcache);
	for (i = 0; i < s.nr; i++) {
		const struct split_segment *p = &s.segments[i];

		if (p->direct)
			TRACE_IO(nfsd_write_direct, p->off, p->len);
		else if (mode->dontcache)
			TRACE_IO(nfsd_write_dontcache, p->off, p->len);
		else
			TRACE_IO(nfsd_write_vector, p->off, p->len);
		segments[i] = (struct tr_segment){
			.iov = p->iov,
			.nr_iov = p->nr_iov,
			.flags = (p->direct ? TR_DIRECT | TR_DONTCACHE : 0u) |
				 (mode->dontcache ? TR_DONTCACHE : 0u),
		};
	}
	return s.nr;
}

static unsigned sync_flags(enum fs_stable stable)
{
	static const unsigned flags[] = { [FS_UNSTABLE] = 0,
					  [FS_DATA_SYNC] = TR_DSYNC,
					  [FS_FILE_SYNC] = TR_SYNC };

	return flags[stable];
}

static ssize_t write_by_mode(const struct fs_request *r, struct fs_file *f,
			     struct tr_file *io, struct fs_write *w,
			     bool nowait)
{
	struct tr_segment segments[SPLIT_SEGMENTS_MAX];
	struct iovec parts[SPLIT_IOV(FS_IOV_MAX)];
	unsigned flags = nowait ? TR_NOWAIT : 0;
	struct io_mode mode;
	int nr;

	io_mode_get(&r->fs->knobs, &r->export->knobs, &mode);
	w->committed = io_stable_floor(&r->options, mode.write, w->stable);
	if (r->options.sync)
		flags |= sync_flags(w->committed);
	if (nowait && (mode.write >= IO_WRITE_DIRECT || flags != TR_NOWAIT))
		return -EAGAIN;
	switch (mode.write) {
	case IO_WRITE_CACHED:
		TRACE_IO(nfsd_write_vector, w->off, w->len);
		return gift_writev(io, w->gift, w->iov, w->nr_iov, w->off,
				   flags);
	case IO_WRITE_UNCACHED:
		TRACE_IO(nfsd_write_dontcache, w->off, w->len);
		return gift_writev(io, w->gift, w->iov, w->nr_iov, w->off,
				   flags | TR_DONTCACHE);
	default:
		nr = cut(r, f, io, w, &mode, parts, segments);
		return tr_write_segments(io, segments, nr, w->off, flags);
	}
}

/* What an earlier call has not written of a WRITE. */
static void skip_written(struct fs_write *w, struct iovec *rest)
{
	size_t skip = w->written;
	int nr = 0;

	for (int i = 0; i < w->nr_iov; i++) {
		size_t n = min_of(skip, w->iov[i].iov_len);

		skip -= n;
		if (n < w->iov[i].iov_len)
			rest[nr++] =
				(struct iovec){ (char *)w->iov[i].iov_base + n,
						w->iov[i].iov_len - n };
	}
	w->iov = rest;
	w->nr_iov = nr;
	w->off += (int64_t)w->written;
	w->len -= w->written;
}

/*
 * Writes what is left, and adds it to what is written; -EAGAIN: with nowait, if
 * that is not all. What was promised of the first part holds for all.
 */
static int write_rest(const struct fs_request *r, struct fs_file *f,
		      struct tr_file *io, struct fs_write *w, bool nowait)
{
	struct iovec rest[FS_IOV_MAX];
	struct fs_write left = *w;
	ssize_t n;

	if (w->written)
		skip_written(&left, rest);
	n = write_by_mode(r, f, io, &left, nowait);
	if (n < 0)
		return (int)n;
	if (!w->written)
		w->committed = left.committed;
	w->written += (size_t)n;
	return nowait && w->written < w->len ? -EAGAIN : 0;
}

static uint64_t verifier_now(const struct fs_request *r, struct fs_file *f,
			     struct tr_file *io)
{
	fileio_note_loss(f, io, r->export, 0, false);
	return atomic_load(&r->export->verifier);
}

static void note_writer(const struct fs_request *r, struct fs_file *f,
			enum fs_stable committed)
{
	mutex_lock(&f->lock);
	if (committed == FS_UNSTABLE)
		cursor_start(&f->cursors, r->client);
	f->export = r->export;
	mutex_unlock(&f->lock);
}

static int may_write(const struct fs_request *r, struct fs_file *f,
		     const struct fs_write *w)
{
	if (!r->options.writable)
		return -EROFS;
	if (w->len > (uint64_t)(TR_OFFSET_MAX - w->off))
		return -EFBIG;
	return access_check(f, &r->cred, ACCESS_WRITE);
}

int io_write(const struct fs_request *r, struct fs_file *f, struct fs_write *w,
	     bool nowait)
{
	struct tr_file *io;
	int ret;

	TRACE_IO_ONCE(TRACED_START, nfsd_write_start, w->off, w->len);
	w->before.valid = w->after_valid = false;
	ret = may_write(r, f, w);
	if (!ret)
		ret = start(f, true, nowait, &io);
	if (ret)
		return ret;
	TRACE_IO_ONCE(TRACED_OPENED, nfsd_write_opened, w->off, w->len);
	/* Taken before the data is: what is lost from now on changes it. */
	if (!w->written)
		w->verifier = verifier_now(r, f, io);
	ret = attr_write_start(f);
	if (!ret) {
		setattr_drop_suid(r, f);
		ret = write_rest(r, f, io, w, nowait);
		attr_write_end(f);
	}
	if (ret != -EAGAIN || !nowait)
		TRACE_IO(nfsd_write_io_done, w->off, ret ? 0 : w->written);
	if (!ret) {
		note_writer(r, f, w->committed);
		w->after_valid = !attr_get(f, r->export, &w->after);
		if (w->written)
			attr_wrote(f, io, &w->before, &w->after);
		atomic_fetch_add(&r->export->bytes_written, w->written);
		TRACE_IO(nfsd_write_done, w->off, w->written);
	} else if (ret != -EAGAIN) {
		fileio_note_loss(f, io, r->export, 0, false);
		attr_write_failed(f, io);
	}
	fileio_end(f);
	return ret;
}

/* ---- committing ---- */

/* Syncs the range and tells this client what it is owed. */
static int commit_range(const struct fs_request *r, struct fs_file *f,
			struct tr_file *io, int64_t off, int64_t len)
{
	int ret, owed;

	ret = r->options.sync ? tr_fsync_range(io, off, len, TR_SYNC) : 0;
	fileio_note_loss(f, io, r->export, ret, false);
	mutex_lock(&f->lock);
	owed = cursor_check(&f->cursors, r->client);
	mutex_unlock(&f->lock);
	return ret ? ret : owed;
}

int io_commit(const struct fs_request *r, struct fs_file *f, uint64_t off,
	      uint32_t count, uint64_t *verifier, bool *after_valid,
	      struct fs_attr *after)
{
	struct tr_file *io;
	int64_t len = count;
	int ret;

	TRACE_IO(nfsd_commit_start, off, count);
	*after_valid = false;
	ret = access_check(f, &r->cred, ACCESS_WRITE);
	if (!ret)
		ret = fileio_start(f, false, &io);
	if (ret)
		return ret;
	/* Odd ranges are widened: syncing more than was asked is no harm. */
	if (off > INT64_MAX || count > INT64_MAX - off)
		len = 0;
	if (off > INT64_MAX)
		off = 0;
	ret = commit_range(r, f, io, (int64_t)off, len);
	*verifier = atomic_load(&r->export->verifier);
	*after_valid = !attr_get(f, r->export, after);
	fileio_end(f);
	TRACE_IO(nfsd_commit_done, off, count);
	return ret;
}

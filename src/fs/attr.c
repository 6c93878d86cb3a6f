/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * Attributes.
 *
 * Happy path: one fstat; if the file's own view counts, it replaces size, mtime
 * and ctime.
 *
 * Telling our own device writes from others' changes: while a write runs it is
 * counted in f->writers, and when it ends it sets f->wrote. Whoever finds the file clean, before and after
 * asking the host, and f->wrote set, records what the host says as ours; found
 * clean and not set, a difference is somebody else's doing. Then the view is
 * given up and the opening is made anew.
 *
 * Invariant: view.ctime strictly grows with every change made through here, so
 * that no client's change hides between two others.
 */
#include "fs/attr.h"

#include "base/clock.h"
#include "fs/fileio.h"

#include <errno.h>
#include <sys/sysmacros.h>

static bool same_time(struct timespec a, struct timespec b)
{
	return a.tv_sec == b.tv_sec && a.tv_nsec == b.tv_nsec;
}

static bool later(struct timespec a, struct timespec b)
{
	return a.tv_sec != b.tv_sec ? a.tv_sec > b.tv_sec
				    : a.tv_nsec > b.tv_nsec;
}

static struct timespec latest(struct timespec a, struct timespec b)
{
	return later(a, b) ? a : b;
}

/* The shortest time later. */
static struct timespec after(struct timespec t)
{
	if (++t.tv_nsec == (long)NS_PER_S) {
		t.tv_nsec = 0;
		t.tv_sec++;
	}
	return t;
}

static void view_of(const struct stat *st, struct file_view *v)
{
	v->size = st->st_size;
	v->mtime = st->st_mtim;
	v->ctime = st->st_ctim;
}

void attr_from_stat(const struct stat *st, const struct fs_export *x,
		    struct fs_attr *out)
{
	*out = (struct fs_attr){
		.mode = st->st_mode,
		.nlink = (uint32_t)st->st_nlink,
		.uid = st->st_uid,
		.gid = st->st_gid,
		.size = st->st_size,
		.used = (uint64_t)st->st_blocks * 512,
		.rdev_major = major(st->st_rdev),
		.rdev_minor = minor(st->st_rdev),
		.fsid = x->id,
		.fileid = st->st_ino,
		.atime = st->st_atim,
		.mtime = st->st_mtim,
		.ctime = st->st_ctim,
	};
}

void attr_before(const struct fs_attr *a, struct fs_before *out)
{
	*out = (struct fs_before){ .valid = true,
				   .size = a->size,
				   .mtime = a->mtime,
				   .ctime = a->ctime };
}

static void overlay(const struct file_view *v, struct fs_attr *a)
{
	a->size = v->size;
	a->mtime = v->mtime;
	a->ctime = v->ctime;
}

void attr_record_host(struct fs_file *f)
{
	struct stat st;

	if (fstat(f->fd, &st))
		return;
	mutex_lock(&f->lock);
	view_of(&st, &f->host);
	f->host_known = true;
	mutex_unlock(&f->lock);
}

static bool is_settled(struct fs_file *f, struct tr_file *io)
{
	return !atomic_load(&f->writers) && fileio_is_settled(io);
}

/* io was clean before st was taken. Returns whether the host's file was changed
 * by somebody else. */
static bool foreign_change(struct fs_file *f, struct tr_file *io,
			   const struct stat *st)
{
	bool ours = atomic_exchange(&f->wrote, false);
	struct file_view now;
	bool foreign = false;

	if (!is_settled(f, io)) {
		atomic_store(&f->wrote, true);
		return false;
	}
	view_of(st, &now);
	mutex_lock(&f->lock);
	/* Who changes them judges and records, when it is done. */
	if (f->changing) {
		mutex_unlock(&f->lock);
		if (ours)
			atomic_store(&f->wrote, true);
		return false;
	}
	if (!ours && f->host_known)
		foreign = now.size != f->host.size ||
			  !same_time(now.mtime, f->host.mtime) ||
			  !same_time(now.ctime, f->host.ctime);
	/* The host's clock for files is coarse and may be behind ours. */
	if (foreign && f->own)
		f->ctime_min = after(f->view.ctime);
	if (foreign)
		f->own = false;
	f->host = now;
	f->host_known = true;
	mutex_unlock(&f->lock);
	return foreign;
}

void attr_check_host(struct fs_file *f, struct tr_file *io)
{
	struct stat st;

	if (is_settled(f, io) && !fstat(f->fd, &st))
		(void)foreign_change(f, io, &st);
}

int attr_get(struct fs_file *f, const struct fs_export *x, struct fs_attr *out)
{
	struct tr_file *io = NULL;
	bool clean = false, open;
	struct stat st;

	open = fileio_try_start(f, false, &io);
	if (open)
		clean = is_settled(f, io);
	if (fstat(f->fd, &st)) {
		if (open)
			fileio_end(f);
		return -errno;
	}
	if (!st.st_nlink) {
		/* Removed on the host: as if a client had done it. */
		atomic_store(&f->gone, true);
		if (open)
			fileio_end(f);
		return -ESTALE;
	}
	if (clean && foreign_change(f, io, &st)) {
		(void)tr_invalidate(io, 0, 0);
		fileio_refresh(f);
		access_forget(f);
	}
	if (open)
		fileio_end(f);
	atomic_store(&f->mode, st.st_mode & 07777);
	attr_from_stat(&st, x, out);
	mutex_lock(&f->lock);
	if (f->own)
		overlay(&f->view, out);
	else
		out->ctime = latest(out->ctime, f->ctime_min);
	mutex_unlock(&f->lock);
	return 0;
}

int attr_write_start(struct fs_file *f)
{
	struct stat st;
	bool own;

	mutex_lock(&f->lock);
	own = f->own;
	mutex_unlock(&f->lock);
	if (!own && fstat(f->fd, &st))
		return -errno;
	mutex_lock(&f->lock);
	if (!own && !f->own) {
		view_of(&st, &f->view);
		f->view.ctime = latest(f->view.ctime, f->ctime_min);
		f->own = true;
	}
	mutex_unlock(&f->lock);
	atomic_fetch_add(&f->writers, 1);
	return 0;
}

void attr_write_end(struct fs_file *f)
{
	atomic_store(&f->wrote, true);
	atomic_fetch_sub(&f->writers, 1);
}

/* A time for a change made now: after the last one, whatever the clock says. */
static struct timespec next_time(struct timespec last)
{
	struct timespec now = clock_real();

	return later(now, last) ? now : after(last);
}

void attr_wrote(struct fs_file *f, struct tr_file *io, struct fs_before *before,
		struct fs_attr *a)
{
	struct fileio_facts now;

	fileio_facts(io, &now);
	mutex_lock(&f->lock);
	*before = (struct fs_before){ .valid = true,
				      .size = f->view.size,
				      .mtime = f->view.mtime,
				      .ctime = f->view.ctime };
	f->view.size = now.size;
	if (later(now.mtime, f->view.mtime))
		f->view.mtime = now.mtime;
	f->view.ctime = next_time(f->view.ctime);
	overlay(&f->view, a);
	mutex_unlock(&f->lock);
}

void attr_write_failed(struct fs_file *f, struct tr_file *io)
{
	struct fs_before before;
	struct fileio_facts now;
	struct fs_attr after;
	bool grown;

	fileio_facts(io, &now);
	mutex_lock(&f->lock);
	grown = f->own && f->view.size != now.size;
	mutex_unlock(&f->lock);
	if (grown)
		attr_wrote(f, io, &before, &after);
}

void attr_change_start(struct fs_file *f)
{
	mutex_lock(&f->lock);
	f->changing++;
	mutex_unlock(&f->lock);
}

void attr_change_end(struct fs_file *f)
{
	mutex_lock(&f->lock);
	f->changing--;
	mutex_unlock(&f->lock);
}

/* Whether the host's file differs in what we did not change: then what is known
 * of it stays as it is, and the next look at it tells. */
static bool differs(const struct fs_file *f, const struct stat *st)
	REQUIRES(f->lock)
{
	return f->host_known && !atomic_load(&f->wrote) &&
	       (st->st_size != f->host.size ||
		!same_time(st->st_mtim, f->host.mtime));
}

void attr_follow_host(struct fs_file *f, struct tr_file *io, bool mtime_set)
{
	struct fileio_facts now = { 0 };
	struct stat st;

	if (io)
		fileio_facts(io, &now);
	if (fstat(f->fd, &st))
		return;
	mutex_lock(&f->lock);
	if (mtime_set || atomic_load(&f->writers) || !differs(f, &st)) {
		view_of(&st, &f->host);
		f->host_known = true;
	}
	if (f->own) {
		if (mtime_set)
			f->view.mtime = st.st_mtim;
		f->view.ctime = later(st.st_ctim, f->view.ctime)
					? st.st_ctim
					: next_time(f->view.ctime);
		if (io)
			f->view.size = now.size;
	}
	mutex_unlock(&f->lock);
	atomic_store(&f->mode, st.st_mode & 07777);
	access_forget(f);
}

/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * SETATTR.
 *
 * Happy path: alone among those who change the file, note the attributes, write
 * back what a change of size or times would otherwise overtake, change (size,
 * owner, mode, times: later ones undo what earlier ones do to them), make it
 * durable, note the attributes again.
 *
 * Failure modes: the host's answer under the caller's ids is the answer; what
 * was changed before it stays changed, as RFC 1813 allows.
 */
#include "fs/setattr.h"

#include "fs/fileio.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <sys/stat.h>
#include <unistd.h>

/* The O_PATH descriptor as a path, for calls that take no such descriptor. */
static void proc_path(const struct fs_file *f, char path[32])
{
	snprintf(path, 32, "/proc/self/fd/%d", f->fd);
}

void setattr_drop_suid(const struct fs_request *r, struct fs_file *f)
{
	unsigned mode = atomic_load(&f->mode), keep = mode & ~(unsigned)S_ISUID;
	char path[32];

	if (mode & S_IXGRP)
		keep &= ~(unsigned)S_ISGID;
	if (!r->cred.uid || keep == mode)
		return;
	proc_path(f, path);
	/* Failing means that the host does not let even the server: then the
	 * write was refused by the host as well. */
	if (!chmod(path, keep))
		atomic_store(&f->mode, keep);
}

static int set_size(const struct fs_request *r, struct fs_file *f, int64_t size)
{
	struct tr_file *io;
	int ret;

	if (size < 0)
		return -EFBIG;
	ret = fileio_start(f, true, &io);
	if (ret)
		return ret;
	setattr_drop_suid(r, f);
	ret = tr_truncate(io, size);
	fileio_end(f);
	return ret;
}

static struct timespec utime_of(enum time_how how, struct timespec given)
{
	if (how == TIME_NOW)
		given.tv_nsec = UTIME_NOW;
	else if (how == TIME_KEEP)
		given.tv_nsec = UTIME_OMIT;
	return given;
}

/* Owner, mode and times, under the caller's ids. */
static int set_others(struct fs_file *f, const struct fs_sattr *s)
{
	struct timespec ts[2] = { utime_of(s->atime_how, s->atime),
				  utime_of(s->mtime_how, s->mtime) };
	char path[32];

	if ((s->set_uid || s->set_gid) &&
	    fchownat(f->fd, "", s->set_uid ? s->uid : (uid_t)-1,
		     s->set_gid ? s->gid : (gid_t)-1, AT_EMPTY_PATH))
		return -errno;
	proc_path(f, path);
	if (s->set_mode && f->type != S_IFLNK && chmod(path, s->mode & 07777))
		return -errno;
	if ((s->atime_how || s->mtime_how) &&
	    utimensat(f->fd, "", ts, AT_EMPTY_PATH))
		return -errno;
	return 0;
}

static int apply(const struct fs_request *r, struct fs_file *f,
		 const struct fs_sattr *s)
{
	static const struct timespec touch[2] = { { 0, UTIME_OMIT },
						  { 0, UTIME_NOW } };
	int ret = 0;

	if (s->set_size)
		ret = set_size(r, f, s->size);
	if (ret)
		return ret;
	/* The store may have left the times alone. */
	if (s->set_size && !s->mtime_how)
		(void)utimensat(f->fd, "", touch, AT_EMPTY_PATH);
	ret = identity_enter(&r->cred);
	if (ret)
		return ret;
	ret = set_others(f, s);
	identity_leave(&r->cred);
	return ret;
}

int setattr_new(const struct fs_request *r, struct fs_file *f,
		const struct fs_sattr *s)
{
	int ret = apply(r, f, s);

	access_forget(f);
	return ret;
}

static int check(const struct fs_request *r, struct fs_file *f,
		 const struct fs_sattr *s, const struct timespec *guard,
		 const struct fs_before *before)
{
	if (guard && (guard->tv_sec != before->ctime.tv_sec ||
		      guard->tv_nsec != before->ctime.tv_nsec))
		return -ECANCELED;
	if (!s->set_size)
		return 0;
	if (f->type == S_IFDIR)
		return -EISDIR;
	return access_check(f, &r->cred, ACCESS_WRITE);
}

/* Makes the change durable and lets the view follow it. */
static int settle(const struct fs_request *r, struct fs_file *f,
		  const struct fs_sattr *s)
{
	bool mtime = s->set_size || s->mtime_how;
	struct tr_file *io = NULL;
	bool open = fileio_try_start(f, false, &io);
	int ret = 0;

	if (open && s->set_size)
		ret = tr_fsync(io);
	else if (r->options.sync)
		ret = file_sync_host(f);
	attr_follow_host(f, s->set_size ? io : NULL, mtime);
	if (open)
		fileio_end(f);
	return ret;
}

int setattr_change(const struct fs_request *r, struct fs_file *f,
		   const struct fs_sattr *s, const struct timespec *guard,
		   struct fs_change *wcc)
{
	struct fs_attr now;
	struct tr_file *io;
	int ret, settled;

	wcc->before.valid = wcc->after_valid = false;
	file_busy_start(f);
	ret = attr_get(f, r->export, &now);
	if (ret)
		goto out;
	attr_before(&now, &wcc->before);
	ret = r->options.writable ? check(r, f, s, guard, &wcc->before)
				  : -EROFS;
	if (!ret && (s->set_size || s->mtime_how) &&
	    fileio_try_start(f, false, &io)) {
		ret = tr_fsync(io);
		fileio_end(f);
	}
	if (!ret) {
		attr_change_start(f);
		ret = apply(r, f, s);
		settled = settle(r, f, s);
		attr_change_end(f);
		ret = ret ? ret : settled;
	}
	wcc->after_valid = !attr_get(f, r->export, &wcc->after);
out:
	file_busy_end(f);
	return ret;
}

/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * Names.
 *
 * Happy path of a change: alone among those who change the directory here, note
 * its attributes, let the host do it under the caller's ids, note the
 * attributes again; then, no longer alone, make the directory durable together
 * with whoever else is waiting for that.
 *
 * Files that lose a name, or are renamed, have their ctime changed by the host:
 * those in the table are told, so that it is not taken for a foreign change;
 * one without links left is cancelled.
 *
 * Failure modes: the host's errors. A change that was done but could not be
 * made durable is an error too, and its wcc data says what happened.
 */
#include "fs/name.h"

#include "fs/fileio.h"
#include "fs/namecheck.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/openat2.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/sysmacros.h>
#include <unistd.h>

/* Directories between a file and its root: PATH_MAX / 2. */
#define DEPTH_MAX 2048

/* ---- looking up ---- */

/* Takes over fd, an O_PATH descriptor of what was found in dir as name; dir may
 * be NULL. */
static int file_of_fd(const struct fs_request *r, int fd,
		      const struct fs_file *dir, const char *name,
		      struct fs_file **out)
{
	struct fs_handle h;
	int ret;

	ret = fs_export_handle(r->export, fd, "", dir ? dir->ino : 0, name, &h);
	if (ret) {
		close(fd);
		return ret;
	}
	return file_get(r->fs, r->export, &h, fd, out);
}

static int open_as(const struct fs_request *r, int dirfd, const char *name)
{
	int fd, ret;

	ret = identity_enter(&r->cred);
	if (ret)
		return ret;
	fd = openat(dirfd, name, O_PATH | O_NOFOLLOW | O_CLOEXEC);
	ret = fd < 0 ? -errno : fd;
	identity_leave(&r->cred);
	return ret;
}

int name_root(const struct fs_request *r, struct fs_file **out)
{
	return file_get(r->fs, r->export, &r->export->root, -1, out);
}

/* Whether the directory lies in the export: goes up until it meets the root
 * (yes) or what is its own parent (no: it was moved out on the host). */
static int check_inside(const struct fs_request *r, int dirfd)
{
	struct stat st, last = { 0 };
	int fd = dup(dirfd), up, i, ret = -ESTALE;

	if (fd < 0)
		return -errno;
	for (i = 0; i < DEPTH_MAX; i++) {
		if (fstat(fd, &st))
			break;
		if (st.st_ino == r->export->root_ino &&
		    st.st_dev == r->export->volume->dev) {
			ret = 0;
			break;
		}
		if (st.st_ino == last.st_ino && st.st_dev == last.st_dev)
			break;
		last = st;
		up = openat(fd, "..", O_PATH | O_DIRECTORY | O_CLOEXEC);
		close(fd);
		fd = up;
		if (fd < 0)
			return -errno;
	}
	close(fd);
	return ret;
}

static int lookup_parent(const struct fs_request *r, struct fs_file *dir,
			 struct fs_file **out)
{
	int fd, ret;

	if (dir->ino == r->export->root_ino)
		return name_root(r, out);
	fd = open_as(r, dir->fd, "..");
	if (fd < 0)
		return fd;
	ret = check_inside(r, fd);
	if (ret) {
		close(fd);
		return ret;
	}
	return file_of_fd(r, fd, NULL, NULL, out);
}

static int name_self(const struct fs_request *r, struct fs_file *dir,
		     struct fs_file **out)
{
	int fd = open_as(r, dir->fd, ".");

	return fd < 0 ? fd : file_of_fd(r, fd, NULL, NULL, out);
}

int name_lookup(const struct fs_request *r, struct fs_file *dir,
		const char *name, struct fs_file **out)
{
	int fd, ret;

	if (dir->type != S_IFDIR)
		return -ENOTDIR;
	ret = name_check(name);
	if (ret)
		return ret;
	if (!strcmp(name, ".."))
		return lookup_parent(r, dir, out);
	if (!strcmp(name, "."))
		return name_self(r, dir, out);
	fd = open_as(r, dir->fd, name);
	return fd < 0 ? fd : file_of_fd(r, fd, dir, name, out);
}

int name_walk(const struct fs_request *r, const char *path,
	      struct fs_file **out)
{
	struct open_how how = {
		.flags = O_PATH | O_DIRECTORY | O_CLOEXEC,
		.resolve =
			RESOLVE_BENEATH | RESOLVE_NO_SYMLINKS | RESOLVE_NO_XDEV,
	};
	long fd;

	if (!path[0])
		return name_root(r, out);
	fd = syscall(SYS_openat2, r->export->fd, path, &how, sizeof(how));
	if (fd < 0)
		return errno == ELOOP || errno == EXDEV ? -EACCES : -errno;
	return file_of_fd(r, (int)fd, NULL, NULL, out);
}

/* ---- changing ---- */

static void change_start(const struct fs_request *r, struct fs_file *dir,
			 struct fs_change *wcc)
{
	struct fs_attr now;

	wcc->before.valid = wcc->after_valid = false;
	if (!attr_get(dir, r->export, &now))
		attr_before(&now, &wcc->before);
}

static void change_end(const struct fs_request *r, struct fs_file *dir,
		       struct fs_change *wcc)
{
	wcc->after_valid = !attr_get(dir, r->export, &wcc->after);
}

static int change_sync(const struct fs_request *r, struct fs_file *dir)
{
	return r->options.sync ? file_sync_host(dir) : 0;
}

/* A file in the table that a name stands for now and whose name is about to be
 * changed; NULL if it is not there. */
static struct fs_file *known_start(const struct fs_request *r,
				   struct fs_file *dir, const char *name)
{
	struct fs_handle h;

	struct fs_file *f;

	if (fs_export_handle(r->export, dir->fd, name, dir->ino, name, &h))
		return NULL;
	f = file_find(r->fs, r->export->volume, &h);
	if (f)
		attr_change_start(f);
	return f;
}

/* The file lost a name or changed it, if changed is set. Gives the reference
 * back. */
static void known_end(struct fs_file *f, bool changed)
{
	struct stat st;

	if (!f)
		return;
	if (changed && !fstat(f->fd, &st) && !st.st_nlink)
		fileio_cancel(f);
	else if (changed)
		attr_follow_host(f, NULL, false);
	attr_change_end(f);
	file_put(f);
}

static int may_change(const struct fs_request *r, struct fs_file *dir,
		      const char *name)
{
	if (dir->type != S_IFDIR)
		return -ENOTDIR;
	if (!r->options.writable)
		return -EROFS;
	return name_check(name);
}

static int make(struct fs_file *dir, const char *name,
		const struct fs_new *what)
{
	mode_t mode = what->attr.set_mode ? what->attr.mode & 07777 : 0;
	int ret;

	/* The owner's rights until the attributes are set; an exclusive
	 * create sends its mode later. */
	if (what->how == CREATE_EXCLUSIVE && what->type == S_IFREG)
		mode = 0600;
	switch (what->type) {
	case S_IFDIR:
		ret = mkdirat(dir->fd, name, mode);
		break;
	case S_IFLNK:
		ret = symlinkat(what->target, dir->fd, name);
		break;
	default:
		ret = mknodat(dir->fd, name, what->type | mode,
			      makedev(what->rdev_major, what->rdev_minor));
	}
	return ret ? -errno : 0;
}

/* The verifier in the seconds of atime and mtime: 31 bits each, which every
 * host file system keeps. */
static void verifier_times(const uint8_t verifier[8], struct fs_sattr *s)
{
	uint32_t words[2];

	memcpy(words, verifier, sizeof(words));
	s->atime_how = s->mtime_how = TIME_GIVEN;
	s->atime = (struct timespec){ .tv_sec = words[0] & INT32_MAX };
	s->mtime = (struct timespec){ .tv_sec = words[1] & INT32_MAX };
}

/* Something is there already: whether that will do. */
static int accept_existing(const struct fs_request *r, struct fs_file *f,
			   const struct fs_new *what)
{
	struct fs_sattr s = { 0 };
	struct fs_change ignored;
	struct stat st;

	if (what->type != S_IFREG || what->how == CREATE_GUARDED)
		return -EEXIST;
	if (f->type != S_IFREG)
		return f->type == S_IFDIR && what->how == CREATE_UNCHECKED
			       ? -EISDIR
			       : -EEXIST;
	if (what->how == CREATE_EXCLUSIVE) {
		verifier_times(what->verifier, &s);
		if (fstat(f->fd, &st))
			return -errno;
		return st.st_atim.tv_sec == s.atime.tv_sec &&
				       st.st_mtim.tv_sec == s.mtime.tv_sec
			       ? 0
			       : -EEXIST;
	}
	if (!what->attr.set_size)
		return 0;
	s.set_size = true;
	s.size = what->attr.size;
	return setattr_change(r, f, &s, NULL, &ignored);
}

/* What making it did not set. */
static int finish_new(const struct fs_request *r, struct fs_file *f,
		      const struct fs_new *what)
{
	struct fs_sattr s = what->attr;
	int ret;

	if (what->type == S_IFREG && what->how == CREATE_EXCLUSIVE) {
		s = (struct fs_sattr){ 0 };
		verifier_times(what->verifier, &s);
	} else if (!s.set_uid && !s.set_gid && !s.set_size && !s.atime_how &&
		   !s.mtime_how) {
		return 0;
	}
	s.set_mode = false;
	/* Clients send the ids that the file has anyway. */
	if (s.set_uid && s.uid == r->cred.uid)
		s.set_uid = false;
	if (s.set_size && !s.size)
		s.set_size = false;
	ret = setattr_new(r, f, &s);
	if (!ret && r->options.sync)
		ret = file_sync_host(f);
	return ret;
}

int name_create(const struct fs_request *r, struct fs_file *dir,
		const char *name, const struct fs_new *what,
		struct fs_file **out, struct fs_change *wcc)
{
	struct fs_file *f;
	int ret, made;

	wcc->before.valid = wcc->after_valid = false;
	ret = may_change(r, dir, name);
	if (!ret && name_is_dots(name))
		ret = -EEXIST;
	if (ret)
		return ret;
	file_busy_start(dir);
	change_start(r, dir, wcc);
	made = identity_enter(&r->cred);
	if (!made) {
		made = make(dir, name, what);
		identity_leave(&r->cred);
	}
	ret = made && made != -EEXIST ? made : name_lookup(r, dir, name, &f);
	change_end(r, dir, wcc);
	file_busy_end(dir);
	if (ret)
		return ret;
	ret = made ? accept_existing(r, f, what) : finish_new(r, f, what);
	if (!ret)
		ret = change_sync(r, dir);
	if (ret)
		file_put(f);
	else
		*out = f;
	return ret;
}

int name_remove(const struct fs_request *r, struct fs_file *dir,
		const char *name, bool directory, struct fs_change *wcc)
{
	struct fs_file *victim;
	int ret;

	wcc->before.valid = wcc->after_valid = false;
	ret = may_change(r, dir, name);
	if (!ret && name_is_dots(name))
		ret = directory && name[1] ? -ENOTEMPTY : -EINVAL;
	if (ret)
		return ret;
	file_busy_start(dir);
	change_start(r, dir, wcc);
	victim = known_start(r, dir, name);
	ret = identity_enter(&r->cred);
	if (!ret) {
		ret = unlinkat(dir->fd, name, directory ? AT_REMOVEDIR : 0)
			      ? -errno
			      : 0;
		identity_leave(&r->cred);
	}
	change_end(r, dir, wcc);
	file_busy_end(dir);
	known_end(victim, !ret);
	return ret ? ret : change_sync(r, dir);
}

int name_rename(const struct fs_request *r, struct fs_file *from,
		const char *from_name, struct fs_file *to, const char *to_name,
		struct fs_change *from_wcc, struct fs_change *to_wcc)
{
	struct fs_file *moved, *victim;
	struct fs_handle now;
	int ret;

	from_wcc->before.valid = from_wcc->after_valid = false;
	to_wcc->before.valid = to_wcc->after_valid = false;
	ret = may_change(r, from, from_name);
	if (!ret)
		ret = may_change(r, to, to_name);
	if (!ret && (name_is_dots(from_name) || name_is_dots(to_name)))
		ret = -EINVAL;
	if (ret)
		return ret;
	file_busy_start2(from, to);
	change_start(r, from, from_wcc);
	change_start(r, to, to_wcc);
	moved = known_start(r, from, from_name);
	victim = known_start(r, to, to_name);
	ret = identity_enter(&r->cred);
	if (!ret) {
		ret = renameat(from->fd, from_name, to->fd, to_name) ? -errno
								     : 0;
		identity_leave(&r->cred);
	}
	change_end(r, from, from_wcc);
	change_end(r, to, to_wcc);
	file_busy_end2(from, to);
	known_end(moved, !ret);
	known_end(victim, !ret);
	if (ret)
		return ret;
	/* Where handles are paths, theirs is another now. */
	(void)!fs_export_handle(r->export, to->fd, to_name, to->ino, to_name,
				&now);
	ret = change_sync(r, to);
	if (!ret && from != to)
		ret = change_sync(r, from);
	return ret;
}

int name_link(const struct fs_request *r, struct fs_file *f,
	      struct fs_file *dir, const char *name, struct fs_change *wcc)
{
	char path[32];
	int ret;

	wcc->before.valid = wcc->after_valid = false;
	ret = may_change(r, dir, name);
	if (!ret && name_is_dots(name))
		ret = -EEXIST;
	if (!ret && f->type == S_IFDIR)
		ret = -EISDIR;
	if (ret)
		return ret;
	snprintf(path, sizeof(path), "/proc/self/fd/%d", f->fd);
	file_busy_start2(f, dir);
	change_start(r, dir, wcc);
	attr_change_start(f);
	ret = identity_enter(&r->cred);
	if (!ret) {
		ret = linkat(AT_FDCWD, path, dir->fd, name, AT_SYMLINK_FOLLOW)
			      ? -errno
			      : 0;
		identity_leave(&r->cred);
	}
	if (!ret)
		attr_follow_host(f, NULL, false);
	attr_change_end(f);
	change_end(r, dir, wcc);
	file_busy_end2(f, dir);
	return ret ? ret : change_sync(r, dir);
}

int name_read_link(const struct fs_request *r, struct fs_file *f, char *buf)
{
	ssize_t n;

	if (f->type != S_IFLNK)
		return -EINVAL;
	n = readlinkat(f->fd, "", buf, FS_PATH_MAX + 1);
	if (n < 0)
		return -errno;
	return n > FS_PATH_MAX ? -ENAMETOOLONG : (int)n;
}

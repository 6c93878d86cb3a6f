/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * Listing directories with the host's offsets.
 *
 * Happy path: open, seek, getdents64, one entry after the other. Failure modes:
 * a cookie that lseek refuses is -EILSEQ; a directory removed meanwhile ends.
 */
#include "fs/dir.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

/* Places of a directory that are tried at start. */
#define CHECK_PLACES 8

static int list_open(int dirfd, uint64_t cookie, struct dir_list *list)
{
	int fd = openat(dirfd, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);

	if (fd < 0)
		return -errno;
	if (cookie &&
	    (cookie > INT64_MAX || lseek(fd, (off_t)cookie, SEEK_SET) < 0)) {
		close(fd);
		return -EILSEQ;
	}
	list->fd = fd;
	list->pos = list->len = 0;
	return 0;
}

int dir_start(const struct fs_request *r, struct fs_file *dir, uint64_t cookie,
	      struct dir_list *list)
{
	int ret;

	if (dir->type != S_IFDIR)
		return -ENOTDIR;
	ret = identity_enter(&r->cred);
	if (ret)
		return ret;
	ret = list_open(dir->fd, cookie, list);
	identity_leave(&r->cred);
	return ret;
}

int dir_next(struct dir_list *list, struct dir_entry *out)
{
	const struct dirent64 *d;
	long n;

	if (list->pos == list->len) {
		n = syscall(SYS_getdents64, list->fd, list->buf,
			    sizeof(list->buf));
		if (n < 0)
			return errno == ENOENT ? 0 : -errno;
		if (!n)
			return 0;
		list->pos = 0;
		list->len = (int)n;
	}
	d = (const void *)((const char *)list->buf + list->pos);
	list->pos += d->d_reclen;
	out->fileid = d->d_ino;
	out->cookie = (uint64_t)d->d_off;
	out->name = d->d_name;
	return 1;
}

void dir_end(struct dir_list *list)
{
	close(list->fd);
}

/* Whether the entry at a cookie is the expected one. */
static int check_place(int fd, uint64_t cookie, const char *name,
		       struct dir_list *list)
{
	struct dir_entry e = { 0 };
	int ret;

	ret = list_open(fd, cookie, list);
	if (ret)
		return ret == -EILSEQ ? -EOPNOTSUPP : ret;
	ret = dir_next(list, &e);
	if (ret > 0)
		ret = strcmp(e.name, name) ? -EOPNOTSUPP : 0;
	else if (!ret)
		ret = -EOPNOTSUPP;
	dir_end(list);
	return ret;
}

int dir_check_cookies(int fd)
{
	struct dir_list list, other;
	struct dir_entry e = { 0 };
	uint64_t before;
	int ret, i;

	ret = list_open(fd, 0, &list);
	if (ret)
		return ret;
	ret = dir_next(&list, &e);
	for (i = 0; i < CHECK_PLACES && ret > 0; i++) {
		before = e.cookie;
		ret = dir_next(&list, &e);
		if (ret > 0 && check_place(fd, before, e.name, &other))
			ret = -EOPNOTSUPP;
	}
	dir_end(&list);
	return ret < 0 ? ret : 0;
}

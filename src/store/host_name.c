/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * Names below the store's directory.
 *
 * Happy path: openat2 with RESOLVE_BENEATH, which lets the kernel see to it
 * that neither "..", nor an absolute name, nor a link leads out. Where there
 * is no openat2 (before Linux 5.6, or a filter), the name is walked component
 * by component and links are not followed at all.
 *
 * Failure modes: the host's; -EXDEV for a name that leads out; -ELOOP for a
 * link where links are not followed.
 */
#include "store/host.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/openat2.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <unistd.h>

/* Renames that somebody would have to do at the worst moment in a row. */
#define TRIES_MAX 100

static int open_beneath(int dir_fd, const char *name, int flags, mode_t mode)
{
	struct open_how how = {
		.flags = flags,
		.mode = flags & O_CREAT ? mode & 07777 : 0,
		.resolve = RESOLVE_BENEATH | RESOLVE_NO_MAGICLINKS,
	};
	int fd, tries = 0;

	/* A rename meanwhile may hide whether ".." stays below: -EAGAIN. */
	do {
		fd = syscall(SYS_openat2, dir_fd, name, &how, sizeof(how));
	} while (fd < 0 && errno == EAGAIN && ++tries < TRIES_MAX);
	return fd < 0 ? -errno : fd;
}

/* Steps from *fd (closed unless it is dir_fd) into one directory. */
static int step(int dir_fd, int *fd, const char *part, size_t len)
{
	char name[256];
	int next;

	if (len >= sizeof(name))
		return -ENAMETOOLONG;
	memcpy(name, part, len);
	name[len] = '\0';
	if (!strcmp(name, ".."))
		return -EXDEV;
	next = openat(*fd, name, O_PATH | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
	if (next < 0)
		return -errno;
	if (*fd != dir_fd)
		close(*fd);
	*fd = next;
	return 0;
}

static int open_walking(int dir_fd, const char *name, int flags, mode_t mode)
{
	const char *slash;
	int at = dir_fd, fd = -EXDEV, err = 0;

	if (*name == '/')
		return -EXDEV;
	while (!err && (slash = strchr(name, '/'))) {
		if (slash != name)
			err = step(dir_fd, &at, name, slash - name);
		name = slash + 1;
	}
	if (!err && strcmp(name, "..")) {
		fd = openat(at, name, flags | O_NOFOLLOW, mode);
		if (fd < 0)
			fd = -errno;
	}
	if (at != dir_fd)
		close(at);
	return err ? err : fd;
}

int host_name_open(struct host_store *store, const char *name, int flags,
		   mode_t mode)
{
	int fd;

	if (!atomic_load(&store->no_openat2)) {
		fd = open_beneath(store->dir_fd, name, flags, mode);
		/* Filters of system calls say EPERM for what they lack. */
		if (fd != -ENOSYS && fd != -EPERM)
			return fd;
		if (fd == -ENOSYS)
			atomic_store(&store->no_openat2, true);
	}
	return open_walking(store->dir_fd, name, flags, mode);
}

/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * Finding, making and connecting to control sockets.
 *
 * Happy path: the socket's mode is set before it is bound, so that it is never
 * open to others. Failure modes: where a socket is left from a server that was
 * killed, connecting is refused, and it is replaced.
 */
#include "ctl/path.h"

#include <errno.h>
#include <glob.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <unistd.h>

#define BACKLOG 16

bool ctl_default_path(unsigned nth, char path[CTL_PATH_MAX])
{
	const char *xdg = getenv("XDG_RUNTIME_DIR");
	bool has_xdg = xdg && xdg[0] == '/';
	int len;

	if (nth > (has_xdg ? 1u : 0u))
		return false;
	len = snprintf(path, CTL_PATH_MAX, "%s/tailrace/control",
		       has_xdg && !nth ? xdg : "/run");
	/* One that is too long is no place; the next may do. */
	if ((size_t)len >= CTL_PATH_MAX)
		return ctl_default_path(nth + 1, path);
	return true;
}

static int address(const char *path, struct sockaddr_un *out)
{
	*out = (struct sockaddr_un){ .sun_family = AF_UNIX };
	if (strlen(path) >= sizeof(out->sun_path))
		return -ENAMETOOLONG;
	strcpy(out->sun_path, path);
	return 0;
}

static int try_bind(int fd, const struct sockaddr_un *addr)
{
	return bind(fd, (const struct sockaddr *)addr, sizeof(*addr)) ? -errno
								      : 0;
}

/* True: a socket that is nobody's any more was there, and is gone. */
static bool remove_stale(const char *path)
{
	struct stat st;
	int fd;

	if (lstat(path, &st) || !S_ISSOCK(st.st_mode))
		return false;
	fd = ctl_connect(path);
	if (fd >= 0)
		close(fd);
	return fd == -ECONNREFUSED && !unlink(path);
}

void ctl_clean(const char *path)
{
	char pattern[CTL_PATH_MAX + 8];
	glob_t found;
	long pid;

	snprintf(pattern, sizeof(pattern), "%s.[0-9]*", path);
	if (glob(pattern, GLOB_NOSORT, NULL, &found))
		return;
	for (size_t i = 0; i < found.gl_pathc; i++) {
		pid = strtol(found.gl_pathv[i] + strlen(path) + 1, NULL, 10);
		/* A server of another PID namespace is seen by its answer. */
		if (pid > 0 && kill((pid_t)pid, 0) && errno == ESRCH)
			(void)remove_stale(found.gl_pathv[i]);
	}
	globfree(&found);
}

int ctl_listen(const char *path)
{
	struct sockaddr_un addr;
	int fd, ret;

	ret = address(path, &addr);
	if (ret)
		return ret;
	fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
	if (fd < 0)
		return -errno;
	/* Bound with the mode that the descriptor has. */
	ret = fchmod(fd, 0600) ? -errno : try_bind(fd, &addr);
	if (ret == -EADDRINUSE && remove_stale(path))
		ret = try_bind(fd, &addr);
	if (!ret && listen(fd, BACKLOG)) {
		ret = -errno;
		unlink(path);
	}
	if (!ret)
		return fd;
	close(fd);
	return ret;
}

int ctl_connect(const char *path)
{
	struct sockaddr_un addr;
	int fd, ret;

	ret = address(path, &addr);
	if (ret)
		return ret;
	fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
	if (fd < 0)
		return -errno;
	if (!connect(fd, (const struct sockaddr *)&addr, sizeof(addr)))
		return fd;
	ret = -errno;
	close(fd);
	return ret;
}

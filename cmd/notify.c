/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * One datagram to the socket that the manager named: a path, or after '@' a
 * name in the abstract name space. See sd_notify(3), "Notes".
 */
#include "cmd/notify.h"

#include <stddef.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

void notify_manager(const char *state)
{
	struct sockaddr_un addr = { .sun_family = AF_UNIX };
	const char *path = getenv("NOTIFY_SOCKET");
	size_t len = path ? strlen(path) : 0;
	int fd;

	if (!len || len >= sizeof(addr.sun_path) ||
	    (path[0] != '/' && path[0] != '@'))
		return;
	memcpy(addr.sun_path, path, len);
	if (path[0] == '@')
		addr.sun_path[0] = 0;
	fd = socket(AF_UNIX, SOCK_DGRAM | SOCK_CLOEXEC, 0);
	if (fd < 0)
		return;
	(void)!sendto(
		fd, state, strlen(state), MSG_DONTWAIT | MSG_NOSIGNAL,
		(const struct sockaddr *)&addr,
		(socklen_t)(offsetof(struct sockaddr_un, sun_path) + len));
	close(fd);
}

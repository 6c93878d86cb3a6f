/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * Where control sockets are.
 */
#ifndef TR_CTL_PATH_H
#define TR_CTL_PATH_H

#include "base/compiler.h"

#include <stdbool.h>
#include <sys/un.h>

/* Longest path of a socket, with its end. */
#define CTL_PATH_MAX sizeof(((struct sockaddr_un *)0)->sun_path)

/*
 * The nth place, from 0, that servers take and clients look at when none is
 * named: $XDG_RUNTIME_DIR/tailrace/control, then /run/tailrace/control. False:
 * there are no more.
 */
bool ctl_default_path(unsigned nth, char path[CTL_PATH_MAX]);

/*
 * Listens at path, an absolute one, for this user and root only. A socket that
 * nobody listens at any more is replaced. The descriptor (not blocking), or
 * -EADDRINUSE, -ENAMETOOLONG, or what bind(2) says.
 */
int ctl_listen(const char *path) MUST_CHECK;

/*
 * Removes the sockets beside path that servers named path.PID for want of it
 * and left when they were killed.
 */
void ctl_clean(const char *path);

/* Connects: a descriptor or -errno. */
int ctl_connect(const char *path) MUST_CHECK;

#endif

/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * Names of clients, for exports to patterns of names. Kept for a few minutes;
 * any thread may call.
 */
#ifndef TR_FS_CLIENTNAME_H
#define TR_FS_CLIENTNAME_H

#include "base/compiler.h"

#include <stdbool.h>
#include <sys/socket.h>

/* RFC 1035, section 2.3.4, and a NUL. */
#define CLIENT_NAME_MAX 256

/*
 * The peer's name, only if the name leads back to the address. Blocks on the
 * resolver when the answer is not known.
 */
bool client_name(const struct sockaddr *peer, char name[CLIENT_NAME_MAX]);

#endif

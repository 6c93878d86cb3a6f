/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Telling the service manager how a service is: sd_notify(3)'s protocol.
 */
#ifndef TAILRACE_NOTIFY_H
#define TAILRACE_NOTIFY_H

/* Sends "READY=1" or the like to $NOTIFY_SOCKET. Nobody there, or one who does
 * not listen, is no error: we serve all the same. Never blocks. */
void notify_manager(const char *state);

#endif

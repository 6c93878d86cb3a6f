/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * The control socket: statistics, parameters and traces of a running server.
 *
 * A client sends a line, a request of words (ctl/text.h), and reads the answer:
 * "ok" and rows that end with a line ".", or "error ERRNO MESSAGE". Then it may send
 * the next.
 *
 *	stat                          rows of ctl/stat.h
 *	get [NAME]                    rows of ctl/param.h
 *	get-export PATH [NAME]
 *	set NAME VALUE
 *	set-export PATH NAME VALUE
 *	trace NAME...                 "ok", then events until the client closes;
 *	                              "lost N": that many were not sent
 *
 * The socket is open to the server's user and root. One thread serves all
 * clients and never blocks on one of them.
 */
#ifndef TR_CTL_SERVER_H
#define TR_CTL_SERVER_H

#include "ctl/path.h"
#include "fs/server.h"
#include "rpc/server.h"

/* A request: a path of PATH_MAX bytes may have four for each. */
#define CTL_REQUEST_MAX 20480
#define CTL_WORDS_MAX 64
/* More are not accepted until one has left; the idle one makes room. */
#define CTL_CLIENTS_MAX 32
/* An answer: statistics of the most exports and clients there can be. */
#define CTL_ANSWER_MAX (8u << 20)
/* Events that wait for a slow reader; then they are lost, and counted. */
#define CTL_TRACE_MAX (1u << 20)

/* What there is to look at; stays in place until ctl_destroy(). */
struct ctl_env {
	struct fs_server *fs;
	struct rpc_server *rpc;
	const char *version;
};

struct ctl;

/*
 * Serves path; NULL: one of the default places, or beside it if another server
 * is there. 0, or -errno and nothing runs; a path that was named and is taken
 * is -EADDRINUSE.
 */
int ctl_create(const struct ctl_env *env, const char *path,
	       struct ctl **out) MUST_CHECK;

/* The absolute path. */
const char *ctl_path(const struct ctl *ctl);

/* Ends all clients and removes the socket. */
void ctl_destroy(struct ctl *ctl);

#endif

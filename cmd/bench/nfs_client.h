/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * One NFSv3 connection over libnfs's asynchronous calls, and the calls that a
 * benchmark makes one at a time around its load: each waits for its reply.
 * A connection belongs to one thread at a time.
 */
#ifndef TAILRACE_NFS_CLIENT_H
#define TAILRACE_NFS_CLIENT_H

#include <stdint.h>

/* RFC 1813, 2.4: file handles and write verifiers. */
#define NFS_HANDLE_MAX 64
#define NFS_VERIFIER_LEN 8

struct nfs_handle {
	uint32_t len;
	char bytes[NFS_HANDLE_MAX];
};

struct rpc_context;

/* Negative: -errno of connecting, of the wire, or of the server's status; a
 * reply that does not come within a minute is -ETIMEDOUT. */

int nfs_client_connect(const char *server, uint16_t port,
		       struct rpc_context **out);
void nfs_client_disconnect(struct rpc_context *rpc);

/* The root of an export, over a connection of its own. */
int nfs_client_mount(const char *server, uint16_t mount_port, const char *path,
		     struct nfs_handle *root);

/* Makes the file, or cuts it to nothing if it is there. */
int nfs_client_create(struct rpc_context *rpc, const struct nfs_handle *dir,
		      const char *name, struct nfs_handle *out);
int nfs_client_lookup(struct rpc_context *rpc, const struct nfs_handle *dir,
		      const char *name, struct nfs_handle *out);
/* 0 if there is no such file. */
int nfs_client_remove(struct rpc_context *rpc, const struct nfs_handle *dir,
		      const char *name);
/* All of the file. */
int nfs_client_commit(struct rpc_context *rpc, const struct nfs_handle *file,
		      char verifier[NFS_VERIFIER_LEN]);

#endif

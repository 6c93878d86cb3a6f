/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * Registration with the host's rpcbind, if it runs: version 4 of its protocol
 * (RFC 1833) over its local socket, else the old portmapper's version 2 over
 * TCP to 127.0.0.1. Blocks, at most RPC_BIND_TIMEOUT_NS per call.
 */
#ifndef TR_RPC_RPCBIND_H
#define TR_RPC_RPCBIND_H

#include "base/compiler.h"

#include <stdbool.h>

#define RPC_BIND_TIMEOUT_NS 2000000000ull

/*
 * Registers prog, vers on TCP port (IPv4, and IPv6 if ipv6). A stale entry of
 * the same program and version is replaced. 0; -ENOENT: rpcbind does not run;
 * -EACCES: it refused; -ETIMEDOUT, -EPROTO.
 */
int rpc_bind_set(uint32_t prog, uint32_t vers, uint16_t port,
		 bool ipv6) MUST_CHECK;

/* Takes it back; what was not there is no error. */
int rpc_bind_unset(uint32_t prog, uint32_t vers, bool ipv6) MUST_CHECK;

#endif

/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * A client of rpcbind, as small as that.
 *
 * One call a connection: connect, send, receive one fragment, look at the
 * result. The local socket is asked first: rpcbind believes the user id of its
 * peer there, and lets only the owner take an entry back. Without it the
 * portmapper's version 2 is asked over TCP, which rpcbind takes from the
 * loopback (started with -i) and old portmappers always.
 *
 * The conversation is put together and taken apart with xdr/, and what comes
 * back is checked like any other input.
 */
#include "rpc/rpcbind.h"

#include "base/clock.h"
#include "rpc/msg.h"

#include <netinet/in.h>
#include <stdio.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#define BIND_PROG 100000
#define BIND_PORT 111
#define BIND_SOCKET "/run/rpcbind.sock"
#define BIND_MSG_MAX 512

enum { BIND_SET = 1, BIND_UNSET = 2 };

/* RFC 1833, section 2.1: rpcb, and section 3.1: mapping. */
XDR_OPAQUE(bind_string, 64)
#define RPC_BIND_RPCB(F)                                                       \
	F(u32, prog)                                                           \
	F(u32, vers)                                                           \
	F(bind_string, netid)                                                  \
	F(bind_string, addr)                                                   \
	F(bind_string, owner)
XDR_STRUCT(bind_rpcb, RPC_BIND_RPCB)

#define RPC_BIND_MAPPING(F)                                                    \
	F(u32, prog)                                                           \
	F(u32, vers)                                                           \
	F(u32, prot)                                                           \
	F(u32, port)
XDR_STRUCT(bind_mapping, RPC_BIND_MAPPING)

static int bind_connect(const struct sockaddr *addr, socklen_t len)
{
	struct timeval limit = { .tv_sec = RPC_BIND_TIMEOUT_NS / NS_PER_S };
	int fd = socket(addr->sa_family, SOCK_STREAM | SOCK_CLOEXEC, 0);

	if (fd < 0)
		return -errno;
	(void)setsockopt(fd, SOL_SOCKET, SO_RCVTIMEO, &limit, sizeof(limit));
	(void)setsockopt(fd, SOL_SOCKET, SO_SNDTIMEO, &limit, sizeof(limit));
	if (!connect(fd, addr, len))
		return fd;
	close(fd);
	return -ENOENT;
}

static int bind_connect_local(void)
{
	struct sockaddr_un un = { .sun_family = AF_UNIX,
				  .sun_path = BIND_SOCKET };

	return bind_connect((struct sockaddr *)&un, sizeof(un));
}

static int bind_connect_tcp(void)
{
	struct sockaddr_in in = { .sin_family = AF_INET,
				  .sin_port = htons(BIND_PORT),
				  .sin_addr.s_addr = htonl(INADDR_LOOPBACK) };

	return bind_connect((struct sockaddr *)&in, sizeof(in));
}

static int recv_all(int fd, uint8_t *p, size_t len)
{
	ssize_t n;

	for (; len; len -= (size_t)n, p += n) {
		/* Work of a ring of this thread interrupts calls that have a
		 * time limit. */
		do {
			n = recv(fd, p, len, 0);
		} while (n < 0 && errno == EINTR);
		if (n < 0)
			return errno == EAGAIN ? -ETIMEDOUT : -errno;
		if (!n)
			return -EPROTO;
	}
	return 0;
}

/* The bool that is the result of SET and UNSET. */
static int reply_parse(const uint8_t *buf, size_t len, uint32_t xid)
{
	struct xdr_in in;
	uint32_t v[6];
	bool done;

	xdr_in_init(&in, buf, len);
	for (size_t i = 0; i < ARRAY_SIZE(v); i++)
		if (xdr_get_u32(&in, &v[i]))
			return -EPROTO;
	if (v[0] != xid || v[1] != RPC_REPLY)
		return -EPROTO;
	if (v[2])
		return -EACCES;
	/* An empty verifier, then the accept status. */
	if (v[4] || v[5] || xdr_get_bool(&in, &done))
		return -EPROTO;
	return done ? 0 : -EACCES;
}

/* Sends the call in out, mark first, on fd and closes it. */
static int bind_call(int fd, struct xdr_out *out, uint32_t xid)
{
	size_t len = xdr_out_len(out);
	uint8_t buf[BIND_MSG_MAX];
	uint32_t mark;
	int err = -EPROTO;

	xdr_store32(out->start, (uint32_t)(len - 4) | RPC_LAST_FRAGMENT);
	if (send(fd, out->start, len, MSG_NOSIGNAL) != (ssize_t)len)
		goto out;
	err = recv_all(fd, buf, 4);
	if (err)
		goto out;
	mark = xdr_load32(buf);
	err = -EPROTO;
	if (!(mark & RPC_LAST_FRAGMENT))
		goto out;
	mark &= ~RPC_LAST_FRAGMENT;
	if (mark > sizeof(buf))
		goto out;
	err = recv_all(fd, buf, mark);
	if (!err)
		err = reply_parse(buf, mark, xid);
out:
	close(fd);
	return err;
}

static void call_begin(struct xdr_out *out, uint8_t *buf, uint32_t xid,
		       uint32_t vers, uint32_t proc)
{
	xdr_out_init(out, buf, BIND_MSG_MAX);
	xdr_out_u32(out, 0);
	xdr_out_u32(out, xid);
	xdr_out_u32(out, RPC_CALL);
	xdr_out_u32(out, RPC_VERSION);
	xdr_out_u32(out, BIND_PROG);
	xdr_out_u32(out, vers);
	xdr_out_u32(out, proc);
	for (int i = 0; i < 4; i++)
		xdr_out_u32(out, 0);
}

static struct xdr_opaque string(const char *s)
{
	return (struct xdr_opaque){ (const uint8_t *)s, (uint32_t)strlen(s) };
}

/* Version 4 over the local socket; addr empty in an UNSET. */
static int bind_local(uint32_t proc, uint32_t prog, uint32_t vers,
		      const char *netid, const char *addr)
{
	struct bind_rpcb r = { .prog = prog, .vers = vers };
	uint32_t xid = (uint32_t)clock_ns();
	uint8_t buf[BIND_MSG_MAX];
	struct xdr_out out;
	char owner[16];
	int fd = bind_connect_local();

	if (fd < 0)
		return fd;
	snprintf(owner, sizeof(owner), "%u", (unsigned)geteuid());
	r.netid = string(netid);
	r.addr = string(addr);
	r.owner = string(owner);
	call_begin(&out, buf, xid, 4, proc);
	xdr_put_bind_rpcb(&out, &r);
	return bind_call(fd, &out, xid);
}

static int bind_tcp(uint32_t proc, uint32_t prog, uint32_t vers, uint16_t port)
{
	struct bind_mapping m = { prog, vers, IPPROTO_TCP, port };
	uint32_t xid = (uint32_t)clock_ns();
	uint8_t buf[BIND_MSG_MAX];
	struct xdr_out out;
	int fd = bind_connect_tcp();

	if (fd < 0)
		return fd;
	call_begin(&out, buf, xid, 2, proc);
	xdr_put_bind_mapping(&out, &m);
	return bind_call(fd, &out, xid);
}

static int bind_set_one(uint32_t prog, uint32_t vers, const char *netid,
			const char *any, uint16_t port)
{
	char addr[64];

	/* RFC 5665: the address, then the port's two bytes in decimal. */
	snprintf(addr, sizeof(addr), "%s.%u.%u", any, port >> 8, port & 255u);
	(void)!bind_local(BIND_UNSET, prog, vers, netid, "");
	return bind_local(BIND_SET, prog, vers, netid, addr);
}

int rpc_bind_set(uint32_t prog, uint32_t vers, uint16_t port, bool ipv6)
{
	int err = bind_set_one(prog, vers, "tcp", "0.0.0.0", port);

	if (!err && ipv6)
		return bind_set_one(prog, vers, "tcp6", "::", port);
	if (err != -ENOENT)
		return err;
	(void)!bind_tcp(BIND_UNSET, prog, vers, 0);
	return bind_tcp(BIND_SET, prog, vers, port);
}

/* Refused is what rpcbind says to what is not there. */
static int bind_gone(int err)
{
	return err == -EACCES ? 0 : err;
}

int rpc_bind_unset(uint32_t prog, uint32_t vers, bool ipv6)
{
	int err = bind_gone(bind_local(BIND_UNSET, prog, vers, "tcp", ""));

	if (!err && ipv6)
		return bind_gone(
			bind_local(BIND_UNSET, prog, vers, "tcp6", ""));
	if (err != -ENOENT)
		return err;
	return bind_gone(bind_tcp(BIND_UNSET, prog, vers, 0));
}

/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * The client's side of the loopback tests: blocking sockets, calls put together
 * byte by byte. Everything asserts.
 */
#ifndef TR_TEST_E2E_RPC_CLIENT_H
#define TR_TEST_E2E_RPC_CLIENT_H

#include "lib/test.h"

#include "base/wait.h"
#include "rpc/server.h"

/* The test program: what its procedures do. */
#define TEST_PROG 400100
#define TEST_VERS 3
enum test_proc {
	TEST_NULL,
	TEST_ECHO, /* an opaque, given back */
	TEST_WRITE, /* 64-bit offset, payload; answers its sum */
	TEST_READ, /* 32-bit length; that much bulk */
	TEST_ONCE, /* counts how often it ran, answers that */
	TEST_BLOCK, /* blocks until test_unblock(); not to be run twice */
	TEST_GAUGE, /* the same within the gauge */
	TEST_SPIN, /* like TEST_BLOCK, without saying so */
	TEST_BIG, /* 32-bit length; that much in the head */
	TEST_SINK, /* as TEST_WRITE into one place, not looked at */
	TEST_PROCS
};

struct test_server {
	struct rpc_server *rpc;
	struct rpc_program programs[2];
	struct rpc_gauge *gauge;
	uint16_t port;
	atomic_int runs; /* of TEST_ONCE */
	atomic_int blocked; /* in TEST_BLOCK and the like now */
	atomic_int go; /* how many may leave */
	atomic_int places; /* payloads given minus freed */
	atomic_int releases; /* of bulk */
	atomic_bool no_place; /* place() says -ENOMEM */
	struct waitq change;
	uint8_t *sink; /* TEST_SINK's memory */
	struct iovec sink_iov;
};

/* options may be NULL; programs are filled in. */
void test_server_start(struct test_server *t,
		       const struct rpc_server_options *options);
void test_server_stop(struct test_server *t);

/* Waits until n calls are in a blocking procedure. */
void test_wait_blocked(struct test_server *t, int n);
void test_unblock(struct test_server *t, int n);
/* Waits until the statistic is at least n. */
#define test_wait_stat(t, name, n)                                             \
	test_wait_stat_at(t, offsetof(struct rpc_statistics, name), n)
void test_wait_stat_at(struct test_server *t, size_t at, uint64_t n);
struct rpc_statistics test_stats(struct test_server *t);

int client_connect(struct test_server *t);

struct client_msg {
	struct xdr_out out;
	uint8_t buf[4 << 20];
};

/* A record mark to be closed by client_end(), header with AUTH_SYS, up to the
 * arguments. */
void client_begin(struct client_msg *m, uint32_t xid, uint32_t proc);
void client_end(struct client_msg *m);
void client_send(int fd, const void *p, size_t len);
/* Sends a whole call with one word or an opaque of len as arguments. */
void client_call_null(int fd, uint32_t xid);
void client_call_word(int fd, uint32_t xid, uint32_t proc, uint32_t word);
void client_call_opaque(int fd, uint32_t xid, uint32_t proc, const void *p,
			uint32_t len);

/* Receives one reply of at most max bytes: its length; 0: closed. */
size_t client_recv(int fd, void *buf, size_t max);
/* Receives an accepted, successful reply to xid; in is at its results. */
void client_ok(int fd, uint32_t xid, struct xdr_in *in, void *buf, size_t max);
/* Receives a reply and returns its xid. */
uint32_t client_any(int fd);
/* The connection was closed by the server. */
bool client_closed(int fd);

#endif

/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * A server with a program made for tests, and the client's side.
 */
#include "e2e/rpc_client.h"

#include "base/clock.h"
#include "base/mem.h"
#include "base/wait.h"

#include <netinet/in.h>
#include <sys/socket.h>
#include <unistd.h>

#define TEST_PAYLOAD_MAX (1u << 20)

static struct test_server *server_of(struct rpc_call *call)
{
	return call->program->arg;
}

static enum rpc_status null_run(struct rpc_call *call, void *args)
{
	return RPC_SUCCESS;
}

static enum rpc_status echo_run(struct rpc_call *call, void *args)
{
	struct xdr_opaque v;

	if (xdr_get_opaque_max(&call->in, &v, TEST_PAYLOAD_MAX))
		return RPC_GARBAGE_ARGS;
	if (rpc_reply_reserve(call, v.len + 8))
		return RPC_SYSTEM_ERR;
	xdr_out_opaque(&call->out, v.data, v.len);
	return RPC_SUCCESS;
}

#define TEST_WRITE_PAGE 4096u

/* Memory of single pages, the first at the file offset's place in its page. */
static int write_place(struct rpc_call *call, struct xdr_in *in, size_t left,
		       struct rpc_place *place)
{
	struct test_server *t = server_of(call);
	uint32_t len, at, n;
	uint64_t off;
	int nr = 0;
	uint8_t *mem;

	if (xdr_get_u64(in, &off) || xdr_get_u32(in, &len))
		return -EAGAIN;
	if (!len || len > TEST_PAYLOAD_MAX || len > left)
		return -EINVAL;
	if (atomic_load(&t->no_place))
		return -ENOMEM;
	at = off % TEST_WRITE_PAGE;
	mem = mem_zalloc_aligned(TEST_WRITE_PAGE, align_up(at + len, 4096));
	place->iov = mem_zalloc_array(len / TEST_WRITE_PAGE + 2,
				      sizeof(struct iovec));
	assert_non_null(mem);
	assert_non_null(place->iov);
	place->arg = mem;
	for (uint32_t done = 0; done < len; done += n, nr++) {
		n = min_of(len - done, TEST_WRITE_PAGE - (at + done) % 4096);
		place->iov[nr].iov_base = mem + at + done;
		place->iov[nr].iov_len = n;
	}
	place->head_len = 12;
	place->len = len;
	place->nr_iov = nr;
	atomic_fetch_add(&t->places, 1);
	return 0;
}

static void write_unplace(struct rpc_call *call, struct rpc_place *place)
{
	atomic_fetch_sub(&server_of(call)->places, 1);
	mem_free(place->iov);
	mem_free(place->arg);
}

static enum rpc_status write_run(struct rpc_call *call, void *args)
{
	struct iovec iov[TEST_PAYLOAD_MAX / TEST_WRITE_PAGE + 2];
	uint32_t len, sum = 0, after;
	uint64_t off;
	int nr;

	if (xdr_get_u64(&call->in, &off) ||
	    xdr_get_bulk(&call->in, TEST_PAYLOAD_MAX, iov, ARRAY_SIZE(iov), &nr,
			 &len))
		return RPC_GARBAGE_ARGS;
	for (int i = 0; i < nr; i++)
		for (size_t j = 0; j < iov[i].iov_len; j++)
			sum = sum * 31 + ((uint8_t *)iov[i].iov_base)[j];
	/* An optional word behind the payload. */
	if (xdr_in_left(&call->in) && xdr_get_u32(&call->in, &after))
		return RPC_GARBAGE_ARGS;
	xdr_out_u32(&call->out, sum);
	xdr_out_u32(&call->out,
		    nr ? (uint32_t)((uintptr_t)iov[0].iov_base % 4096) : 0);
	return RPC_SUCCESS;
}

static int sink_place(struct rpc_call *call, struct xdr_in *in, size_t left,
		      struct rpc_place *place)
{
	struct test_server *t = server_of(call);
	uint32_t len;

	if (xdr_get_u32(in, &len))
		return -EAGAIN;
	if (!len || len > TEST_PAYLOAD_MAX || len > left)
		return -EINVAL;
	t->sink_iov = (struct iovec){ t->sink, len };
	*place = (struct rpc_place){ 4, len, &t->sink_iov, 1, NULL };
	return 0;
}

static void sink_unplace(struct rpc_call *call, struct rpc_place *place)
{
}

struct test_bulk {
	struct test_server *t;
	struct iovec iov[TEST_PAYLOAD_MAX / TEST_WRITE_PAGE + 1];
	uint8_t *mem;
};

static void bulk_release(void *arg)
{
	struct test_bulk *b = arg;

	atomic_fetch_add(&b->t->releases, 1);
	mem_free(b->mem);
	mem_free(b);
}

static enum rpc_status read_run(struct rpc_call *call, void *args)
{
	uint32_t len = *(uint32_t *)args, done, n;
	struct test_bulk *b;
	int nr = 0;

	if (len > TEST_PAYLOAD_MAX)
		return RPC_GARBAGE_ARGS;
	b = mem_zalloc(sizeof(*b));
	assert_non_null(b);
	b->t = server_of(call);
	b->mem = mem_alloc(len + 1);
	assert_non_null(b->mem);
	for (done = 0; done < len; done += n) {
		n = min_of(len - done, TEST_WRITE_PAGE);
		memset(b->mem + done, (int)(done / TEST_WRITE_PAGE), n);
		b->iov[nr++] = (struct iovec){ b->mem + done, n };
	}
	xdr_out_u32(&call->out, len);
	assert_int_equal(rpc_reply_bulk(call, b->iov, nr, len, bulk_release, b),
			 0);
	xdr_out_u32(&call->out, 0x12345678);
	return RPC_SUCCESS;
}

static enum rpc_status once_run(struct rpc_call *call, void *args)
{
	struct test_server *t = server_of(call);

	xdr_out_u32(&call->out, (uint32_t)atomic_fetch_add(&t->runs, 1) + 1);
	return RPC_SUCCESS;
}

static bool leave(struct test_server *t)
{
	int go = atomic_load(&t->go);

	while (go > 0)
		if (atomic_compare_exchange_weak(&t->go, &go, go - 1))
			return true;
	return false;
}

static void block_here(struct test_server *t)
{
	atomic_fetch_add(&t->blocked, 1);
	waitq_wake_all(&t->change);
	wait_event(&t->change, leave(t));
	atomic_fetch_sub(&t->blocked, 1);
	waitq_wake_all(&t->change);
}

static enum rpc_status block_run(struct rpc_call *call, void *args)
{
	rpc_about_to_block(call);
	block_here(server_of(call));
	return RPC_SUCCESS;
}

static enum rpc_status gauge_run(struct rpc_call *call, void *args)
{
	struct test_server *t = server_of(call);

	if (!rpc_try_block(call, t->gauge))
		return RPC_AGAIN;
	block_here(t);
	return RPC_SUCCESS;
}

static enum rpc_status spin_run(struct rpc_call *call, void *args)
{
	block_here(server_of(call));
	return RPC_SUCCESS;
}

static enum rpc_status big_run(struct rpc_call *call, void *args)
{
	uint32_t len = *(uint32_t *)args;

	if (rpc_reply_reserve(call, (size_t)len + 8))
		return RPC_SYSTEM_ERR;
	xdr_out_u32(&call->out, len);
	memset(xdr_out_hole(&call->out, len), 7, len);
	return RPC_SUCCESS;
}

static int word_decode(struct xdr_in *in, void *args)
{
	return xdr_get_u32(in, args);
}

static const struct rpc_proc test_procs[TEST_PROCS] = {
	[TEST_SINK] = { .name = "sink",
			.run = null_run,
			.place = sink_place,
			.unplace = sink_unplace },
	[TEST_NULL] = { .name = "null", .run = null_run, .flags = RPC_ANYBODY },
	[TEST_ECHO] = { .name = "echo", .run = echo_run },
	[TEST_WRITE] = { .name = "write",
			 .run = write_run,
			 .place = write_place,
			 .unplace = write_unplace },
	[TEST_READ] = { .name = "read",
			.run = read_run,
			.decode = word_decode,
			.args_size = 4 },
	[TEST_ONCE] = { .name = "once", .run = once_run, .flags = RPC_ONCE },
	[TEST_BLOCK] = { .name = "block", .run = block_run, .flags = RPC_ONCE },
	[TEST_GAUGE] = { .name = "gauge", .run = gauge_run },
	[TEST_SPIN] = { .name = "spin", .run = spin_run },
	[TEST_BIG] = { .name = "big",
		       .run = big_run,
		       .decode = word_decode,
		       .args_size = 4 },
};

void test_server_start(struct test_server *t,
		       const struct rpc_server_options *options)
{
	struct rpc_server_options o = { 0 };
	struct sockaddr_in in = { .sin_family = AF_INET,
				  .sin_addr.s_addr = htonl(INADDR_LOOPBACK) };

	memset(t, 0, sizeof(*t));
	waitq_init(&t->change);
	t->sink = mem_zalloc_aligned(TEST_WRITE_PAGE, TEST_PAYLOAD_MAX);
	assert_non_null(t->sink);
	if (options)
		o = *options;
	t->programs[0] = (struct rpc_program){ TEST_PROG, TEST_VERS, test_procs,
					       TEST_PROCS, t };
	t->programs[1] = (struct rpc_program){ TEST_PROG, TEST_VERS + 2,
					       test_procs, 1, t };
	o.programs = t->programs;
	o.nr_programs = 2;
	assert_int_equal(rpc_server_create(&o, &t->rpc), 0);
	t->gauge = rpc_gauge_create(rpc_server_nr_workers(t->rpc));
	assert_non_null(t->gauge);
	assert_int_equal(rpc_server_listen(t->rpc, (struct sockaddr *)&in,
					   sizeof(in), &t->port),
			 0);
	assert_int_equal(rpc_server_start(t->rpc), 0);
}

void test_server_stop(struct test_server *t)
{
	struct rpc_statistics st;

	rpc_server_stop(t->rpc, 2 * NS_PER_S);
	st = test_stats(t);
	assert_int_equal(st.bytes_now, 0);
	assert_int_equal(st.conns_now, 0);
	assert_int_equal(atomic_load(&t->places), 0);
	rpc_server_destroy(t->rpc);
	rpc_gauge_destroy(t->gauge);
	mem_free(t->sink);
}

void test_wait_blocked(struct test_server *t, int n)
{
	wait_event(&t->change, atomic_load(&t->blocked) == n);
}

void test_unblock(struct test_server *t, int n)
{
	atomic_fetch_add(&t->go, n);
	waitq_wake_all(&t->change);
}

struct rpc_statistics test_stats(struct test_server *t)
{
	struct rpc_statistics st;

	rpc_server_statistics(t->rpc, &st);
	return st;
}

void test_wait_stat_at(struct test_server *t, size_t at, uint64_t n)
{
	struct rpc_statistics st;

	/* Statistics wake nobody: look again after other threads ran. */
	do {
		clock_sleep(NS_PER_MS);
		st = test_stats(t);
	} while (*(uint64_t *)((char *)&st + at) < n);
}

/* ---- the client ---- */

int client_connect(struct test_server *t)
{
	struct sockaddr_in in = { .sin_family = AF_INET,
				  .sin_port = htons(t->port),
				  .sin_addr.s_addr = htonl(INADDR_LOOPBACK) };
	/* A lost reply fails the test instead of hanging it. */
	struct timeval limit = { .tv_sec = 30 };
	int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);

	assert_true(fd >= 0);
	assert_int_equal(setsockopt(fd, SOL_SOCKET, SO_RCVTIMEO, &limit,
				    sizeof(limit)),
			 0);
	assert_int_equal(connect(fd, (struct sockaddr *)&in, sizeof(in)), 0);
	return fd;
}

void client_begin(struct client_msg *m, uint32_t xid, uint32_t proc)
{
	xdr_out_init(&m->out, m->buf, sizeof(m->buf));
	xdr_out_u32(&m->out, 0);
	xdr_out_u32(&m->out, xid);
	xdr_out_u32(&m->out, RPC_CALL);
	xdr_out_u32(&m->out, RPC_VERSION);
	xdr_out_u32(&m->out, TEST_PROG);
	xdr_out_u32(&m->out, TEST_VERS);
	xdr_out_u32(&m->out, proc);
	xdr_out_u32(&m->out, RPC_AUTH_SYS);
	xdr_out_u32(&m->out, 28);
	xdr_out_u32(&m->out, 1);
	xdr_out_opaque(&m->out, "host", 4);
	xdr_out_u32(&m->out, 1000);
	xdr_out_u32(&m->out, 100);
	xdr_out_u32(&m->out, 1);
	xdr_out_u32(&m->out, 7);
	xdr_out_u32(&m->out, RPC_AUTH_NONE);
	xdr_out_u32(&m->out, 0);
}

void client_end(struct client_msg *m)
{
	assert_false(m->out.overflow);
	xdr_store32(m->buf,
		    (uint32_t)(xdr_out_len(&m->out) - 4) | RPC_LAST_FRAGMENT);
}

void client_send(int fd, const void *p, size_t len)
{
	ssize_t n;

	for (; len; len -= (size_t)n) {
		n = send(fd, p, len, MSG_NOSIGNAL);
		if (n < 0)
			return; /* the server closed: the test looks */
		p = (const uint8_t *)p + n;
	}
}

static void client_finish(struct client_msg *m, int fd)
{
	client_end(m);
	client_send(fd, m->buf, xdr_out_len(&m->out));
	mem_free(m);
}

static struct client_msg *client_new(uint32_t xid, uint32_t proc)
{
	struct client_msg *m = mem_alloc(sizeof(*m));

	assert_non_null(m);
	client_begin(m, xid, proc);
	return m;
}

void client_call_null(int fd, uint32_t xid)
{
	client_finish(client_new(xid, TEST_NULL), fd);
}

void client_call_word(int fd, uint32_t xid, uint32_t proc, uint32_t word)
{
	struct client_msg *m = client_new(xid, proc);

	xdr_out_u32(&m->out, word);
	client_finish(m, fd);
}

void client_call_opaque(int fd, uint32_t xid, uint32_t proc, const void *p,
			uint32_t len)
{
	struct client_msg *m = client_new(xid, proc);

	xdr_out_opaque(&m->out, p, len);
	client_finish(m, fd);
}

static bool recv_all(int fd, uint8_t *p, size_t len)
{
	ssize_t n;

	for (; len; len -= (size_t)n, p += n) {
		n = recv(fd, p, len, 0);
		if (n < 0 && errno == EAGAIN)
			fail_msg("no reply within 30 s");
		if (n <= 0)
			return false;
	}
	return true;
}

size_t client_recv(int fd, void *buf, size_t max)
{
	uint8_t mark[4];
	uint32_t len;

	if (!recv_all(fd, mark, 4))
		return 0;
	len = xdr_load32(mark);
	assert_true(len & RPC_LAST_FRAGMENT);
	len &= ~RPC_LAST_FRAGMENT;
	assert_true(len <= max);
	return recv_all(fd, buf, len) ? len : 0;
}

void client_ok(int fd, uint32_t xid, struct xdr_in *in, void *buf, size_t max)
{
	static const uint32_t want[] = { RPC_REPLY, 0, 0, 0, RPC_SUCCESS };
	size_t len = client_recv(fd, buf, max);
	uint32_t v;

	assert_true(len >= RPC_ACCEPTED_LEN);
	xdr_in_init(in, buf, len);
	assert_int_equal(xdr_get_u32(in, &v), 0);
	assert_int_equal(v, xid);
	for (size_t i = 0; i < ARRAY_SIZE(want); i++) {
		assert_int_equal(xdr_get_u32(in, &v), 0);
		assert_int_equal(v, want[i]);
	}
}

uint32_t client_any(int fd)
{
	uint8_t buf[65536];

	assert_true(client_recv(fd, buf, sizeof(buf)) >= 4);
	return xdr_load32(buf);
}

bool client_closed(int fd)
{
	uint8_t b[4096];
	ssize_t n;

	do {
		n = recv(fd, b, sizeof(b), 0);
	} while (n > 0);
	return n == 0 || errno == ECONNRESET;
}

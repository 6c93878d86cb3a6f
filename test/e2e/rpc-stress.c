/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Goal: many clients at once, of all kinds, get their own answers and nothing
 * is left when they and the server are gone; a ThreadSanitizer build finds no
 * race between leaders, blocked calls, senders and the ticker.
 *
 * Method: client threads draw calls at random, some in flight together, some
 * blocking, some with payload either way; now and then one hangs up in the
 * middle. Few workers, low limits and time limits, so that all the rare paths
 * are walked: leaderless pollers, parked calls, paused and cut connections.
 */
#include "e2e/rpc_client.h"

#include "base/mem.h"
#include "base/rng.h"
#include "base/task.h"

#include <sys/socket.h>
#include <unistd.h>

#define CLIENTS 6

struct stress {
	struct test_server *t;
	uint64_t seed;
	unsigned rounds;
	atomic_uint answered;
	atomic_uint running;
	atomic_uint started;
};

static const uint8_t procs[] = {
	TEST_NULL,  TEST_ECHO,	TEST_WRITE, TEST_READ,
	TEST_BLOCK, TEST_GAUGE, TEST_BIG,   TEST_ONCE
};

static const uint8_t payload[200000];

static size_t call_put(struct client_msg *m, struct rng *r, uint32_t xid)
{
	uint32_t proc = procs[rng_below(r, sizeof(procs))];
	uint32_t len = (uint32_t)rng_below(r, 3)
			       ? (uint32_t)rng_below(r, 300)
			       : (uint32_t)rng_below(r, sizeof(payload));
	uint8_t word[4];

	client_begin(m, xid, proc);
	if (proc == TEST_WRITE)
		xdr_out_u64(&m->out, rng_below(r, 10000));
	if (proc == TEST_ECHO || proc == TEST_WRITE) {
		xdr_out_opaque(&m->out, payload, len);
	} else {
		xdr_store32(word, len);
		xdr_out_bytes(&m->out, word, 4);
	}
	client_end(m);
	return xdr_out_len(&m->out);
}

/* Some calls together, then their replies in whatever order; or hangs up. */
static bool round_run(struct stress *s, struct rng *r, int fd,
		      struct client_msg *m, uint32_t base)
{
	uint32_t nr = 1 + (uint32_t)rng_below(r, 8), seen = 0, xid;
	bool hang_up = !rng_below(r, 10);
	size_t len;

	for (uint32_t i = 0; i < nr; i++) {
		len = call_put(m, r, base + i);
		if (hang_up && i == nr - 1)
			len = rng_below(r, len);
		client_send(fd, m->buf, len);
	}
	if (hang_up)
		return false;
	for (uint32_t i = 0; i < nr; i++) {
		len = client_recv(fd, m->buf, sizeof(m->buf));
		/* The server may cut a client that it finds slow. */
		if (!len)
			return false;
		xid = xdr_load32(m->buf) - base;
		assert_true(xid < nr);
		assert_false(seen & 1u << xid);
		seen |= 1u << xid;
		atomic_fetch_add(&s->answered, 1);
	}
	return true;
}

static void client_main(void *arg)
{
	struct stress *s = arg;
	struct client_msg *m = mem_alloc(sizeof(*m));
	struct rng r;
	uint32_t me;
	int fd = -1;

	/* All come from one address: equal calls with equal xids would be one
	 * call to the reply cache. */
	me = atomic_fetch_add(&s->started, 1);
	rng_seed(&r, s->seed + me);
	for (uint32_t i = 0; i < s->rounds; i++) {
		if (fd < 0)
			fd = client_connect(s->t);
		if (!round_run(s, &r, fd, m, me << 24 | i * 16)) {
			close(fd);
			fd = -1;
		}
	}
	if (fd >= 0)
		close(fd);
	atomic_fetch_sub(&s->running, 1);
	mem_free(m);
}

/* Holds memory for a payload that never comes, again and again, so that others
 * have to wait until it is cut. */
static void staller_run(struct stress *s, struct client_msg *m)
{
	int fd;

	while (atomic_load(&s->running)) {
		fd = client_connect(s->t);
		client_begin(m, 1, TEST_WRITE);
		xdr_out_u64(&m->out, 0);
		xdr_out_opaque(&m->out, payload, sizeof(payload));
		client_end(m);
		client_send(fd, m->buf, 10000);
		assert_true(client_closed(fd));
		close(fd);
	}
}

static void many_clients_at_once(void **state)
{
	struct rpc_server_options o = { .nr_workers = 4,
					.nr_pollers = 2,
					.payload_max = 200000,
					.total_bytes_max = 400000,
					.conn_bytes_max = 400000,
					.stall_ns = 50000000,
					.record_ns = 200000000 };
	struct task *tasks[CLIENTS];
	struct client_msg *m = mem_alloc(sizeof(*m));
	struct rpc_statistics st;
	struct test_server t;
	struct stress s = { .t = &t,
			    .seed = seed_draw(),
			    .rounds = seed_rounds(100) };

	atomic_init(&s.running, CLIENTS);
	test_server_start(&t, &o);
	/* Nothing that blocks blocks for long. */
	test_unblock(&t, 1 << 30);
	for (int i = 0; i < CLIENTS; i++)
		assert_int_equal(
			task_create(&tasks[i], "client", client_main, &s), 0);
	staller_run(&s, m);
	for (int i = 0; i < CLIENTS; i++)
		task_join(tasks[i]);
	mem_free(m);
	assert_true(atomic_load(&s.answered) > s.rounds * CLIENTS);
	st = test_stats(&t);
	/* The rare paths were walked. */
	assert_true(st.handovers);
	assert_true(st.placed);
	assert_true(st.closed_slow);
	assert_true(st.paused);
	test_server_stop(&t);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(many_clients_at_once),
	};
	return cmocka_run_group_tests(tests, leak_setup, leak_check);
}

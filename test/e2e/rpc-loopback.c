/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Goal: well-behaved clients get their answers, whatever the way their bytes
 * come in: batches, fragments, one at a time, placed payload, replies out of
 * order, resent calls.
 *
 * Method: a server on the loopback with a program made for the purpose; each
 * test ends with the server stopped, nothing held, and no descriptor left.
 */
#include "e2e/rpc_client.h"

#include "base/clock.h"
#include "base/mem.h"

#include <sys/socket.h>
#include <unistd.h>

static void batch_is_answered_in_one_send(void **state)
{
	struct client_msg *m = mem_alloc(sizeof(*m));
	uint8_t batch[65536];
	struct test_server t;
	struct rpc_statistics st;
	size_t len = 0;
	int fd;

	/* A held reply waits for RPC_BATCH_NS at most: time stands still, so
	 * that a slow build holds as many as a fast one. */
	clock_sim_start(clock_ns());
	test_server_start(&t, NULL);
	fd = client_connect(&t);
	for (uint32_t i = 0; i < 100; i++) {
		client_begin(m, i, TEST_NULL);
		client_end(m);
		memcpy(batch + len, m->buf, xdr_out_len(&m->out));
		len += xdr_out_len(&m->out);
	}
	client_send(fd, batch, len);
	for (uint32_t i = 0; i < 100; i++)
		assert_int_equal(client_any(fd), i);
	st = test_stats(&t);
	assert_int_equal(st.calls, 100);
	assert_in_range(st.recvs + st.sends, 0, 19);
	clock_sim_stop();
	close(fd);
	test_server_stop(&t);
	mem_free(m);
}

static void any_cut_of_the_stream_is_the_same(void **state)
{
	struct client_msg *m = mem_alloc(sizeof(*m));
	uint8_t data[40], reply[256];
	struct test_server t;
	struct xdr_opaque v;
	struct xdr_in in;
	size_t len, cut;
	int fd;

	test_server_start(&t, NULL);
	fd = client_connect(&t);
	for (size_t i = 0; i < sizeof(data); i++)
		data[i] = (uint8_t)i;
	client_begin(m, 5, TEST_ECHO);
	xdr_out_opaque(&m->out, data, sizeof(data));
	client_end(m);
	len = xdr_out_len(&m->out);
	for (cut = 1; cut < len; cut++) {
		client_send(fd, m->buf, cut);
		/* Let the first part arrive alone. */
		test_wait_stat(&t, bytes_in, (cut - 1) * len + cut);
		client_send(fd, m->buf + cut, len - cut);
		client_ok(fd, 5, &in, reply, sizeof(reply));
		assert_int_equal(xdr_get_opaque_max(&in, &v, 100), 0);
		assert_int_equal(v.len, sizeof(data));
		assert_memory_equal(v.data, data, sizeof(data));
	}
	close(fd);
	test_server_stop(&t);
	mem_free(m);
}

/* The record of m, sent in fragments of at most n bytes. */
static void send_fragments(int fd, struct client_msg *m, size_t n)
{
	size_t len = xdr_out_len(&m->out) - 4, take, used = 0;
	uint8_t *out = mem_alloc(len + 4 * (len / n + 1));
	const uint8_t *p = m->buf + 4;

	for (; len; len -= take, p += take) {
		take = min_of(len, n);
		xdr_store32(out + used,
			    (uint32_t)take |
				    (take == len ? RPC_LAST_FRAGMENT : 0));
		memcpy(out + used + 4, p, take);
		used += 4 + take;
	}
	client_send(fd, out, used);
	mem_free(out);
}

static void fragments_are_put_together(void **state)
{
	static const size_t sizes[] = { 1, 3, 4, 100, 4096, 100000, 1 << 20 };
	struct client_msg *m = mem_alloc(sizeof(*m));
	uint8_t *data = mem_alloc(300000), *reply = mem_alloc(300100);
	struct test_server t;
	struct xdr_opaque v;
	struct xdr_in in;
	uint32_t len;
	int fd;

	test_server_start(&t, NULL);
	fd = client_connect(&t);
	for (uint32_t i = 0; i < 300000; i++)
		data[i] = (uint8_t)(i * 7 + i / 256);
	for (uint32_t i = 0; i < ARRAY_SIZE(sizes); i++) {
		len = sizes[i] < 1024 ? (uint32_t)sizes[i] * 900 : 300000;
		client_begin(m, i, TEST_ECHO);
		xdr_out_opaque(&m->out, data, len);
		client_end(m);
		send_fragments(fd, m, sizes[i]);
		client_ok(fd, i, &in, reply, 300100);
		assert_int_equal(xdr_get_opaque_max(&in, &v, 300000), 0);
		assert_int_equal(v.len, len);
		assert_memory_equal(v.data, data, len);
	}
	close(fd);
	test_server_stop(&t);
	mem_free(data);
	mem_free(reply);
	mem_free(m);
}

static uint32_t sum_of(const uint8_t *p, uint32_t len)
{
	uint32_t sum = 0;

	for (uint32_t i = 0; i < len; i++)
		sum = sum * 31 + p[i];
	return sum;
}

static void send_write(int fd, struct client_msg *m, uint32_t xid, uint64_t off,
		       const uint8_t *data, uint32_t len, bool after)
{
	client_begin(m, xid, TEST_WRITE);
	xdr_out_u64(&m->out, off);
	xdr_out_opaque(&m->out, data, len);
	if (after)
		xdr_out_u32(&m->out, 9);
	client_end(m);
	client_send(fd, m->buf, xdr_out_len(&m->out));
}

static void payload_lands_at_its_offset_in_the_page(void **state)
{
	static const uint32_t lens[] = { 1,	4095,  4096,   5001,
					 47008, 65536, 1 << 20 };
	static const uint64_t offs[] = { 0, 1, 513, 4095, 47008 };
	struct client_msg *m = mem_alloc(sizeof(*m));
	uint8_t *data = mem_alloc(1 << 20), reply[256];
	struct test_server t;
	struct xdr_in in;
	uint32_t xid = 0, v;
	int fd;

	test_server_start(&t, NULL);
	fd = client_connect(&t);
	for (uint32_t i = 0; i < 1 << 20; i++)
		data[i] = (uint8_t)(i * 13 + i / 4096);
	for (size_t i = 0; i < ARRAY_SIZE(lens); i++) {
		for (size_t j = 0; j < ARRAY_SIZE(offs); j++, xid++)
			send_write(fd, m, xid, offs[j], data, lens[i], j & 1);
		xid -= ARRAY_SIZE(offs);
		for (size_t j = 0; j < ARRAY_SIZE(offs); j++, xid++) {
			client_ok(fd, xid, &in, reply, sizeof(reply));
			assert_int_equal(xdr_get_u32(&in, &v), 0);
			assert_int_equal(v, sum_of(data, lens[i]));
			assert_int_equal(xdr_get_u32(&in, &v), 0);
			if (lens[i] >= 4095)
				assert_int_equal(v, offs[j] % 4096);
		}
	}
	assert_int_equal(test_stats(&t).placed, 6 * ARRAY_SIZE(offs));
	close(fd);
	test_server_stop(&t);
	mem_free(data);
	mem_free(m);
}

static void bulk_is_sent_and_released(void **state)
{
	uint8_t *reply = mem_alloc(2 << 20);
	struct test_server t;
	struct xdr_opaque v;
	struct xdr_in in;
	uint32_t word, len;
	int fd;

	test_server_start(&t, NULL);
	fd = client_connect(&t);
	for (uint32_t i = 0; i < 20; i++)
		client_call_word(fd, i, TEST_READ, i * 50001);
	for (uint32_t i = 0; i < 20; i++) {
		len = i * 50001;
		client_ok(fd, i, &in, reply, 2 << 20);
		assert_int_equal(xdr_get_opaque_max(&in, &v, 1 << 20), 0);
		assert_int_equal(v.len, len);
		for (uint32_t j = 0; j < len; j += 997)
			assert_int_equal(v.data[j], (uint8_t)(j / 4096));
		assert_int_equal(xdr_get_u32(&in, &word), 0);
		assert_int_equal(word, 0x12345678);
	}
	client_call_word(fd, 1, TEST_BIG, 500000);
	assert_int_equal(client_recv(fd, reply, 2 << 20), 24 + 4 + 500000);
	close(fd);
	test_server_stop(&t);
	assert_int_equal(atomic_load(&t.releases), 20);
	mem_free(reply);
}

static void others_are_answered_while_some_block(void **state)
{
	struct test_server t;
	int fd;

	test_server_start(&t, NULL);
	fd = client_connect(&t);
	client_call_null(fd, 1);
	client_call_word(fd, 2, TEST_BLOCK, 0);
	client_call_word(fd, 3, TEST_BLOCK, 0);
	client_call_null(fd, 4);
	assert_int_equal(client_any(fd), 1);
	assert_int_equal(client_any(fd), 4);
	test_wait_blocked(&t, 2);
	test_unblock(&t, 2);
	assert_int_equal(client_any(fd) + client_any(fd), 5);
	/* A handler that does not say that it blocks loses the sockets too. */
	client_call_word(fd, 5, TEST_SPIN, 0);
	client_call_null(fd, 6);
	assert_int_equal(client_any(fd), 6);
	test_unblock(&t, 1);
	assert_int_equal(client_any(fd), 5);
	assert_true(test_stats(&t).steals >= 1);
	close(fd);
	test_server_stop(&t);
}

static void blocked_calls_leave_a_quarter_of_the_workers(void **state)
{
	struct rpc_server_options o = { .nr_workers = 4, .nr_pollers = 1 };
	struct test_server t;
	unsigned blocked, parked;
	uint32_t sum = 0;
	int fd;

	test_server_start(&t, &o);
	fd = client_connect(&t);
	for (uint32_t i = 1; i <= 10; i++)
		client_call_word(fd, i, TEST_GAUGE, 0);
	client_call_null(fd, 100);
	assert_int_equal(client_any(fd), 100);
	test_wait_blocked(&t, 3);
	rpc_gauge_read(t.gauge, &blocked, &parked);
	assert_int_equal(blocked, 3);
	assert_int_equal(parked, 7);
	test_unblock(&t, 10);
	for (uint32_t i = 1; i <= 10; i++)
		sum += client_any(fd);
	assert_int_equal(sum, 55);
	close(fd);
	test_server_stop(&t);
}

static void resent_calls_run_once(void **state)
{
	struct test_server t;
	uint8_t reply[256];
	struct xdr_in in;
	uint32_t v;
	int fd;

	test_server_start(&t, NULL);
	for (uint32_t i = 0; i < 3; i++) {
		/* From another port each time. */
		fd = client_connect(&t);
		client_call_word(fd, 77, TEST_ONCE, 1);
		client_ok(fd, 77, &in, reply, sizeof(reply));
		assert_int_equal(xdr_get_u32(&in, &v), 0);
		assert_int_equal(v, 1);
		close(fd);
	}
	fd = client_connect(&t);
	client_call_word(fd, 77, TEST_ONCE, 2);
	client_ok(fd, 77, &in, reply, sizeof(reply));
	assert_int_equal(xdr_get_u32(&in, &v), 0);
	assert_int_equal(v, 2);
	close(fd);
	assert_int_equal(test_stats(&t).dup_replayed, 2);
	test_server_stop(&t);
}

static void clients_are_counted(const struct rpc_client_statistics *c,
				void *arg)
{
	uint64_t sum = 0;

	assert_int_equal(c->addr[12], 127);
	assert_int_equal(c->calls, 3);
	for (int i = 0; i < RPC_LATENCY_BUCKETS; i++)
		sum += c->latency[i];
	assert_int_equal(sum, 3);
	(*(int *)arg)++;
}

static void statistics_are_kept_by_client(void **state)
{
	struct test_server t;
	int fd, nr = 0;

	test_server_start(&t, NULL);
	fd = client_connect(&t);
	for (uint32_t i = 0; i < 3; i++) {
		client_call_null(fd, i);
		assert_int_equal(client_any(fd), i);
	}
	rpc_server_clients(t.rpc, clients_are_counted, &nr);
	assert_int_equal(nr, 1);
	close(fd);
	test_server_stop(&t);
}

static void local_sockets_are_served(void **state)
{
	struct test_server t;
	int pair[2];

	test_server_start(&t, NULL);
	assert_int_equal(
		socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, pair), 0);
	assert_int_equal(rpc_server_adopt(t.rpc, pair[1]), 0);
	client_call_null(pair[0], 3);
	assert_int_equal(client_any(pair[0]), 3);
	close(pair[0]);
	test_server_stop(&t);
}

static void stop_sends_what_is_queued(void **state)
{
	uint8_t *reply = mem_alloc(2 << 20);
	struct test_server t;
	struct xdr_in in;
	int fd;

	test_server_start(&t, NULL);
	fd = client_connect(&t);
	client_call_word(fd, 1, TEST_BLOCK, 0);
	test_wait_blocked(&t, 1);
	test_unblock(&t, 1);
	test_server_stop(&t);
	client_ok(fd, 1, &in, reply, 2 << 20);
	assert_true(client_closed(fd));
	close(fd);
	mem_free(reply);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(batch_is_answered_in_one_send),
		cmocka_unit_test(any_cut_of_the_stream_is_the_same),
		cmocka_unit_test(fragments_are_put_together),
		cmocka_unit_test(payload_lands_at_its_offset_in_the_page),
		cmocka_unit_test(bulk_is_sent_and_released),
		cmocka_unit_test(others_are_answered_while_some_block),
		cmocka_unit_test(blocked_calls_leave_a_quarter_of_the_workers),
		cmocka_unit_test(resent_calls_run_once),
		cmocka_unit_test(statistics_are_kept_by_client),
		cmocka_unit_test(local_sockets_are_served),
		cmocka_unit_test(stop_sends_what_is_queued),
	};
	return cmocka_run_group_tests(tests, leak_setup, leak_check);
}

/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Goal: nothing that a client sends, or does not send, harms the server or
 * another client; what is wrong is answered with the protocol's error or a
 * closed connection.
 *
 * Method: each test sends one kind of wrong input on a connection of its own
 * and shows that a good client beside it is answered, and that afterwards
 * nothing is held.
 */
#include "e2e/rpc_client.h"

#include "base/clock.h"
#include "base/mem.h"
#include "base/rng.h"

#include <sys/socket.h>
#include <unistd.h>

static void good_client_is_answered(struct test_server *t)
{
	int fd = client_connect(t);

	client_call_null(fd, 4711);
	assert_int_equal(client_any(fd), 4711);
	close(fd);
}

static void send_word(int fd, uint32_t v)
{
	uint8_t b[4];

	xdr_store32(b, v);
	client_send(fd, b, 4);
}

static void broken_marks_close(void **state)
{
	static const uint32_t marks[] = {
		0xffffffff, 0x7fffffff, 0x80200000,
		0x00200000, 0x80000000, 0x80000004,
	};
	struct test_server t;
	int fd;

	test_server_start(&t, NULL);
	for (size_t i = 0; i < ARRAY_SIZE(marks); i++) {
		fd = client_connect(&t);
		send_word(fd, marks[i]);
		send_word(fd, 1);
		assert_true(client_closed(fd));
		close(fd);
	}
	assert_int_equal(test_stats(&t).closed_bad, ARRAY_SIZE(marks));
	good_client_is_answered(&t);
	test_server_stop(&t);
}

static void tiny_fragments_close(void **state)
{
	uint8_t *flood = mem_zalloc(5u << 20);
	struct test_server t;
	int fd;

	test_server_start(&t, NULL);
	/* A million fragments of one byte, and of none. */
	for (int empty = 0; empty < 2; empty++) {
		for (size_t i = 0; i < 1 << 20; i++)
			flood[i * (5u - (unsigned)empty) + 3] = !empty;
		fd = client_connect(&t);
		client_send(fd, flood, (5u - (unsigned)empty) << 20);
		assert_true(client_closed(fd));
		close(fd);
		memset(flood, 0, 5u << 20);
	}
	good_client_is_answered(&t);
	test_server_stop(&t);
	mem_free(flood);
}

/* Word number at of the message's header (0: the mark) replaced by v: the
 * reply's words after the xid. */
static void patched(struct test_server *t, unsigned at, uint32_t v,
		    const uint32_t *want, size_t nr)
{
	struct client_msg *m = mem_alloc(sizeof(*m));
	uint8_t reply[256];
	size_t len;
	int fd = client_connect(t);

	client_begin(m, 9, TEST_ONCE);
	client_end(m);
	xdr_store32(m->buf + 4 * (size_t)at, v);
	client_send(fd, m->buf, xdr_out_len(&m->out));
	len = client_recv(fd, reply, sizeof(reply));
	assert_int_equal(len, 4 * (nr + 1));
	for (size_t i = 0; i < nr; i++)
		assert_int_equal(xdr_load32(reply + 4 * (i + 1)), want[i]);
	close(fd);
	mem_free(m);
}

static void wrong_headers_get_the_protocols_errors(void **state)
{
	/* REPLY, then MSG_ACCEPTED, verifier, accept_stat; or MSG_DENIED. */
	static const uint32_t rpc_mismatch[] = { 1, 1, 0, 2, 2 };
	static const uint32_t prog_unavail[] = { 1, 0, 0, 0, 1 };
	static const uint32_t prog_mismatch[] = { 1, 0, 0, 0, 2, 3, 5 };
	static const uint32_t proc_unavail[] = { 1, 0, 0, 0, 3 };
	static const uint32_t badcred[] = { 1, 1, 1, 1 };
	static const uint32_t rejectedcred[] = { 1, 1, 1, 2 };
	static const uint32_t tooweak[] = { 1, 1, 1, 5 };
	struct test_server t;

	test_server_start(&t, NULL);
	patched(&t, 3, 3, rpc_mismatch, ARRAY_SIZE(rpc_mismatch));
	patched(&t, 4, 1, prog_unavail, ARRAY_SIZE(prog_unavail));
	patched(&t, 5, 4, prog_mismatch, ARRAY_SIZE(prog_mismatch));
	patched(&t, 6, 1000, proc_unavail, ARRAY_SIZE(proc_unavail));
	patched(&t, 7, 6, badcred, ARRAY_SIZE(badcred));
	patched(&t, 7, RPC_AUTH_SHORT, rejectedcred, ARRAY_SIZE(rejectedcred));
	patched(&t, 7, RPC_AUTH_NONE, tooweak, ARRAY_SIZE(tooweak));
	/* 17 groups, and a machine name that fills the credential. */
	patched(&t, 14, 17, badcred, ARRAY_SIZE(badcred));
	patched(&t, 10, 256, badcred, ARRAY_SIZE(badcred));
	patched(&t, 10, 0xfffffffe, badcred, ARRAY_SIZE(badcred));
	assert_int_equal(atomic_load(&t.runs), 0);
	test_server_stop(&t);
}

static void replies_and_cut_headers_close(void **state)
{
	struct client_msg *m = mem_alloc(sizeof(*m));
	struct test_server t;
	size_t len;
	int fd;

	test_server_start(&t, NULL);
	client_begin(m, 1, TEST_NULL);
	len = xdr_out_len(&m->out);
	for (size_t cut = 4; cut < len; cut += 4) {
		xdr_store32(m->buf, (uint32_t)(cut - 4) | RPC_LAST_FRAGMENT);
		fd = client_connect(&t);
		client_send(fd, m->buf, cut);
		/* Whole enough to tell the version is enough to run on. */
		assert_true(client_closed(fd));
		close(fd);
	}
	client_end(m);
	xdr_store32(m->buf + 8, RPC_REPLY);
	fd = client_connect(&t);
	client_send(fd, m->buf, len);
	assert_true(client_closed(fd));
	close(fd);
	good_client_is_answered(&t);
	test_server_stop(&t);
	mem_free(m);
}

static void wrong_arguments_are_garbage(void **state)
{
	static const uint32_t lens[] = { 1, 0x7fffffff, 0xffffffff,
					 0xfffffffc };
	uint8_t reply[256];
	struct test_server t;
	struct client_msg *m = mem_alloc(sizeof(*m));
	int fd;

	test_server_start(&t, NULL);
	fd = client_connect(&t);
	for (uint32_t i = 0; i < ARRAY_SIZE(lens); i++) {
		client_call_word(fd, i, TEST_ECHO, lens[i]);
		assert_int_equal(client_recv(fd, reply, sizeof(reply)), 24);
		assert_int_equal(xdr_load32(reply + 20), RPC_GARBAGE_ARGS);
		/* The same in a record long enough to be placed. */
		client_begin(m, i, TEST_WRITE);
		xdr_out_u64(&m->out, 0);
		xdr_out_u32(&m->out, lens[i] == 1 ? 9000 : lens[i]);
		memset(xdr_out_hole(&m->out, 8000), 0, 8000);
		client_end(m);
		client_send(fd, m->buf, xdr_out_len(&m->out));
		assert_int_equal(client_recv(fd, reply, sizeof(reply)), 24);
		assert_int_equal(xdr_load32(reply + 20), RPC_GARBAGE_ARGS);
	}
	/* A procedure without its only argument. */
	client_begin(m, 1, TEST_READ);
	client_end(m);
	client_send(fd, m->buf, xdr_out_len(&m->out));
	assert_int_equal(client_recv(fd, reply, sizeof(reply)), 24);
	assert_int_equal(xdr_load32(reply + 20), RPC_GARBAGE_ARGS);
	close(fd);
	test_server_stop(&t);
	mem_free(m);
}

static void slow_sender_delays_nobody(void **state)
{
	struct test_server t;
	struct client_msg *m = mem_alloc(sizeof(*m));
	int slow, good;

	test_server_start(&t, NULL);
	slow = client_connect(&t);
	good = client_connect(&t);
	client_begin(m, 1, TEST_NULL);
	client_end(m);
	for (size_t i = 0; i < xdr_out_len(&m->out); i++) {
		client_send(slow, m->buf + i, 1);
		client_call_null(good, (uint32_t)i);
		assert_int_equal(client_any(good), i);
	}
	assert_int_equal(client_any(slow), 1);
	close(slow);
	close(good);
	test_server_stop(&t);
	mem_free(m);
}

/* Begins a WRITE of len and sends all but its last miss bytes. */
static int half_write(struct test_server *t, uint32_t len, uint32_t miss)
{
	struct client_msg *m = mem_alloc(sizeof(*m));
	int fd = client_connect(t);

	client_begin(m, 1, TEST_WRITE);
	xdr_out_u64(&m->out, 0);
	xdr_out_u32(&m->out, len);
	memset(xdr_out_hole(&m->out, len), 0, len);
	client_end(m);
	client_send(fd, m->buf, xdr_out_len(&m->out) - miss);
	mem_free(m);
	return fd;
}

static void lost_connections_leave_nothing(void **state)
{
	struct test_server t;
	int fd;

	test_server_start(&t, NULL);
	for (uint32_t miss = 1; miss <= 1 << 16; miss *= 16) {
		fd = half_write(&t, 1 << 17, miss);
		test_wait_stat(&t, bytes_in, 1);
		close(fd);
	}
	good_client_is_answered(&t);
	/* The stop checks that all places were given back. */
	test_server_stop(&t);
}

static void incomplete_and_idle_connections_are_closed(void **state)
{
	struct rpc_server_options o = {
		.record_ns = 50 * NS_PER_MS,
		.stall_ns = 20 * NS_PER_MS,
		.idle_ns = 300 * NS_PER_MS,
	};
	struct test_server t;
	int half, idle, mark;

	test_server_start(&t, &o);
	idle = client_connect(&t);
	mark = client_connect(&t);
	client_send(mark, "\0\0", 2);
	half = half_write(&t, 1 << 17, 1);
	assert_true(client_closed(half));
	assert_true(client_closed(mark));
	assert_true(client_closed(idle));
	close(half);
	close(mark);
	close(idle);
	assert_int_equal(test_stats(&t).closed_idle, 1);
	assert_int_equal(test_stats(&t).closed_slow, 2);
	test_server_stop(&t);
}

#define STALL_CONNS 64

static void stalled_payloads_do_not_starve_others(void **state)
{
	/* A quarter of a 16 MiB cache. */
	struct rpc_server_options o = { .total_bytes_max = 4u << 20,
					.stall_ns = 50 * NS_PER_MS };
	struct test_server t;
	int fds[STALL_CONNS];
	uint64_t most = 0;

	test_server_start(&t, &o);
	for (int i = 0; i < STALL_CONNS; i += 2)
		fds[i] = half_write(&t, 1 << 20, (1 << 20) - 100000);
	for (int i = 1; i < STALL_CONNS; i += 2) {
		fds[i] = half_write(&t, 1 << 20, 0);
		most = max_of(most, test_stats(&t).bytes_now);
	}
	for (int i = 1; i < STALL_CONNS; i += 2)
		assert_int_equal(client_any(fds[i]), 1);
	/* And a header for each. */
	assert_true(most <= (4u << 20) + STALL_CONNS * 2048);
	assert_true(test_stats(&t).paused > 0);
	for (int i = 0; i < STALL_CONNS; i++)
		close(fds[i]);
	test_server_stop(&t);
}

static void many_halves_make_room_for_a_whole(void **state)
{
	struct rpc_server_options o = { .total_bytes_max = 2u << 20,
					.stall_ns = 50 * NS_PER_MS };
	struct test_server t;
	uint8_t *data = mem_zalloc(500000);
	int fds[STALL_CONNS], fd;

	/* Assembled records, none of which can be completed. */
	test_server_start(&t, &o);
	for (int i = 0; i < STALL_CONNS; i++) {
		fds[i] = client_connect(&t);
		xdr_store32(data, 500000);
		client_send(fds[i], data, 200000);
	}
	fd = half_write(&t, 1 << 20, 0);
	assert_int_equal(client_any(fd), 1);
	assert_true(test_stats(&t).closed_slow > 0);
	for (int i = 0; i < STALL_CONNS; i++)
		close(fds[i]);
	close(fd);
	test_server_stop(&t);
	mem_free(data);
}

static void who_does_not_read_is_not_read(void **state)
{
	struct rpc_server_options o = { .conn_bytes_max = 2u << 20 };
	struct client_msg *m = mem_alloc(sizeof(*m));
	struct test_server t;
	int fd;
	ssize_t n;

	test_server_start(&t, &o);
	fd = client_connect(&t);
	client_begin(m, 1, TEST_READ);
	xdr_out_u32(&m->out, 1 << 20);
	client_end(m);
	/* Until the server has stopped reading. */
	do {
		n = send(fd, m->buf, xdr_out_len(&m->out), MSG_DONTWAIT);
	} while (n > 0 || !test_stats(&t).paused);
	assert_true(test_stats(&t).bytes_now <= 3u << 20);
	good_client_is_answered(&t);
	close(fd);
	test_server_stop(&t);
	mem_free(m);
}

static void no_memory_for_payload_is_waited_for(void **state)
{
	struct test_server t;
	int fd;

	test_server_start(&t, NULL);
	atomic_store(&t.no_place, true);
	fd = half_write(&t, 100000, 0);
	test_wait_stat(&t, paused, 3);
	good_client_is_answered(&t);
	atomic_store(&t.no_place, false);
	assert_int_equal(client_any(fd), 1);
	close(fd);
	test_server_stop(&t);
}

static void one_address_gets_half_of_the_connections(void **state)
{
	struct rpc_server_options o = { .conns_max = 20 };
	struct test_server t;
	int fds[12];

	test_server_start(&t, &o);
	for (int i = 0; i < 12; i++)
		fds[i] = client_connect(&t);
	test_wait_stat(&t, conns_refused, 2);
	for (uint32_t i = 0; i < 10; i++) {
		client_call_null(fds[i], i);
		assert_int_equal(client_any(fds[i]), i);
	}
	for (int i = 0; i < 12; i++)
		close(fds[i]);
	test_server_stop(&t);
}

static void server_without_memory_is_not_created(void **state)
{
	struct rpc_server_options o = { .nr_workers = 2 };
	struct rpc_server *s;
	int err;

	for (uint64_t nth = 1;; nth++) {
		mem_fail_at(nth, nth & 1);
		err = rpc_server_create(&o, &s);
		mem_fail_at(0, false);
		if (!err)
			break;
		assert_int_equal(err, -ENOMEM);
	}
	rpc_server_destroy(s);
}

static void calls_outlive_a_lack_of_memory(void **state)
{
	struct test_server t;
	uint8_t data[9000] = { 0 };
	int fd, other;

	test_server_start(&t, NULL);
	other = client_connect(&t);
	client_call_null(other, 1);
	assert_int_equal(client_any(other), 1);
	for (uint64_t nth = 1; nth < 12; nth++) {
		/* The client's side has its memory before. */
		struct client_msg *m = mem_alloc(sizeof(*m));

		fd = client_connect(&t);
		client_begin(m, (uint32_t)nth, TEST_ECHO);
		xdr_out_opaque(&m->out, data, sizeof(data));
		client_end(m);
		mem_fail_at(nth, false);
		client_send(fd, m->buf, xdr_out_len(&m->out));
		/* An answer of some kind, or a closed connection. */
		(void)client_recv(fd, m->buf, sizeof(m->buf));
		mem_fail_at(0, false);
		close(fd);
		mem_free(m);
		client_call_null(other, 2);
		assert_int_equal(client_any(other), 2);
	}
	close(other);
	test_server_stop(&t);
}

static void copies_of_a_running_call_are_dropped(void **state)
{
	struct test_server t;
	int first, second;

	test_server_start(&t, NULL);
	first = client_connect(&t);
	second = client_connect(&t);
	client_call_word(first, 5, TEST_BLOCK, 0);
	test_wait_blocked(&t, 1);
	client_call_word(second, 5, TEST_BLOCK, 0);
	test_wait_stat(&t, dup_dropped, 1);
	client_call_null(second, 6);
	assert_int_equal(client_any(second), 6);
	test_unblock(&t, 1);
	assert_int_equal(client_any(first), 5);
	client_call_word(second, 5, TEST_BLOCK, 0);
	assert_int_equal(client_any(second), 5);
	close(first);
	close(second);
	test_server_stop(&t);
}

static void random_bytes_do_no_harm(void **state)
{
	uint64_t seed = seed_draw();
	struct client_msg *m = mem_alloc(sizeof(*m));
	struct test_server t;
	struct rng r;
	size_t len;
	int fd;

	rng_seed(&r, seed);
	test_server_start(&t, NULL);
	for (int i = 0; i < 300; i++) {
		fd = client_connect(&t);
		client_begin(m, 1, (uint32_t)rng_below(&r, TEST_BLOCK));
		xdr_out_u64(&m->out, rng_next(&r));
		memset(xdr_out_hole(&m->out, 6000), 0, 6000);
		client_end(m);
		len = xdr_out_len(&m->out);
		for (uint64_t n = rng_below(&r, 6); n; n--)
			m->buf[rng_below(&r, 100)] = (uint8_t)rng_next(&r);
		client_send(fd, m->buf, rng_below(&r, len) + 1);
		shutdown(fd, SHUT_WR);
		assert_true(client_closed(fd));
		close(fd);
	}
	good_client_is_answered(&t);
	test_server_stop(&t);
	mem_free(m);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(broken_marks_close),
		cmocka_unit_test(tiny_fragments_close),
		cmocka_unit_test(wrong_headers_get_the_protocols_errors),
		cmocka_unit_test(replies_and_cut_headers_close),
		cmocka_unit_test(wrong_arguments_are_garbage),
		cmocka_unit_test(slow_sender_delays_nobody),
		cmocka_unit_test(lost_connections_leave_nothing),
		cmocka_unit_test(incomplete_and_idle_connections_are_closed),
		cmocka_unit_test(stalled_payloads_do_not_starve_others),
		cmocka_unit_test(many_halves_make_room_for_a_whole),
		cmocka_unit_test(who_does_not_read_is_not_read),
		cmocka_unit_test(no_memory_for_payload_is_waited_for),
		cmocka_unit_test(one_address_gets_half_of_the_connections),
		cmocka_unit_test(server_without_memory_is_not_created),
		cmocka_unit_test(calls_outlive_a_lack_of_memory),
		cmocka_unit_test(copies_of_a_running_call_are_dropped),
		cmocka_unit_test(random_bytes_do_no_harm),
	};
	return cmocka_run_group_tests(tests, leak_setup, leak_check);
}

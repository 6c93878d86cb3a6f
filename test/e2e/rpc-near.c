/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Goal: a connection from this host that is sent much goes to the poller of its
 * client's processor, keeps every byte on the way, and leaves no thread bound
 * to a processor when it ends; one that is sent little stays where it is.
 *
 * Method: the client binds itself to one processor after the other and reads;
 * as many calls as it takes, so nothing depends on time.
 */
#include "e2e/rpc_client.h"

#include "base/mem.h"
#include "base/task.h"

#include <dirent.h>
#include <sched.h>
#include <stdlib.h>
#include <unistd.h>

#define CONNS 2
#define BULK 300000
#define REPLY_MAX (BULK + 4096)

struct near {
	struct test_server t;
	cpu_set_t all;
	int fd[CONNS];
	uint32_t xid;
	uint8_t *reply;
};

static void near_start(struct near *n)
{
	memset(n, 0, sizeof(*n));
	n->reply = mem_alloc(REPLY_MAX);
	assert_int_equal(sched_getaffinity(0, sizeof(n->all), &n->all), 0);
	test_server_start(&n->t, NULL);
	for (int i = 0; i < CONNS; i++)
		n->fd[i] = client_connect(&n->t);
}

static void near_stop(struct near *n)
{
	for (int i = 0; i < CONNS; i++)
		close(n->fd[i]);
	test_server_stop(&n->t);
	assert_int_equal(sched_setaffinity(0, sizeof(n->all), &n->all), 0);
	mem_free(n->reply);
}

/* To the nth processor of those that there are. */
static void stay_on(const struct near *n, int nth)
{
	cpu_set_t one;
	int cpu = 0;

	while (!CPU_ISSET((unsigned)cpu, &n->all) || nth--)
		cpu++;
	CPU_ZERO(&one);
	CPU_SET((unsigned)cpu, &one);
	assert_int_equal(sched_setaffinity(0, sizeof(one), &one), 0);
}

static void read_all(struct near *n, uint32_t len)
{
	struct xdr_opaque v;
	struct xdr_in in;

	for (int i = 0; i < CONNS; i++) {
		client_call_word(n->fd[i], ++n->xid, TEST_READ, len);
		client_ok(n->fd[i], n->xid, &in, n->reply, REPLY_MAX);
		assert_int_equal(xdr_get_opaque_max(&in, &v, len), 0);
		assert_int_equal(v.len, len);
		for (uint32_t j = 0; j < len; j += 997)
			assert_int_equal(v.data[j], (uint8_t)(j / 4096));
	}
}

/* Threads of this process that may not run everywhere, but for the caller. */
static int bound_threads(const struct near *n)
{
	DIR *d = opendir("/proc/self/task");
	struct dirent *e;
	cpu_set_t set;
	int nr = 0, tid;

	assert_non_null(d);
	while ((e = readdir(d))) {
		tid = atoi(e->d_name);
		if (tid > 0 && tid != gettid() &&
		    !sched_getaffinity(tid, sizeof(set), &set))
			nr += !CPU_EQUAL(&set, &n->all);
	}
	closedir(d);
	return nr;
}

static void connections_follow_their_client(void **state)
{
	struct near n;

	if (task_nr_cpus() < 2)
		skip();
	near_start(&n);
	/* One connection is there already, the other comes; then both go. */
	stay_on(&n, 0);
	while (test_stats(&n.t).moved < 1)
		read_all(&n, BULK);
	assert_true(bound_threads(&n));
	stay_on(&n, 1);
	while (test_stats(&n.t).moved < 3)
		read_all(&n, BULK);
	while (bound_threads(&n))
		sched_yield();
	read_all(&n, BULK);
	near_stop(&n);
}

static void small_replies_move_nothing(void **state)
{
	struct near n;

	near_start(&n);
	for (int cpu = 0; cpu < (int)task_nr_cpus(); cpu++) {
		stay_on(&n, cpu);
		for (int i = 0; i < 100; i++)
			read_all(&n, 100);
	}
	assert_int_equal(test_stats(&n.t).moved, 0);
	assert_int_equal(bound_threads(&n), 0);
	near_stop(&n);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(connections_follow_their_client),
		cmocka_unit_test(small_replies_move_nothing),
	};
	return cmocka_run_group_tests(tests, leak_setup, leak_check);
}

/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Goal: the reply cache tells new, running and answered calls apart by every
 * part of the key, keeps to its age and its bytes, and never forgets a call
 * that runs.
 *
 * Method: simulated time; single calls, then more than fits.
 */
#include "lib/test.h"

#include "base/clock.h"
#include "base/mem.h"
#include "rpc/dup.h"

#include <errno.h>
#include <string.h>

#define AGE (120 * NS_PER_S)

static struct rpc_dup_key key_of(uint32_t xid)
{
	return (struct rpc_dup_key){ .addr = { 1 },
				     .xid = xid,
				     .prog = 2,
				     .vers = 3,
				     .proc = 4,
				     .len = 5,
				     .sum = 6 };
}

static int begin(struct rpc_dups *d, const struct rpc_dup_key *key,
		 struct rpc_dup **e, char *reply)
{
	size_t len = 0;
	int r = rpc_dup_begin(d, key, e, reply, &len);

	if (r == RPC_DUP_REPLAY)
		reply[len] = '\0';
	return r;
}

static void calls_are_told_apart(void **state)
{
	struct rpc_dups *d;
	struct rpc_dup *e, *other;
	struct rpc_dup_key key = key_of(1), k;
	char reply[64];

	clock_sim_start(NS_PER_S);
	d = rpc_dups_create(AGE, 1 << 20);
	assert_int_equal(begin(d, &key, &e, reply), RPC_DUP_NEW);
	assert_int_equal(begin(d, &key, &other, reply), RPC_DUP_BUSY);
	rpc_dup_end(d, e, "yes", 3);
	assert_int_equal(begin(d, &key, &other, reply), RPC_DUP_REPLAY);
	assert_string_equal(reply, "yes");
	for (size_t i = 0; i < sizeof(key); i++) {
		k = key;
		((uint8_t *)&k)[i] ^= 1;
		assert_int_equal(begin(d, &k, &other, reply), RPC_DUP_NEW);
		rpc_dup_end(d, other, NULL, 0);
		/* Ended without a reply: as if it had never been. */
		assert_int_equal(begin(d, &k, &other, reply), RPC_DUP_NEW);
		rpc_dup_end(d, other, NULL, 0);
	}
	clock_sim_advance(AGE - 1);
	assert_int_equal(begin(d, &key, &e, reply), RPC_DUP_REPLAY);
	clock_sim_advance(1);
	assert_int_equal(begin(d, &key, &e, reply), RPC_DUP_NEW);
	clock_sim_advance(10 * AGE);
	assert_int_equal(begin(d, &key, &other, reply), RPC_DUP_BUSY);
	rpc_dups_destroy(d);
	clock_sim_stop();
}

static void bytes_are_bounded(void **state)
{
	struct rpc_dups *d;
	struct rpc_dup *e, *running;
	struct rpc_dup_key key;
	uint64_t evicted, bytes;
	char reply[600], big[512] = { 0 };

	clock_sim_start(NS_PER_S);
	d = rpc_dups_create(AGE, 1 << 20);
	key = key_of(0);
	assert_int_equal(begin(d, &key, &running, reply), RPC_DUP_NEW);
	for (uint32_t i = 1; i < 10000; i++) {
		key = key_of(i);
		assert_int_equal(begin(d, &key, &e, reply), RPC_DUP_NEW);
		rpc_dup_end(d, e, big, sizeof(big));
	}
	rpc_dups_read(d, &evicted, &bytes);
	assert_true(bytes <= 1 << 20);
	assert_true(evicted > 7000 && evicted < 9500);
	key = key_of(9999);
	assert_int_equal(begin(d, &key, &e, reply), RPC_DUP_REPLAY);
	key = key_of(0);
	assert_int_equal(begin(d, &key, &e, reply), RPC_DUP_BUSY);
	rpc_dup_end(d, running, NULL, 0);
	rpc_dups_destroy(d);
	clock_sim_stop();
}

static void no_memory_is_told_or_forgets(void **state)
{
	struct rpc_dups *d = rpc_dups_create(AGE, 1 << 20);
	struct rpc_dup_key key = key_of(1);
	struct rpc_dup *e;
	char reply[64];

	mem_fail_at(1, false);
	assert_int_equal(begin(d, &key, &e, reply), -ENOMEM);
	mem_fail_at(0, false);
	assert_int_equal(begin(d, &key, &e, reply), RPC_DUP_NEW);
	mem_fail_at(1, false);
	rpc_dup_end(d, e, "yes", 3);
	mem_fail_at(0, false);
	assert_int_equal(begin(d, &key, &e, reply), RPC_DUP_NEW);
	rpc_dups_destroy(d);
	mem_fail_at(1, false);
	assert_null(rpc_dups_create(AGE, 1 << 20));
	mem_fail_at(0, false);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(calls_are_told_apart),
		cmocka_unit_test(bytes_are_bounded),
		cmocka_unit_test(no_memory_is_told_or_forgets),
	};
	return cmocka_run_group_tests(tests, leak_setup, leak_check);
}

/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Goal: records come out as they were cut, however fragments and reads fall;
 * limits hold, and memory follows what arrived.
 *
 * Method: random records in random fragments are fed in random portions and
 * compared; each limit is met exactly and passed by one; every allocation
 * fails once.
 */
#include "lib/test.h"

#include "base/mem.h"
#include "base/rng.h"
#include "rpc/msg.h"
#include "rpc/record.h"

#include <errno.h>
#include <string.h>

#define RECORD_MAX 20000u

/* Random bytes cut in random fragments, the first being of them; appended to
 * stream. Returns the stream's length. */
static size_t cut(struct rng *r, const uint8_t *data, uint32_t len,
		  uint8_t *stream)
{
	uint32_t left = len, n;
	size_t used = 0;

	do {
		n = (uint32_t)rng_below(r, left / 2 + 50);
		n = n < left ? n : left;
		left -= n;
		xdr_store32(stream + used, n | (left ? 0 : RPC_LAST_FRAGMENT));
		memcpy(stream + used + 4, data, n);
		data += n;
		used += 4 + n;
	} while (left);
	return used;
}

static void records_come_out_as_they_were(void **state)
{
	uint8_t *data = mem_alloc(RECORD_MAX), *stream = mem_alloc(1 << 18);
	struct rpc_record rec;
	struct rng r;

	rng_seed(&r, seed_draw());
	rpc_record_init(&rec, RECORD_MAX);
	for (unsigned round = seed_rounds(200); round; round--) {
		uint32_t len = (uint32_t)rng_below(&r, RECORD_MAX + 1), got;
		size_t all, at = 0, n, used;
		uint8_t *out;
		int err = 0;

		for (uint32_t i = 0; i < len; i++)
			data[i] = (uint8_t)rng_next(&r);
		all = cut(&r, data, len, stream);
		while (!err) {
			n = rng_below(&r, 5000);
			n = n < all + 4 - at ? n : all + 4 - at;
			err = rpc_record_feed(&rec, stream + at, n, &used);
			at += used;
			assert_true(rec.cap <= 2 * rec.len + 4096);
		}
		assert_int_equal(err, 1);
		assert_int_equal(at, all);
		out = rpc_record_take(&rec, &got);
		assert_int_equal(got, len);
		if (len)
			assert_memory_equal(out, data, len);
		mem_free(out);
	}
	rpc_record_fini(&rec);
	mem_free(data);
	mem_free(stream);
}

static int feed_mark(struct rpc_record *rec, uint32_t mark)
{
	uint8_t b[4];
	size_t used;

	xdr_store32(b, mark);
	return rpc_record_feed(rec, b, 4, &used);
}

static void marks_beyond_the_limits_are_refused(void **state)
{
	struct rpc_record rec;
	uint8_t byte = 0;
	size_t used;

	rpc_record_init(&rec, RECORD_MAX);
	assert_int_equal(feed_mark(&rec, RECORD_MAX), 0);
	rpc_record_init(&rec, RECORD_MAX);
	assert_int_equal(feed_mark(&rec, RECORD_MAX + 1), -EMSGSIZE);
	rpc_record_init(&rec, RECORD_MAX);
	assert_int_equal(feed_mark(&rec, 1), 0);
	assert_int_equal(rpc_record_feed(&rec, &byte, 1, &used), 0);
	assert_int_equal(feed_mark(&rec, RPC_LAST_FRAGMENT | RECORD_MAX),
			 -EMSGSIZE);
	rpc_record_fini(&rec);
	for (int i = 0; i < RPC_FRAGMENTS_MAX; i++)
		assert_int_equal(feed_mark(&rec, 0), 0);
	assert_int_equal(feed_mark(&rec, 0), -E2BIG);
	/* What a mark promises is not allocated. */
	assert_null(rec.data);
	rpc_record_fini(&rec);
}

static void no_memory_is_told(void **state)
{
	uint8_t stream[9004] = { 0x80, 0, 0x23, 0x28 };
	struct rpc_record rec;
	size_t used;
	int err;

	for (uint64_t nth = 1; nth < 10; nth++) {
		rpc_record_init(&rec, RECORD_MAX);
		mem_fail_at(nth, false);
		err = rpc_record_feed(&rec, stream, 2000, &used);
		if (!err)
			err = rpc_record_feed(&rec, stream + 2000,
					      sizeof(stream) - 2000, &used);
		mem_fail_at(0, false);
		assert_int_equal(err, nth <= 2 ? -ENOMEM : 1);
		rpc_record_fini(&rec);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(records_come_out_as_they_were),
		cmocka_unit_test(marks_beyond_the_limits_are_refused),
		cmocka_unit_test(no_memory_is_told),
	};
	return cmocka_run_group_tests(tests, leak_setup, leak_check);
}

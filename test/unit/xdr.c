/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Goal: what is written is read back, in any cut of the message into pieces;
 * nothing is read or written outside a buffer, whatever lengths are claimed.
 *
 * Method: one struct with a field of every kind is encoded, then decoded from
 * every two-piece cut and from every truncation, each in an allocation of its
 * exact size so that ASan sees a step beyond; every writer is given every room
 * from none to enough.
 */
#include "lib/test.h"

#include "base/mem.h"
#include "xdr/fields.h"

#include <string.h>

XDR_OPAQUE(t_name, 12)
XDR_FIXED(t_verf, 6)
XDR_ENUM(t_how, 2, 4)
XDR_OPTIONAL(t_maybe, u64)
XDR_ARRAY(t_list, u32, 3)

#define T_ALL(F)                                                               \
	F(u32, word)                                                           \
	F(i32, sign)                                                           \
	F(u64, wide)                                                           \
	F(bool, flag)                                                          \
	F(t_how, how)                                                          \
	F(t_verf, verf)                                                        \
	F(t_maybe, absent)                                                     \
	F(t_maybe, here)                                                       \
	F(t_list, list)                                                        \
	F(t_name, name)
XDR_STRUCT(t_all, T_ALL)

static const struct t_all sample = {
	.word = 0x01020304,
	.sign = -5,
	.wide = 0x1122334455667788,
	.flag = true,
	.how = 3,
	.verf = { "abcdef" },
	.here = { true, 77 },
	.list = { 2, { 8, 9 } },
	.name = { (const uint8_t *)"abcdefg", 7 },
};

static size_t sample_put(uint8_t *buf, size_t len)
{
	struct xdr_out out;

	xdr_out_init(&out, buf, len);
	xdr_put_t_all(&out, &sample);
	assert_false(out.overflow);
	return xdr_out_len(&out);
}

static void assert_sample(const struct t_all *v)
{
	assert_int_equal(v->word, sample.word);
	assert_int_equal(v->sign, -5);
	assert_true(v->wide == sample.wide);
	assert_true(v->flag);
	assert_int_equal(v->how, 3);
	assert_memory_equal(v->verf.data, "abcdef", 6);
	assert_false(v->absent.present);
	assert_int_equal(v->here.value, 77);
	assert_int_equal(v->list.nr, 2);
	assert_int_equal(v->list.e[1], 9);
	assert_int_equal(v->name.len, 7);
	assert_memory_equal(v->name.data, "abcdefg", 7);
}

static void bytes_are_those_of_the_rfc(void **state)
{
	static const uint8_t want[] = {
		1,    2,    3,	  4,	0xff, 0xff, 0xff, 0xfb, 0x11,
		0x22, 0x33, 0x44, 0x55, 0x66, 0x77, 0x88, 0,	0,
		0,    1,    0,	  0,	0,    3,    'a',  'b',	'c',
		'd',  'e',  'f',  0,	0,    0,    0,	  0,	0,
		0,    0,    0,	  1,	0,    0,    0,	  0,	0,
		0,    0,    77,	  0,	0,    0,    2,	  0,	0,
		0,    8,    0,	  0,	0,    9,    0,	  0,	0,
		7,    'a',  'b',  'c',	'd',  'e',  'f',  'g',	0
	};
	uint8_t buf[256];

	assert_int_equal(sample_put(buf, sizeof(buf)), sizeof(want));
	assert_int_equal(xdr_size_t_all(&sample), sizeof(want));
	assert_memory_equal(buf, want, sizeof(want));
}

/* A copy in memory of its exact size. */
static uint8_t *exact(const uint8_t *p, size_t len)
{
	uint8_t *copy = mem_alloc(len ? len : 1);

	assert_non_null(copy);
	memcpy(copy, p, len);
	return copy;
}

static void any_cut_reads_the_same_or_fails(void **state)
{
	uint8_t buf[256];
	size_t len = sample_put(buf, sizeof(buf));

	for (size_t cut = 0; cut <= len; cut++) {
		uint8_t *a = exact(buf, cut), *b = exact(buf + cut, len - cut);
		struct iovec iov[3] = { { NULL, 0 }, { b, 1 }, { NULL, 0 } };
		bool in_name = cut > len - 8 && cut < len - 1;
		struct xdr_in in;
		struct t_all v;
		int err;

		xdr_in_init(&in, a, cut);
		if (cut == len)
			iov[1].iov_len = 0;
		xdr_in_append(&in, iov, 3, b + iov[1].iov_len,
			      len - cut - iov[1].iov_len);
		assert_int_equal(xdr_in_left(&in), len);
		err = xdr_get_t_all(&in, &v);
		/* The opaque lies in one piece or is refused; the one-byte
		 * piece in the middle cuts it too. */
		if (cut + 1 <= len - 8 || cut == len)
			assert_int_equal(err, 0);
		if (in_name)
			assert_int_equal(err, -EBADMSG);
		if (!err) {
			assert_sample(&v);
			assert_int_equal(xdr_in_left(&in), 0);
		}
		mem_free(a);
		mem_free(b);
	}
}

static void truncated_messages_fail(void **state)
{
	uint8_t buf[256];
	size_t len = sample_put(buf, sizeof(buf));

	for (size_t cut = 0; cut < len; cut++) {
		uint8_t *a = exact(buf, cut);
		struct xdr_in in;
		struct t_all v;

		xdr_in_init(&in, a, cut);
		assert_int_equal(xdr_get_t_all(&in, &v), -EBADMSG);
		mem_free(a);
	}
}

static void too_small_buffers_are_noticed(void **state)
{
	size_t len = xdr_size_t_all(&sample);

	for (size_t room = 0; room <= len; room++) {
		uint8_t *a = mem_alloc(room + 1);
		struct xdr_out out;

		xdr_out_init(&out, a, room);
		xdr_put_t_all(&out, &sample);
		assert_int_equal(out.overflow, room < len);
		assert_true(xdr_out_len(&out) <= room);
		xdr_out_rewind(&out, 0);
		assert_false(out.overflow);
		mem_free(a);
	}
}

static int get_opaque(uint32_t len, uint32_t max)
{
	uint8_t buf[8] = { 0 };
	struct xdr_opaque v;
	struct xdr_in in;

	xdr_store32(buf, len);
	xdr_in_init(&in, buf, sizeof(buf));
	return xdr_get_opaque_max(&in, &v, max);
}

static void claimed_lengths_are_not_believed(void **state)
{
	struct xdr_in in;
	uint8_t word[4];
	struct t_list list;
	uint32_t how;
	bool flag;

	assert_int_equal(get_opaque(4, 4), 0);
	assert_int_equal(get_opaque(0, 0), 0);
	assert_int_equal(get_opaque(4, 3), -EBADMSG);
	assert_int_equal(get_opaque(5, UINT32_MAX), -EBADMSG);
	assert_int_equal(get_opaque(UINT32_MAX, UINT32_MAX), -EBADMSG);
	assert_int_equal(get_opaque(UINT32_MAX - 2, UINT32_MAX), -EBADMSG);
	xdr_store32(word, UINT32_MAX);
	xdr_in_init(&in, word, 4);
	assert_int_equal(xdr_get_t_list(&in, &list), -EBADMSG);
	xdr_store32(word, 2);
	xdr_in_init(&in, word, 4);
	assert_int_equal(xdr_get_bool(&in, &flag), -EBADMSG);
	for (uint32_t i = 0; i < 8; i++) {
		xdr_store32(word, i);
		xdr_in_init(&in, word, 4);
		assert_int_equal(xdr_get_t_how(&in, &how),
				 i >= 2 && i <= 4 ? 0 : -EBADMSG);
	}
}

static void bulk_is_found_in_its_pieces(void **state)
{
	uint8_t head[4], a[3] = "abc", b[4] = "defg",
			 tail[6] = { 0, 9, 9, 9, 9 };
	struct iovec at[2] = { { a, 3 }, { b, 4 } }, got[3];
	struct xdr_in in;
	uint32_t len;
	int nr;

	xdr_store32(head, 7);
	for (int max = 0; max < 4; max++) {
		xdr_in_init(&in, head, 4);
		xdr_in_append(&in, at, 2, tail, 5);
		assert_int_equal(xdr_get_bulk(&in, 7, got, max, &nr, &len),
				 max < 2 ? -EBADMSG : 0);
	}
	assert_int_equal(nr, 2);
	assert_int_equal(len, 7);
	assert_ptr_equal(got[1].iov_base, b);
	assert_int_equal(got[1].iov_len, 4);
	/* The padding came from the tail. */
	assert_int_equal(xdr_in_left(&in), 4);
	xdr_in_init(&in, head, 4);
	xdr_in_append(&in, at, 2, NULL, 0);
	assert_int_equal(xdr_get_bulk(&in, 7, got, 3, &nr, &len), -EBADMSG);
	xdr_in_init(&in, head, 4);
	xdr_in_append(&in, at, 2, tail, 5);
	assert_int_equal(xdr_get_bulk(&in, 6, got, 3, &nr, &len), -EBADMSG);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(bytes_are_those_of_the_rfc),
		cmocka_unit_test(any_cut_reads_the_same_or_fails),
		cmocka_unit_test(truncated_messages_fail),
		cmocka_unit_test(too_small_buffers_are_noticed),
		cmocka_unit_test(claimed_lengths_are_not_believed),
		cmocka_unit_test(bulk_is_found_in_its_pieces),
	};
	return cmocka_run_group_tests(tests, leak_setup, leak_check);
}

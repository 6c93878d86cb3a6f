/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Goal: call headers are read as RFC 5531 has them, credentials up to their
 * limits, and a credential's inner lengths never reach beyond its body.
 *
 * Method: headers put together with one thing varied, in memory of exact size.
 */
#include "lib/test.h"

#include "base/mem.h"
#include "rpc/msg.h"

#include <string.h>

struct vary {
	uint32_t flavor;
	uint32_t machine_len; /* claimed */
	uint32_t machine; /* bytes really there */
	uint32_t nr_gids; /* claimed */
	uint32_t gids; /* really there */
	uint32_t extra; /* words behind */
	uint32_t verf_len;
};

static const struct vary good = {
	.flavor = RPC_AUTH_SYS,
	.machine_len = 5,
	.machine = 5,
	.nr_gids = 2,
	.gids = 2,
};

static int header(const struct vary *v, struct rpc_header *h)
{
	uint8_t body[1024], name[1024] = "hosts", buf[2048], *copy;
	struct xdr_out b, out;
	struct xdr_in in;
	int err;

	xdr_out_init(&b, body, sizeof(body));
	xdr_out_u32(&b, 1);
	xdr_out_u32(&b, v->machine_len);
	xdr_out_bytes(&b, name, v->machine);
	xdr_out_u32(&b, 1000);
	xdr_out_u32(&b, 100);
	xdr_out_u32(&b, v->nr_gids);
	for (uint32_t i = 0; i < v->gids + v->extra; i++)
		xdr_out_u32(&b, i);
	xdr_out_init(&out, buf, sizeof(buf));
	xdr_out_u32(&out, 7);
	xdr_out_u32(&out, RPC_CALL);
	xdr_out_u32(&out, RPC_VERSION);
	xdr_out_u32(&out, 100003);
	xdr_out_u32(&out, 3);
	xdr_out_u32(&out, 1);
	xdr_out_u32(&out, v->flavor);
	xdr_out_opaque(&out, body, (uint32_t)xdr_out_len(&b));
	xdr_out_u32(&out, RPC_AUTH_NONE);
	xdr_out_opaque(&out, name, v->verf_len);
	assert_false(out.overflow || b.overflow);
	copy = mem_alloc(xdr_out_len(&out));
	memcpy(copy, buf, xdr_out_len(&out));
	xdr_in_init(&in, copy, xdr_out_len(&out));
	err = rpc_header_get(&in, h);
	if (!err)
		assert_int_equal(xdr_in_left(&in), 0);
	mem_free(copy);
	return err;
}

static void auth_of(struct vary v, enum rpc_auth_stat want)
{
	struct rpc_header h;

	assert_int_equal(header(&v, &h), 0);
	assert_int_equal(h.auth, want);
}

static void good_header_is_read(void **state)
{
	struct rpc_header h;

	assert_int_equal(header(&good, &h), 0);
	assert_int_equal(h.xid, 7);
	assert_int_equal(h.prog, 100003);
	assert_int_equal(h.vers, 3);
	assert_int_equal(h.proc, 1);
	assert_int_equal(h.auth, RPC_AUTH_OK);
	assert_int_equal(h.cred.uid, 1000);
	assert_int_equal(h.cred.gid, 100);
	assert_int_equal(h.cred.nr_gids, 2);
	assert_int_equal(h.cred.gids[1], 1);
	assert_int_equal(h.cred.machine.len, 5);
}

static void credentials_are_checked(void **state)
{
	struct vary v;
	struct rpc_header h;

	v = good, v.gids = v.nr_gids = 16;
	auth_of(v, RPC_AUTH_OK);
	v.gids = v.nr_gids = 17;
	auth_of(v, RPC_AUTH_BADCRED);
	v = good, v.nr_gids = 3;
	auth_of(v, RPC_AUTH_BADCRED);
	v = good, v.extra = 1;
	auth_of(v, RPC_AUTH_BADCRED);
	v = good, v.machine = v.machine_len = 255;
	auth_of(v, RPC_AUTH_OK);
	v.machine = v.machine_len = 256;
	auth_of(v, RPC_AUTH_BADCRED);
	v = good, v.machine_len = UINT32_MAX;
	auth_of(v, RPC_AUTH_BADCRED);
	v = good, v.flavor = RPC_AUTH_SHORT;
	auth_of(v, RPC_AUTH_REJECTEDCRED);
	v = good, v.flavor = 6;
	auth_of(v, RPC_AUTH_BADCRED);
	v = good, v.flavor = RPC_AUTH_NONE;
	auth_of(v, RPC_AUTH_OK);
	/* Bodies beyond 400 bytes are no RPC at all. */
	v = good, v.verf_len = 400;
	auth_of(v, RPC_AUTH_OK);
	v.verf_len = 401;
	assert_int_equal(header(&v, &h), -EBADMSG);
	v = good, v.extra = 92;
	assert_int_equal(header(&v, &h), -EBADMSG);
}

static void replies_are_those_of_the_rfc(void **state)
{
	static const uint8_t accepted[] = {
		0, 0, 0, 9, 0, 0, 0, 1, 0, 0, 0, 0,
		0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 4,
	};
	uint8_t buf[64];
	struct xdr_out out;

	xdr_out_init(&out, buf, sizeof(buf));
	rpc_put_accepted(&out, 9, RPC_GARBAGE_ARGS);
	assert_int_equal(xdr_out_len(&out), RPC_ACCEPTED_LEN);
	assert_memory_equal(buf, accepted, sizeof(accepted));
	xdr_out_rewind(&out, 0);
	rpc_put_prog_mismatch(&out, 9, 2, 4);
	assert_int_equal(xdr_out_len(&out), 32);
	assert_int_equal(buf[27], 2);
	assert_int_equal(buf[31], 4);
	xdr_out_rewind(&out, 0);
	rpc_put_rpc_mismatch(&out, 9);
	assert_int_equal(xdr_out_len(&out), 24);
	assert_int_equal(buf[11], 1);
	xdr_out_rewind(&out, 0);
	rpc_put_auth_error(&out, 9, RPC_AUTH_TOOWEAK);
	assert_int_equal(xdr_out_len(&out), 20);
	assert_int_equal(buf[19], 5);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(good_header_is_read),
		cmocka_unit_test(credentials_are_checked),
		cmocka_unit_test(replies_are_those_of_the_rfc),
	};
	return cmocka_run_group_tests(tests, leak_setup, leak_check);
}

/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Goal: no stream of bytes makes record marking or the reading of call headers
 * step out of bounds, hold more than twice what arrived, or give a record
 * longer than allowed.
 *
 * Method: libFuzzer. The first byte is the size of the portions in which the
 * rest is fed; each complete record is read as a call.
 */
#include "base/mem.h"
#include "rpc/msg.h"
#include "rpc/record.h"

#include <stdlib.h>

#define RECORD_MAX 4096u

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t len);

static void call(struct rpc_record *rec)
{
	struct rpc_header h;
	struct xdr_in in;
	uint32_t len;
	uint8_t *data = rpc_record_take(rec, &len);

	if (len > RECORD_MAX)
		abort();
	xdr_in_init(&in, data, len);
	if (!rpc_header_get(&in, &h) && h.rpcvers == RPC_VERSION) {
		if (h.auth == RPC_AUTH_OK && h.cred.nr_gids > RPC_GIDS_MAX)
			abort();
		if (h.auth == RPC_AUTH_OK && h.cred.machine.len &&
		    (h.cred.machine.data < data ||
		     h.cred.machine.data + h.cred.machine.len > data + len))
			abort();
	}
	mem_free(data);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t len)
{
	size_t portion, n, used;
	struct rpc_record rec;
	int r = 0;

	if (!len)
		return 0;
	portion = data[0] + 1u;
	data++;
	len--;
	rpc_record_init(&rec, RECORD_MAX);
	while (len && r >= 0) {
		n = len < portion ? len : portion;
		r = rpc_record_feed(&rec, data, n, &used);
		if (r < 0)
			break;
		if (used > n || rec.cap > 2 * rec.len + 4096)
			abort();
		data += used;
		len -= used;
		if (r == 1)
			call(&rec);
	}
	rpc_record_fini(&rec);
	return 0;
}

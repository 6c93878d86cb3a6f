/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Goal: decoding any bytes, in any two pieces, stays inside them; what was
 * decoded is encoded to the size foretold and decodes to the same again.
 *
 * Method: libFuzzer. The first byte says where the message is cut in pieces.
 */
#include "xdr/fields.h"

#include <stdlib.h>

XDR_OPAQUE(f_name, 255)
XDR_FIXED(f_verf, 8)
XDR_ENUM(f_how, 0, 2)
XDR_OPTIONAL(f_maybe, f_name)
XDR_ARRAY(f_list, f_maybe, 4)

#define F_ALL(F)                                                               \
	F(u32, word)                                                           \
	F(f_how, how)                                                          \
	F(bool, flag)                                                          \
	F(f_verf, verf)                                                        \
	F(f_list, list)                                                        \
	F(i32, sign)                                                           \
	F(f_name, name)                                                        \
	F(u64, wide)
XDR_STRUCT(f_all, F_ALL)

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t len);

static void again(const struct f_all *v)
{
	size_t size = xdr_size_f_all(v);
	uint8_t *a = malloc(size), *b = malloc(size);
	struct xdr_out out;
	struct f_all w;
	struct xdr_in in;

	xdr_out_init(&out, a, size);
	xdr_put_f_all(&out, v);
	if (out.overflow || xdr_out_len(&out) != size)
		abort();
	xdr_in_init(&in, a, size);
	if (xdr_get_f_all(&in, &w) || xdr_in_left(&in))
		abort();
	xdr_out_init(&out, b, size);
	xdr_put_f_all(&out, &w);
	if (out.overflow || memcmp(a, b, size))
		abort();
	free(a);
	free(b);
}

static void bulk(const uint8_t *data, size_t len, size_t cut)
{
	struct iovec iov[3], at = { (void *)(data + cut), (len - cut) / 2 };
	struct xdr_in in;
	uint32_t total, sum = 0;
	int nr;

	xdr_in_init(&in, data, cut);
	xdr_in_append(&in, &at, 1, data + cut + at.iov_len,
		      len - cut - at.iov_len);
	if (xdr_get_bulk(&in, 1 << 20, iov, 3, &nr, &total))
		return;
	for (int i = 0; i < nr; i++)
		sum += (uint32_t)iov[i].iov_len;
	if (sum != total)
		abort();
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t len)
{
	uint8_t *head, *tail;
	struct xdr_in in;
	struct f_all v;
	size_t cut;

	if (!len)
		return 0;
	cut = (size_t)data[0] * (len - 1) / 255;
	data++;
	len--;
	/* Each piece in memory of its own, for ASan. */
	head = malloc(cut + 1);
	tail = malloc(len - cut + 1);
	memcpy(head + 1, data, cut);
	memcpy(tail + 1, data + cut, len - cut);
	xdr_in_init(&in, head + 1, cut);
	xdr_in_append(&in, NULL, 0, tail + 1, len - cut);
	if (!xdr_get_f_all(&in, &v))
		again(&v);
	free(head);
	free(tail);
	bulk(data, len, cut);
	return 0;
}

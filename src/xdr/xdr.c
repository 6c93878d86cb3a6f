/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * XDR's slow paths: values that cross from one piece of a message to the next,
 * and counted bytes.
 *
 * Every length is compared with what is left before it is used, as a
 * difference of pointers or sizes, never by adding to a pointer.
 */
#include "xdr/xdr.h"

#include <sys/uio.h>

static size_t piece_left(const struct xdr_in *in)
{
	return (size_t)(in->end - in->p);
}

/* Goes to the next piece that is not empty: false if there is none. */
static bool piece_next(struct xdr_in *in)
{
	while (in->p == in->end) {
		if (in->nr_iov) {
			if (in->iov->iov_len) {
				in->p = in->iov->iov_base;
				in->end = in->p + in->iov->iov_len;
			}
			in->iov++;
			in->nr_iov--;
		} else if (in->tail) {
			in->p = in->tail;
			in->end = in->tail_end;
			in->tail = NULL;
		} else {
			return false;
		}
	}
	return true;
}

size_t xdr_in_left(const struct xdr_in *in)
{
	size_t len = piece_left(in);

	for (int i = 0; i < in->nr_iov; i++)
		len += in->iov[i].iov_len;
	if (in->tail)
		len += (size_t)(in->tail_end - in->tail);
	return len;
}

int xdr_get_bytes(struct xdr_in *in, void *buf, size_t len)
{
	uint8_t *to = buf;
	size_t n;

	while (len) {
		if (!piece_next(in))
			return -EBADMSG;
		n = min_of(len, piece_left(in));
		memcpy(to, in->p, n);
		in->p += n;
		to += n;
		len -= n;
	}
	return 0;
}

int xdr_skip(struct xdr_in *in, size_t len)
{
	size_t n;

	while (len) {
		if (!piece_next(in))
			return -EBADMSG;
		n = min_of(len, piece_left(in));
		in->p += n;
		len -= n;
	}
	return 0;
}

int xdr_get_opaque_max(struct xdr_in *in, struct xdr_opaque *v, uint32_t max)
{
	uint32_t len;

	if (xdr_get_u32(in, &len) || len > max)
		return -EBADMSG;
	if (len && !piece_next(in))
		return -EBADMSG;
	if (len > piece_left(in))
		return -EBADMSG;
	v->data = in->p;
	v->len = len;
	in->p += len;
	return xdr_skip(in, xdr_pad(len));
}

int xdr_get_bulk(struct xdr_in *in, uint32_t max, struct iovec *iov, int nr_max,
		 int *nr_iov, uint32_t *len)
{
	uint32_t total, left;
	size_t n;
	int nr = 0;

	if (xdr_get_u32(in, &total) || total > max)
		return -EBADMSG;
	for (left = total; left; left -= (uint32_t)n) {
		if (nr == nr_max || !piece_next(in))
			return -EBADMSG;
		n = min_of((size_t)left, piece_left(in));
		iov[nr].iov_base = (void *)in->p;
		iov[nr].iov_len = n;
		nr++;
		in->p += n;
	}
	*nr_iov = nr;
	*len = total;
	return xdr_skip(in, xdr_pad(total));
}

void xdr_out_bytes(struct xdr_out *out, const void *data, uint32_t len)
{
	uint32_t pad = xdr_pad(len);
	uint8_t *p = xdr_out_hole(out, (size_t)len + pad);

	if (!p)
		return;
	if (len)
		memcpy(p, data, len);
	memset(p + len, 0, pad);
}

void xdr_out_opaque(struct xdr_out *out, const void *data, uint32_t len)
{
	xdr_out_u32(out, len);
	xdr_out_bytes(out, data, len);
}

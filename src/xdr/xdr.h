/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * XDR (RFC 4506): bounds-checked cursors for reading and writing, and the
 * primitive types.
 *
 * A reader (struct xdr_in) walks over one buffer, or over a head, a vector and
 * a tail that together are one message. It never allocates and never copies
 * variable-length data: opaques are pointers into the message, valid as long
 * as the message. A writer (struct xdr_out) fills one buffer; running out of
 * room is remembered and asked for once at the end.
 *
 * For each type T there are
 *
 *	xdr_T					the C type
 *	int xdr_get_T(struct xdr_in *, xdr_T *)	0 or -EBADMSG
 *	void xdr_put_T(struct xdr_out *, const xdr_T *)
 *	size_t xdr_size_T(const xdr_T *)	encoded bytes
 *
 * for the primitives here, and for whatever xdr/fields.h makes from a list of
 * fields. Anything else with these four names can be a field as well.
 *
 * After -EBADMSG the cursor's place and the value are unspecified; nothing
 * outside the message was read. Cursors belong to one thread.
 */
#ifndef TR_XDR_XDR_H
#define TR_XDR_XDR_H

#include "base/compiler.h"

#include <errno.h>
#include <stdbool.h>
#include <string.h>
#include <sys/uio.h>

/* ---- reading ---- */

struct xdr_in {
	const uint8_t *p; /* next byte of the current piece */
	const uint8_t *end;
	const struct iovec *iov; /* pieces that follow it */
	int nr_iov;
	const uint8_t *tail; /* the last piece, after iov; NULL: none */
	const uint8_t *tail_end;
};

/* A message in one buffer; NULL if len is 0. */
static inline void xdr_in_init(struct xdr_in *in, const void *buf, size_t len)
{
	/* Even adding 0 to a null pointer is undefined. */
	const uint8_t *p = buf ? buf : (const void *)"";

	*in = (struct xdr_in){ .p = p, .end = p + len };
}

/* What follows the buffer given to xdr_in_init(): the vector, which must stay
 * in place, then tail (NULL: none). */
static inline void xdr_in_append(struct xdr_in *in, const struct iovec *iov,
				 int nr_iov, const void *tail, size_t tail_len)
{
	in->iov = iov;
	in->nr_iov = nr_iov;
	in->tail = tail;
	in->tail_end = tail ? (const uint8_t *)tail + tail_len : NULL;
}

/* Bytes not yet read, in all pieces. */
size_t xdr_in_left(const struct xdr_in *in);

/* Copies len bytes, across pieces: 0 or -EBADMSG. */
int xdr_get_bytes(struct xdr_in *in, void *buf, size_t len) MUST_CHECK;

/* Passes over len bytes, across pieces: 0 or -EBADMSG. */
int xdr_skip(struct xdr_in *in, size_t len) MUST_CHECK;

static inline uint32_t xdr_load32(const void *p)
{
	uint32_t v;

	memcpy(&v, p, 4);
	return __builtin_bswap32(v);
}

static inline void xdr_store32(void *p, uint32_t v)
{
	v = __builtin_bswap32(v);
	memcpy(p, &v, 4);
}

/* Bytes of padding behind len bytes of opaque. */
static inline uint32_t xdr_pad(uint32_t len)
{
	return -len & 3;
}

typedef uint32_t xdr_u32;
typedef int32_t xdr_i32;
typedef uint64_t xdr_u64;
typedef bool xdr_bool;

MUST_CHECK static inline int xdr_get_u32(struct xdr_in *in, uint32_t *v)
{
	uint8_t b[4];

	if (likely(in->end - in->p >= 4)) {
		*v = xdr_load32(in->p);
		in->p += 4;
		return 0;
	}
	if (xdr_get_bytes(in, b, 4))
		return -EBADMSG;
	*v = xdr_load32(b);
	return 0;
}

MUST_CHECK static inline int xdr_get_i32(struct xdr_in *in, int32_t *v)
{
	uint32_t u;

	if (xdr_get_u32(in, &u))
		return -EBADMSG;
	*v = (int32_t)u;
	return 0;
}

MUST_CHECK static inline int xdr_get_u64(struct xdr_in *in, uint64_t *v)
{
	uint32_t hi, lo;

	if (xdr_get_u32(in, &hi) || xdr_get_u32(in, &lo))
		return -EBADMSG;
	*v = (uint64_t)hi << 32 | lo;
	return 0;
}

/* Values other than 0 and 1 are bad messages. */
MUST_CHECK static inline int xdr_get_bool(struct xdr_in *in, bool *v)
{
	uint32_t u;

	if (xdr_get_u32(in, &u) || u > 1)
		return -EBADMSG;
	*v = u;
	return 0;
}

/* Variable-length bytes inside the message; for strings too (not terminated,
 * may contain NUL: whoever gives them a meaning checks that). */
struct xdr_opaque {
	const uint8_t *data;
	uint32_t len;
};

/*
 * A counted opaque of at most max bytes and its padding. It must lie within
 * one piece of the message (rpc/ sees to that for all but bulk payload).
 */
int xdr_get_opaque_max(struct xdr_in *in, struct xdr_opaque *v,
		       uint32_t max) MUST_CHECK;

/*
 * A counted opaque that may be spread over pieces: bulk payload. Sets *len and
 * *nr_iov and fills iov with where the bytes are; -EBADMSG also if it is
 * longer than max or in more than nr_max pieces. Passes over the padding.
 */
int xdr_get_bulk(struct xdr_in *in, uint32_t max, struct iovec *iov, int nr_max,
		 int *nr_iov, uint32_t *len) MUST_CHECK;

/* ---- writing ---- */

struct xdr_out {
	uint8_t *start;
	uint8_t *p; /* next byte */
	uint8_t *end;
	bool overflow; /* something did not fit; the rest is ignored */
};

static inline void xdr_out_init(struct xdr_out *out, void *buf, size_t len)
{
	*out = (struct xdr_out){ .start = buf,
				 .p = buf,
				 .end = (uint8_t *)buf + len };
}

static inline size_t xdr_out_len(const struct xdr_out *out)
{
	return (size_t)(out->p - out->start);
}

static inline size_t xdr_out_room(const struct xdr_out *out)
{
	return out->overflow ? 0 : (size_t)(out->end - out->p);
}

/*
 * Room for len bytes, to be filled now or later by the caller (xdr_store32()
 * for a word that is known at the end); NULL if it does not fit.
 */
static inline uint8_t *xdr_out_hole(struct xdr_out *out, size_t len)
{
	uint8_t *p = out->p;

	if (unlikely(out->overflow || (size_t)(out->end - p) < len)) {
		out->overflow = true;
		return NULL;
	}
	out->p += len;
	return p;
}

/* Goes back to what xdr_out_len() was: whatever came after is forgotten, a
 * failure to fit included. For lists that are cut where they do not fit. */
static inline void xdr_out_rewind(struct xdr_out *out, size_t len)
{
	out->p = out->start + len;
	out->overflow = false;
}

static inline void xdr_out_u32(struct xdr_out *out, uint32_t v)
{
	uint8_t *p = xdr_out_hole(out, 4);

	if (likely(p))
		xdr_store32(p, v);
}

static inline void xdr_out_u64(struct xdr_out *out, uint64_t v)
{
	uint8_t *p = xdr_out_hole(out, 8);

	if (likely(p)) {
		xdr_store32(p, (uint32_t)(v >> 32));
		xdr_store32(p + 4, (uint32_t)v);
	}
}

static inline void xdr_out_bool(struct xdr_out *out, bool v)
{
	xdr_out_u32(out, v);
}

/* Fixed-length bytes and their padding. */
void xdr_out_bytes(struct xdr_out *out, const void *data, uint32_t len);

/* The count, the bytes, the padding. */
void xdr_out_opaque(struct xdr_out *out, const void *data, uint32_t len);

static inline void xdr_put_u32(struct xdr_out *out, const uint32_t *v)
{
	xdr_out_u32(out, *v);
}

static inline void xdr_put_i32(struct xdr_out *out, const int32_t *v)
{
	xdr_out_u32(out, (uint32_t)*v);
}

static inline void xdr_put_u64(struct xdr_out *out, const uint64_t *v)
{
	xdr_out_u64(out, *v);
}

static inline void xdr_put_bool(struct xdr_out *out, const bool *v)
{
	xdr_out_u32(out, *v);
}

static inline size_t xdr_size_u32(const uint32_t *v)
{
	return 4;
}

static inline size_t xdr_size_i32(const int32_t *v)
{
	return 4;
}

static inline size_t xdr_size_u64(const uint64_t *v)
{
	return 8;
}

static inline size_t xdr_size_bool(const bool *v)
{
	return 4;
}

static inline size_t xdr_size_opaque_len(uint32_t len)
{
	return 4 + (size_t)len + xdr_pad(len);
}

#endif

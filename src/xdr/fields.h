/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * One list of fields makes the struct, its decoder, its encoder and its size.
 *
 *	XDR_OPAQUE(nfs3_fh, 64)
 *
 *	#define NFS3_READ_ARGS(F) \
 *		F(nfs3_fh, file)  \
 *		F(u64, offset)    \
 *		F(u32, count)
 *	XDR_STRUCT(nfs3_read_args, NFS3_READ_ARGS)
 *
 * gives struct nfs3_read_args, xdr_get_nfs3_read_args(),
 * xdr_put_nfs3_read_args(), xdr_size_nfs3_read_args(), and
 * xdr_decode_nfs3_read_args() with the void * that a dispatch row wants. A
 * field's type is any T for which the four names of xdr/xdr.h exist, so unions
 * are written by hand and used like the rest.
 */
#ifndef TR_XDR_FIELDS_H
#define TR_XDR_FIELDS_H

#include "xdr/xdr.h"

#define XDR_FIELD_DECL_(type, name) xdr_##type name;
#define XDR_FIELD_GET_(type, name)                                             \
	if (xdr_get_##type(in, &v->name))                                      \
		return -EBADMSG;
#define XDR_FIELD_PUT_(type, name) xdr_put_##type(out, &v->name);
#define XDR_FIELD_SIZE_(type, name) +xdr_size_##type(&v->name)

#define XDR_STRUCT(T, LIST)                                                    \
	struct T {                                                             \
		LIST(XDR_FIELD_DECL_)                                          \
	};                                                                     \
	typedef struct T xdr_##T;                                              \
	UNUSED MUST_CHECK static inline int xdr_get_##T(struct xdr_in *in,     \
							struct T *v)           \
	{                                                                      \
		LIST(XDR_FIELD_GET_)                                           \
		return 0;                                                      \
	}                                                                      \
	UNUSED static inline int xdr_decode_##T(struct xdr_in *in, void *v)    \
	{                                                                      \
		return xdr_get_##T(in, v);                                     \
	}                                                                      \
	UNUSED static inline void xdr_put_##T(struct xdr_out *out,             \
					      const struct T *v){              \
		LIST(XDR_FIELD_PUT_)                                           \
	} UNUSED static inline size_t xdr_size_##T(const struct T *v)          \
	{                                                                      \
		return 0 LIST(XDR_FIELD_SIZE_);                                \
	}

/* Counted bytes (or a string) of at most max, pointing into the message. */
#define XDR_OPAQUE(T, max)                                                     \
	typedef struct xdr_opaque xdr_##T;                                     \
	UNUSED MUST_CHECK static inline int xdr_get_##T(struct xdr_in *in,     \
							xdr_##T *v)            \
	{                                                                      \
		return xdr_get_opaque_max(in, v, max);                         \
	}                                                                      \
	UNUSED static inline void xdr_put_##T(struct xdr_out *out,             \
					      const xdr_##T *v)                \
	{                                                                      \
		xdr_out_opaque(out, v->data, v->len);                          \
	}                                                                      \
	UNUSED static inline size_t xdr_size_##T(const xdr_##T *v)             \
	{                                                                      \
		return xdr_size_opaque_len(v->len);                            \
	}

/* size bytes without a count, copied: struct T { uint8_t data[size]; }. */
#define XDR_FIXED(T, size)                                                     \
	struct T {                                                             \
		uint8_t data[size];                                            \
	};                                                                     \
	typedef struct T xdr_##T;                                              \
	UNUSED MUST_CHECK static inline int xdr_get_##T(struct xdr_in *in,     \
							struct T *v)           \
	{                                                                      \
		return xdr_get_bytes(in, v->data, size)                        \
			       ? -EBADMSG                                      \
			       : xdr_skip(in, xdr_pad(size));                  \
	}                                                                      \
	UNUSED static inline void xdr_put_##T(struct xdr_out *out,             \
					      const struct T *v)               \
	{                                                                      \
		xdr_out_bytes(out, v->data, size);                             \
	}                                                                      \
	UNUSED static inline size_t xdr_size_##T(const struct T *v)            \
	{                                                                      \
		return (size) + xdr_pad(size);                                 \
	}

/* One of first..last; anything else is a bad message. */
#define XDR_ENUM(T, first, last)                                               \
	typedef uint32_t xdr_##T;                                              \
	UNUSED MUST_CHECK static inline int xdr_get_##T(struct xdr_in *in,     \
							uint32_t *v)           \
	{                                                                      \
		if (xdr_get_u32(in, v))                                        \
			return -EBADMSG;                                       \
		return *v - (first) > (last) - (first) ? -EBADMSG : 0;         \
	}                                                                      \
	UNUSED static inline void xdr_put_##T(struct xdr_out *out,             \
					      const uint32_t *v)               \
	{                                                                      \
		xdr_out_u32(out, *v);                                          \
	}                                                                      \
	UNUSED static inline size_t xdr_size_##T(const uint32_t *v)            \
	{                                                                      \
		return 4;                                                      \
	}

/* A bool and, if it is true, a value: XDR's optional data and the unions of
 * that shape. value is zeroed when absent. */
#define XDR_OPTIONAL(T, type)                                                  \
	struct T {                                                             \
		bool present;                                                  \
		xdr_##type value;                                              \
	};                                                                     \
	typedef struct T xdr_##T;                                              \
	UNUSED MUST_CHECK static inline int xdr_get_##T(struct xdr_in *in,     \
							struct T *v)           \
	{                                                                      \
		if (xdr_get_bool(in, &v->present))                             \
			return -EBADMSG;                                       \
		if (v->present)                                                \
			return xdr_get_##type(in, &v->value);                  \
		memset(&v->value, 0, sizeof(v->value));                        \
		return 0;                                                      \
	}                                                                      \
	UNUSED static inline void xdr_put_##T(struct xdr_out *out,             \
					      const struct T *v)               \
	{                                                                      \
		xdr_out_bool(out, v->present);                                 \
		if (v->present)                                                \
			xdr_put_##type(out, &v->value);                        \
	}                                                                      \
	UNUSED static inline size_t xdr_size_##T(const struct T *v)            \
	{                                                                      \
		return 4 + (v->present ? xdr_size_##type(&v->value) : 0);      \
	}

/* A counted array of at most max elements, kept in the struct: nr and e[]. */
#define XDR_ARRAY(T, type, max)                                                \
	struct T {                                                             \
		uint32_t nr;                                                   \
		xdr_##type e[max];                                             \
	};                                                                     \
	typedef struct T xdr_##T;                                              \
	UNUSED MUST_CHECK static inline int xdr_get_##T(struct xdr_in *in,     \
							struct T *v)           \
	{                                                                      \
		if (xdr_get_u32(in, &v->nr) || v->nr > (max))                  \
			return -EBADMSG;                                       \
		for (uint32_t i = 0; i < v->nr; i++) {                         \
			if (xdr_get_##type(in, &v->e[i]))                      \
				return -EBADMSG;                               \
		}                                                              \
		return 0;                                                      \
	}                                                                      \
	UNUSED static inline void xdr_put_##T(struct xdr_out *out,             \
					      const struct T *v)               \
	{                                                                      \
		xdr_out_u32(out, v->nr);                                       \
		for (uint32_t i = 0; i < v->nr; i++)                           \
			xdr_put_##type(out, &v->e[i]);                         \
	}                                                                      \
	UNUSED static inline size_t xdr_size_##T(const struct T *v)            \
	{                                                                      \
		size_t n = 4;                                                  \
                                                                               \
		for (uint32_t i = 0; i < v->nr; i++)                           \
			n += xdr_size_##type(&v->e[i]);                        \
		return n;                                                      \
	}

#endif

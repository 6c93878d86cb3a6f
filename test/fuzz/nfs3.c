/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Goal: arguments of every NFSv3 and MOUNT procedure decode from any bytes
 * without leaving them; what was decoded is encoded to the size foretold and
 * decodes to the same bytes again. Handles are checked without leaving them.
 *
 * Method: libFuzzer. The first byte chooses the type.
 */
#include "fs/handle.h"
#include "nfs/mount3_xdr.h"
#include "nfs/nfs3_xdr.h"

#include <stdlib.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t len);

/* One function a type: decode, encode, decode, encode, compare. */
#define ROUND(T)                                                               \
	static void round_##T(struct xdr_in *in)                               \
	{                                                                      \
		struct xdr_in again;                                           \
		struct xdr_out out;                                            \
		uint8_t *a, *b;                                                \
		struct T v, w;                                                 \
		size_t size;                                                   \
                                                                               \
		if (xdr_get_##T(in, &v))                                       \
			return;                                                \
		size = xdr_size_##T(&v);                                       \
		a = malloc(size);                                              \
		b = malloc(size);                                              \
		xdr_out_init(&out, a, size);                                   \
		xdr_put_##T(&out, &v);                                         \
		if (out.overflow || xdr_out_len(&out) != size)                 \
			abort();                                               \
		xdr_in_init(&again, a, size);                                  \
		if (xdr_get_##T(&again, &w) || xdr_in_left(&again))            \
			abort();                                               \
		xdr_out_init(&out, b, size);                                   \
		xdr_put_##T(&out, &w);                                         \
		if (out.overflow || memcmp(a, b, size))                        \
			abort();                                               \
		free(a);                                                       \
		free(b);                                                       \
	}

#define TYPES(X)                                                               \
	X(nfs3_fh_args)                                                        \
	X(nfs3_setattr_args)                                                   \
	X(nfs3_dirop)                                                          \
	X(nfs3_access_args)                                                    \
	X(nfs3_read_args)                                                      \
	X(nfs3_write_args)                                                     \
	X(nfs3_create_args)                                                    \
	X(nfs3_mkdir_args)                                                     \
	X(nfs3_symlink_args)                                                   \
	X(nfs3_mknod_args)                                                     \
	X(nfs3_rename_args)                                                    \
	X(nfs3_link_args)                                                      \
	X(nfs3_readdir_args)                                                   \
	X(nfs3_readdirplus_args)                                               \
	X(nfs3_commit_args)                                                    \
	X(mount3_path_args)

TYPES(ROUND)

#define ROW(T) round_##T,
static void (*const rounds[])(struct xdr_in *in) = { TYPES(ROW) };

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t len)
{
	static const struct siphash_key key = { { 3, 4 } };
	struct fs_handle h;
	struct xdr_in in;

	if (!len)
		return 0;
	xdr_in_init(&in, data + 1, len - 1);
	rounds[data[0] % ARRAY_SIZE(rounds)](&in);
	/* libFuzzer sees the checksum it is compared with: it may forge one. */
	if (!handle_decode(&key, data + 1, len - 1, &h) &&
	    h.len > HANDLE_BYTES_MAX)
		abort();
	return 0;
}

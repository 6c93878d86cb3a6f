/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * SipHash-2-4 (Aumasson and Bernstein 2012): a keyed checksum that nobody
 * without the key can make. Pure; any thread.
 */
#ifndef TR_FS_SIPHASH_H
#define TR_FS_SIPHASH_H

#include "base/compiler.h"

struct siphash_key {
	uint64_t k[2];
};

uint64_t siphash(const struct siphash_key *key, const void *data, size_t len);

#endif

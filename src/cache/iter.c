/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * Copying between folios and the caller's memory.
 *
 * A read copies from a folio while a write may copy into it: bytes of one
 * folio are as some order of the calls would leave them, byte for byte, which
 * is what POSIX systems give. ThreadSanitizer is told not to look.
 */
#include "cache/io.h"

#include <string.h>

#ifndef __has_feature
#define __has_feature(x) 0
#endif
#if defined(__SANITIZE_THREAD__) || __has_feature(thread_sanitizer)
__attribute__((no_sanitize("thread"))) static void copy(void *to,
							const void *from,
							size_t len)
{
	volatile char *t = to;
	const volatile char *f = from;

	while (len--)
		*t++ = *f++;
}
#else
#define copy memcpy
#endif

static size_t step(struct iter *it, size_t len)
{
	while (it->nr && it->skip == it->iov->iov_len) {
		it->iov++;
		it->nr--;
		it->skip = 0;
	}
	return min_of(len, it->iov->iov_len - it->skip);
}

void iter_copy_from(struct iter *it, void *to, size_t len)
{
	while (len) {
		size_t n = step(it, len);

		copy(to, (char *)it->iov->iov_base + it->skip, n);
		it->skip += n;
		to = (char *)to + n;
		len -= n;
	}
}

void iter_copy_to(struct iter *it, const void *from, size_t len)
{
	while (len) {
		size_t n = step(it, len);

		copy((char *)it->iov->iov_base + it->skip, from, n);
		it->skip += n;
		from = (const char *)from + n;
		len -= n;
	}
}

void iter_zero(struct iter *it, size_t len)
{
	while (len) {
		size_t n = step(it, len);

		memset((char *)it->iov->iov_base + it->skip, 0, n);
		it->skip += n;
		len -= n;
	}
}

void iter_skip(struct iter *it, size_t len)
{
	while (len) {
		size_t n = step(it, len);

		it->skip += n;
		len -= n;
	}
}

const void *iter_at(struct iter *it)
{
	(void)step(it, 0);
	return (const char *)it->iov->iov_base + it->skip;
}

size_t iov_total(const struct iovec *iov, int nr)
{
	size_t len = 0;

	for (int i = 0; i < nr; i++)
		len += iov[i].iov_len;
	return len;
}

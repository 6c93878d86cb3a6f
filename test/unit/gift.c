/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Goal: bytes received into a gift and written are those of the file, with a
 * copy or without; folios of which something is cached are not replaced; what
 * was not adopted is given back, and gifts hold no more than their share.
 *
 * Method: writes at offsets and of lengths that are whole units, or not, on
 * devices of three block sizes, cached and uncached, over nothing and over
 * other bytes; the file is read back and compared with the device. The rig
 * checks the cache's invariants and that no page is lost.
 */
#include "lib/test.h"

#include <errno.h>
#include <stdlib.h>

#include "cache/gift.h"
#include "folio/core.h"
#include "lib/cachetest.h"

#define NR(a) (sizeof(a) / sizeof((a)[0]))

static const struct rig_options kinds[] = {
	{ .block = 4096, .offset_align = 512 },
	{ .block = 16384, .offset_align = 4096 },
	{ .block = 1024, .offset_align = 512 },
};

/* A write with whole pages in a gift and both ends in memory of its own. */
static void write_gift(struct rig *r, size_t len, int64_t off, unsigned version,
		       unsigned flags)
{
	size_t first = (size_t)(-off & 4095), pages, last;
	struct iovec iov[GIFT_MAX + 2];
	char head[4096], tail[4096];
	struct gift g;
	int nr = 0, nr_gift;
	int64_t pos = off;

	pages = (len - first) & ~(size_t)4095;
	last = len - first - pages;
	if (first)
		iov[nr++] = (struct iovec){ head, first };
	assert_int_equal(gift_start(r->cache, off + (int64_t)first, pages, &g,
				    iov + nr, &nr_gift),
			 0);
	nr += nr_gift;
	if (last)
		iov[nr++] = (struct iovec){ tail, last };
	for (int i = 0; i < nr; i++) {
		rig_pattern(iov[i].iov_base, iov[i].iov_len, pos, version);
		pos += (int64_t)iov[i].iov_len;
	}
	assert_int_equal(gift_writev(r->file, &g, iov, nr, off, flags), len);
	gift_end(&g);
}

static void bytes_arrive(void **state)
{
	static const unsigned flags[] = { 0, TR_DONTCACHE,
					  TR_DONTCACHE | TR_SYNC };
	static const size_t lens[] = { 1 << 20, 47008, 65536, 40000 };

	(void)state;
	for (size_t k = 0; k < NR(kinds) * NR(flags) * NR(lens); k++) {
		size_t len = lens[k % NR(lens)];
		unsigned f = flags[k / NR(lens) % NR(flags)];
		struct rig r;

		rig_init(&r, &kinds[k / NR(lens) / NR(flags)]);
		/* Each shares a unit with the one before, and one is over
		 * what is there. */
		for (int64_t i = 0; i < 4; i++)
			write_gift(&r, len, i * (int64_t)len, 1, f);
		write_gift(&r, len, (int64_t)len, 2, f);
		rig_check(&r);
		rig_verify(r.file, len, 0, 1, 0);
		rig_verify(r.file, len, (int64_t)len, 2, 0);
		rig_verify(r.file, 2 * len, 2 * (int64_t)len, 1, 0);
		assert_true(rig_statistics(&r).adopted > 0);
		assert_int_equal(atomic_load(&r.cache->gift_pages), 0);
		assert_int_equal(tr_fsync(r.file), 0);
		rig_fini(&r);
	}
}

static void whole_units_are_not_copied(void **state)
{
	struct rig r;

	(void)state;
	rig_init(&r, &kinds[0]);
	write_gift(&r, 1 << 20, 0, 1, 0);
	assert_int_equal(rig_statistics(&r).adopted, 256);
	/* What is cached stays the folio it is: it may be mapped. */
	write_gift(&r, 1 << 20, 0, 2, 0);
	assert_int_equal(rig_statistics(&r).adopted, 256);
	rig_verify(r.file, 1 << 20, 0, 2, 0);
	rig_fini(&r);
}

static void what_is_not_written_goes_back(void **state)
{
	struct iovec iov[GIFT_MAX];
	struct gift g[2];
	struct rig r;
	int nr;

	(void)state;
	rig_init(&r, &kinds[0]);
	assert_int_equal(gift_start(r.cache, 4096, 1 << 20, &g[0], iov, &nr),
			 0);
	/* A sixteenth of the cache; a second makes an eighth and more. */
	assert_int_equal(gift_start(r.cache, 0, 1 << 20, &g[1], iov, &nr),
			 -ENOMEM);
	gift_end(&g[0]);
	assert_int_equal(atomic_load(&r.cache->gift_pages), 0);
	assert_int_equal(gift_start(r.cache, 0, 1 << 20, &g[1], iov, &nr), 0);
	gift_end(&g[1]);
	rig_check(&r);
	rig_fini(&r);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(bytes_arrive),
		cmocka_unit_test(whole_units_are_not_copied),
		cmocka_unit_test(what_is_not_written_goes_back),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}

/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Goal: WRITEs are cut exactly as the rules say, up to the largest offset, and
 * reads are widened without passing it.
 *
 * Method: every small combination of alignments, unit, offset, length and
 * memory offset is compared with an oracle that walks byte by byte; the same
 * window is then moved against the largest offset. Random vectors check that
 * the segments hold the payload's bytes in order.
 */
#include "lib/test.h"

#include "base/rng.h"
#include "fs/split.h"

#include <stdbool.h>
#include <string.h>

/* Whether x is a multiple of a, by subtraction of what fits: no masks. */
static bool multiple(uint64_t x, uint64_t a)
{
	return x == x / a * a;
}

/* The rules of the table, one byte at a time. */
static void oracle(const struct split_rules *r, uint64_t off, size_t total,
		   uintptr_t mem, struct split *out)
{
	uint64_t c = r->offset_align > r->unit ? r->offset_align : r->unit;
	uint64_t end = off + total;
	size_t p = 0, s = 0;

	memset(out, 0, sizeof(*out));
	if (!r->offset_align) {
		out->disposition = SPLIT_NO_ALIGNMENT;
		return;
	}
	if (total < r->offset_align || total < r->mem_align) {
		out->disposition = SPLIT_TOO_SMALL;
		return;
	}
	if (!multiple(off, r->offset_align))
		while (p < total && !multiple(off + p, c))
			p++;
	if (!multiple(end, r->offset_align))
		while (p + s < total && !multiple(end - s, c))
			s++;
	out->prefix = p;
	out->suffix = s;
	out->middle = total - p - s;
	if (!out->middle ||
	    ((p || s) && out->middle < (size_t)r->num_pages * 4096))
		out->disposition = SPLIT_NO_MIDDLE;
	else if (!multiple(mem + p, r->mem_align) ||
		 !multiple(out->middle, r->mem_align))
		out->disposition = SPLIT_MEM_MISALIGNED;
	else
		out->disposition = SPLIT_DIRECT;
}

static void compare(const struct split_rules *r, uint64_t off, size_t total,
		    uintptr_t mem)
{
	struct iovec iov = { (void *)mem, total }, parts[SPLIT_IOV(1)];
	struct split want, got;
	size_t sum = 0;
	int i;

	oracle(r, off, total, mem, &want);
	split_write(r, (int64_t)off, &iov, 1, parts, &got);
	if (want.disposition != got.disposition || want.prefix != got.prefix ||
	    want.middle != got.middle || want.suffix != got.suffix)
		fail_msg("A %u M %u unit %u pages %u off %lu len %zu mem %lu",
			 r->offset_align, r->mem_align, r->unit, r->num_pages,
			 off, total, mem);
	assert_int_equal(got.mem_offset, mem % 4096);
	for (i = 0; i < got.nr; i++) {
		const struct split_segment *s = &got.segments[i];

		assert_int_equal(s->off, off + sum);
		assert_true(s->len || !total);
		assert_int_equal(s->nr_iov, 1);
		assert_int_equal((uintptr_t)s->iov[0].iov_base, mem + sum);
		assert_int_equal(s->iov[0].iov_len, s->len);
		sum += s->len;
	}
	assert_int_equal(sum, total);
	if (got.disposition == SPLIT_DIRECT)
		assert_int_equal(got.nr, 1 + !!want.prefix + !!want.suffix);
	else
		assert_int_equal(got.nr, 1);
}

static const uint32_t aligns[] = { 0, 1, 2, 8, 16 };
static const uint32_t mems[] = { 1, 4, 8 };
static const uint32_t units[] = { 1, 8, 32 };

static void split_small(void **state)
{
	struct split_rules r;
	size_t a, m, u, len;
	uint64_t off;
	int mem;

	(void)state;
	for (a = 0; a < ARRAY_SIZE(aligns); a++)
		for (m = 0; m < ARRAY_SIZE(mems); m++)
			for (u = 0; u < ARRAY_SIZE(units); u++)
				for (off = 0; off < 70; off++)
					for (len = 0; len < 100; len++)
						for (mem = 0; mem < 9;
						     mem += 4 - mem % 2) {
							r = (struct
							     split_rules){
								aligns[a],
								mems[m],
								units[u], 0
							};
							compare(&r, off, len,
								(uintptr_t)mem);
							compare(&r,
								INT64_MAX -
									off -
									len,
								len,
								(uintptr_t)mem);
						}
}

static void split_pages(void **state)
{
	static const uint32_t real[] = { 512, 4096, 16384 };
	struct split_rules r = { .mem_align = 512 };
	struct rng rng;
	size_t len;
	uint64_t off;
	int i;

	(void)state;
	rng_seed(&rng, seed_draw());
	for (i = 0; i < 200000; i++) {
		r.offset_align = real[rng_below(&rng, 3)];
		r.unit = real[1 + rng_below(&rng, 2)];
		r.num_pages = (uint32_t)rng_below(&rng, 5);
		off = rng_below(&rng, 9) * 4096 + rng_below(&rng, 3) * 511;
		len = rng_below(&rng, 12) * 4096 + rng_below(&rng, 3) * 1000;
		if (i % 2)
			off = INT64_MAX - off - len;
		compare(&r, off, len, rng_below(&rng, 3) * 256 + off % 4096);
	}
}

/* The middle's vectors must each be aligned, in address and length. */
static void split_vectors(void **state)
{
	struct split_rules r = { 512, 512, 4096, 0 };
	char *base = (char *)(uintptr_t)0x100000;
	struct iovec iov[4], parts[SPLIT_IOV(4)];
	struct split s;
	size_t sum = 0;
	int i, j;

	(void)state;
	iov[0] = (struct iovec){ base + 100, 4096 - 100 };
	iov[1] = (struct iovec){ base + 8192, 4096 };
	iov[2] = (struct iovec){ base + 16384, 0 };
	iov[3] = (struct iovec){ base + 20480, 4096 + 10 };
	split_write(&r, 100, iov, 4, parts, &s);
	assert_int_equal(s.disposition, SPLIT_DIRECT);
	assert_int_equal(s.nr, 3);
	assert_int_equal(s.segments[1].nr_iov, 2);
	for (i = 0; i < s.nr; i++)
		for (j = 0; j < s.segments[i].nr_iov; j++)
			sum += s.segments[i].iov[j].iov_len;
	assert_int_equal(sum, 3 * 4096 - 90);

	iov[1].iov_base = base + 8192 + 256;
	split_write(&r, 100, iov, 4, parts, &s);
	assert_int_equal(s.disposition, SPLIT_MEM_MISALIGNED);
	assert_int_equal(s.nr, 1);
	assert_int_equal(s.segments[0].off, 100);
	assert_ptr_equal(s.segments[0].iov, iov);
	assert_string_equal(split_disposition_name(s.disposition),
			    "mem_misaligned");
}

static void widen(void **state)
{
	int64_t off, o;
	size_t len, l, before;

	(void)state;
	for (off = 0; off < 40; off++) {
		for (len = 0; len < 60; len++) {
			o = off;
			l = len;
			before = split_widen_read(16, &o, &l);
			assert_int_equal(o % 16, 0);
			assert_int_equal(l % 16, 0);
			assert_int_equal(o + (int64_t)before, off);
			assert_true(before < 16 && l >= before + len);
			assert_true(l < before + len + 16);
		}
	}
	o = INT64_MAX - 20;
	l = 100;
	before = split_widen_read(16, &o, &l);
	assert_int_equal(o + (int64_t)l, INT64_MAX);
	assert_int_equal(before, (INT64_MAX - 20) % 16);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(split_small),
		cmocka_unit_test(split_pages),
		cmocka_unit_test(split_vectors),
		cmocka_unit_test(widen),
	};
	return cmocka_run_group_tests(tests, leak_setup, leak_check);
}

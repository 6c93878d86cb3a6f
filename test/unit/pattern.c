/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Goal: the verifier accepts what was written, at any alignment, and nothing
 * else; the shuffle is a permutation. Method: a file image in memory is read
 * in pieces of odd lengths, then damaged in the ways that storage damages:
 * a byte, a hole, a page of another record, another run's data.
 */
#include "lib/test.h"

#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

#include "cmd/bench/pattern.h"

#define RECORDS 40u
#define RECORD 5003u
#define BYTES (RECORDS * RECORD)

struct image {
	struct pattern p;
	char *bytes;
};

static void image_init(struct image *im)
{
	assert_int_equal(pattern_init(&im->p, RECORD, 1), 0);
	im->bytes = malloc(BYTES);
	assert_non_null(im->bytes);
	for (unsigned i = 0; i < RECORDS; i++)
		memcpy(im->bytes + i * RECORD, pattern_record(&im->p, 7, i),
		       RECORD);
}

static void image_fini(struct image *im)
{
	pattern_fini(&im->p);
	free(im->bytes);
}

static bool image_matches(struct image *im, uint64_t seed, size_t piece,
			  uint64_t *wrong)
{
	for (size_t off = 0; off < BYTES; off += piece) {
		size_t n = BYTES - off < piece ? BYTES - off : piece;

		if (!pattern_matches(&im->p, seed, im->bytes + off, off, n,
				     wrong))
			return false;
	}
	return true;
}

static void intact_matches(void **state)
{
	static const size_t pieces[] = { 1, 512, 4096, RECORD, 9999, BYTES };
	struct image im;
	uint64_t wrong;

	image_init(&im);
	for (size_t i = 0; i < sizeof(pieces) / sizeof(pieces[0]); i++)
		assert_true(image_matches(&im, 7, pieces[i], &wrong));
	image_fini(&im);
}

static void damage_is_found(void **state)
{
	struct image im;
	uint64_t wrong = 0;
	char saved[4096];

	image_init(&im);
	assert_false(image_matches(&im, 8, 4096, &wrong));
	for (size_t off = 0; off < BYTES; off += 701) {
		im.bytes[off] ^= 1;
		assert_false(image_matches(&im, 7, 4096, &wrong));
		assert_int_equal(wrong, off / RECORD * RECORD);
		im.bytes[off] ^= 1;
	}
	memcpy(saved, im.bytes + 8192, sizeof(saved));
	memset(im.bytes + 8192, 0, sizeof(saved));
	assert_false(image_matches(&im, 7, 4096, &wrong));
	memcpy(im.bytes + 8192, im.bytes + 16384, sizeof(saved));
	assert_false(image_matches(&im, 7, 4096, &wrong));
	memcpy(im.bytes + 8192, saved, sizeof(saved));
	assert_true(image_matches(&im, 7, 4096, &wrong));
	image_fini(&im);
}

static void aligned_for_direct(void **state)
{
	struct pattern p;

	assert_int_equal(pattern_init(&p, 8192, 4096), 0);
	for (unsigned i = 0; i < 100; i++)
		assert_int_equal((uintptr_t)pattern_record(&p, 1, i) % 4096, 0);
	pattern_fini(&p);
}

static void shuffle_is_a_permutation(void **state)
{
	for (unsigned n = 1; n < 300; n += n < 20 ? 1 : 17) {
		bool seen[300] = { false };

		for (unsigned i = 0; i < n; i++) {
			uint64_t at = pattern_shuffle(i, n);

			assert_true(at < n);
			assert_false(seen[at]);
			seen[at] = true;
		}
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(intact_matches),
		cmocka_unit_test(damage_is_found),
		cmocka_unit_test(aligned_for_direct),
		cmocka_unit_test(shuffle_is_a_permutation),
	};
	return cmocka_run_group_tests(tests, leak_setup, leak_check);
}

/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Goal: the model file agrees with a real file over random steps, and sees one
 * wrong byte, a wrong length, and bytes that come back after a truncation.
 * Method: a memfd as the file under test; then the same behind operations that
 * each make one mistake.
 */
#include "lib/test.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/falloc.h>
#include <sys/mman.h>
#include <unistd.h>

#include "lib/model.h"

#define SIZE_MAX_BYTES (1 << 18)
#define UNIT 4096

static ssize_t file_read(void *file, void *buf, size_t len, int64_t off)
{
	return pread(*(int *)file, buf, len, off);
}

static ssize_t file_write(void *file, const void *buf, size_t len, int64_t off)
{
	return pwrite(*(int *)file, buf, len, off);
}

static int file_truncate(void *file, int64_t size)
{
	return ftruncate(*(int *)file, size) ? -errno : 0;
}

static int file_punch(void *file, int64_t off, int64_t len)
{
	int mode = FALLOC_FL_PUNCH_HOLE | FALLOC_FL_KEEP_SIZE;

	return fallocate(*(int *)file, mode, off, len) ? -errno : 0;
}

static const struct model_ops file_ops = {
	.read = file_read,
	.write = file_write,
	.truncate = file_truncate,
	.punch = file_punch,
};

/* The mistakes. */

static ssize_t wrong_byte(void *file, const void *buf, size_t len, int64_t off)
{
	ssize_t n = pwrite(*(int *)file, buf, len, off);
	uint8_t last = (uint8_t) ~((const uint8_t *)buf)[len - 1];

	assert_int_equal(pwrite(*(int *)file, &last, 1, off + n - 1), 1);
	return n;
}

static ssize_t short_read(void *file, void *buf, size_t len, int64_t off)
{
	return pread(*(int *)file, buf, len / 2, off);
}

struct fixture {
	int fd;
	struct rng rng;
	struct model model;
};

static void fixture_init(struct fixture *f)
{
	f->fd = memfd_create("model", 0);
	assert_true(f->fd >= 0);
	rng_seed(&f->rng, seed_draw());
	assert_int_equal(model_init(&f->model, SIZE_MAX_BYTES, &f->rng), 0);
}

static void fixture_fini(struct fixture *f)
{
	model_fini(&f->model);
	close(f->fd);
}

static void agrees_with_file(void **state)
{
	struct fixture f;

	fixture_init(&f);
	for (unsigned i = 0; i < seed_rounds(2000); i++)
		assert_int_equal(model_step(&f.model, &file_ops, &f.fd, UNIT),
				 0);
	assert_int_equal(model_compare(&f.model, &file_ops, &f.fd), 0);
	fixture_fini(&f);
}

static void mistakes_are_seen(void **state)
{
	static const uint8_t bytes[100] = { 1, 2, 3 };
	const struct model_ops byte = { file_read, wrong_byte, NULL, NULL };
	const struct model_ops length = { short_read, file_write, NULL, NULL };
	struct fixture f;

	fixture_init(&f);
	model_write(&f.model, bytes, sizeof(bytes), 50);
	assert_int_equal(byte.write(&f.fd, bytes, sizeof(bytes), 50), 100);
	assert_int_equal(model_compare(&f.model, &byte, &f.fd), -EIO);
	assert_int_equal(length.write(&f.fd, bytes, sizeof(bytes), 50), 100);
	assert_int_equal(model_compare(&f.model, &file_ops, &f.fd), 0);
	assert_int_equal(model_compare(&f.model, &length, &f.fd), -EIO);

	/* The model is cut off and the file is not. */
	model_truncate(&f.model, 51);
	assert_int_equal(model_compare(&f.model, &file_ops, &f.fd), -EIO);
	model_truncate(&f.model, 150);
	assert_int_equal(model_compare(&f.model, &file_ops, &f.fd), -EIO);
	fixture_fini(&f);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(agrees_with_file),
		cmocka_unit_test(mistakes_are_seen),
	};

	return cmocka_run_group_tests(tests, leak_setup, leak_check);
}

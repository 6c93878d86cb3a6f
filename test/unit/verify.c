/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Goal: the reader that verifies finds on the device what is there: intact
 * data, a byte that differs, a hole, a file too short or too long; and the
 * sequential writer fills a file to the byte. Method: a small file in the
 * folder of the build, damaged through the page cache and synced.
 */
#include "lib/test.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/signalfd.h>
#include <sys/stat.h>
#include <unistd.h>

#include "cmd/bench/bench.h"

#define PATH "verify.tmp"
#define RECORDS 60u
#define RECORD 47008u
#define BYTES ((uint64_t)RECORDS * RECORD)
#define SEED 3

static void bench_setup(struct bench *b)
{
	sigset_t none;

	memset(b, 0, sizeof(*b));
	sigemptyset(&none);
	b->signal_fd = signalfd(-1, &none, SFD_CLOEXEC);
	assert_true(b->signal_fd >= 0);
	assert_int_equal(pattern_init(&b->pattern, RECORD, 1), 0);
}

static void bench_teardown(struct bench *b)
{
	pattern_fini(&b->pattern);
	close(b->signal_fd);
	unlink(PATH);
}

static int write_file(struct bench *b)
{
	int fd = open(PATH, O_RDWR | O_CREAT | O_TRUNC | O_CLOEXEC, 0600);

	assert_true(fd >= 0);
	for (unsigned i = 0; i < RECORDS; i++)
		assert_int_equal(pwrite(fd,
					pattern_record(&b->pattern, SEED, i),
					RECORD, (off_t)i * RECORD),
				 RECORD);
	assert_int_equal(fsync(fd), 0);
	return fd;
}

/* Skips where the folder's file system has no direct I/O. */
static int verify_now(struct bench *b, int fd, uint64_t *wrong)
{
	int err;

	assert_int_equal(fsync(fd), 0);
	err = verify_file(b, PATH, SEED, BYTES, wrong);
	if (err == -EINVAL || err == -EOPNOTSUPP)
		skip();
	return err;
}

static void damage_is_found(void **state)
{
	uint64_t wrong = 0;
	struct bench b;
	char byte, zeros[4096] = "";
	int fd;

	bench_setup(&b);
	fd = write_file(&b);
	assert_int_equal(verify_now(&b, fd, &wrong), 0);
	assert_int_equal(verify_file(&b, PATH, SEED + 1, BYTES, &wrong),
			 -EUCLEAN);
	assert_int_equal(pread(fd, &byte, 1, BYTES - 1), 1);
	byte ^= 1;
	assert_int_equal(pwrite(fd, &byte, 1, BYTES - 1), 1);
	assert_int_equal(verify_now(&b, fd, &wrong), -EUCLEAN);
	assert_int_equal(wrong, BYTES - RECORD);
	byte ^= 1;
	assert_int_equal(pwrite(fd, &byte, 1, BYTES - 1), 1);
	assert_int_equal(verify_now(&b, fd, &wrong), 0);
	assert_int_equal(pwrite(fd, zeros, sizeof(zeros), 1 << 20),
			 sizeof(zeros));
	assert_int_equal(verify_now(&b, fd, &wrong), -EUCLEAN);
	assert_int_equal(wrong, (1u << 20) / RECORD * RECORD);
	close(fd);
	bench_teardown(&b);
}

static void length_is_checked(void **state)
{
	uint64_t wrong = 0;
	struct bench b;
	int fd;

	bench_setup(&b);
	fd = write_file(&b);
	assert_int_equal(ftruncate(fd, (off_t)BYTES - 1), 0);
	assert_int_equal(verify_now(&b, fd, &wrong), -EUCLEAN);
	assert_int_equal(wrong, BYTES - 1);
	assert_int_equal(ftruncate(fd, (off_t)BYTES + 1), 0);
	assert_int_equal(verify_now(&b, fd, &wrong), -EUCLEAN);
	close(fd);
	bench_teardown(&b);
}

static void sequential_fills(void **state)
{
	const uint64_t sizes[] = { 1, 4096, 3 << 20, (11 << 20) + 5 };
	const char *what = NULL;
	double seconds = -1;
	struct stat st;
	char *buf;

	for (size_t i = 0; i < sizeof(sizes) / sizeof(sizes[0]); i++) {
		uint64_t n = sizes[i];
		int err = sequential_write(PATH, n, true, &seconds, &what);
		int fd;

		if (err == -EINVAL || err == -EOPNOTSUPP)
			skip();
		assert_int_equal(err, 0);
		assert_true(seconds >= 0);
		assert_non_null(what);
		fd = open(PATH, O_RDONLY | O_CLOEXEC);
		assert_int_equal(fstat(fd, &st), 0);
		assert_int_equal(st.st_size, n);
		buf = malloc(n);
		assert_non_null(buf);
		assert_int_equal(read(fd, buf, n), n);
		for (uint64_t k = 1; k < n; k++)
			assert_true(buf[k] == buf[0] && buf[0]);
		free(buf);
		close(fd);
	}
	unlink(PATH);
	assert_int_equal(sequential_write(PATH, 4096, false, &seconds, &what),
			 -ENOENT);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(damage_is_found),
		cmocka_unit_test(length_is_checked),
		cmocka_unit_test(sequential_fills),
	};
	return cmocka_run_group_tests(tests, leak_setup, leak_check);
}

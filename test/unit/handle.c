/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Goal: handles survive the wire, open the file they were made of, and nobody
 * without the key can make or change one.
 *
 * Method: the reference value of the checksum; handles of real files encoded,
 * decoded and opened; every single bit of a wire form flipped; every length.
 */
#include "lib/test.h"

#include "fs/handle.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

static const struct siphash_key key = { { 0x0706050403020100,
					  0x0f0e0d0c0b0a0908 } };

/* The values of the reference implementation for 00 01 02 ... */
static void checksum_vectors(void **state)
{
	uint8_t in[16];
	unsigned i;

	(void)state;
	for (i = 0; i < sizeof(in); i++)
		in[i] = (uint8_t)i;
	assert_int_equal(siphash(&key, in, 0), 0x726fdb47dd0e0e31);
	assert_int_equal(siphash(&key, in, 1), 0x74f839c593dc67fd);
	assert_int_equal(siphash(&key, in, 8), 0x93f5f5799a932462);
	assert_int_equal(siphash(&key, in, 15), 0xa129ca6149be45e5);
}

static struct fs_handle sample(unsigned len)
{
	struct fs_handle h = { .export_id = 77, .type = -3, .kind = 1 };
	unsigned i;

	h.len = (uint8_t)len;
	for (i = 0; i < len; i++)
		h.bytes[i] = (uint8_t)(i * 7);
	return h;
}

static void round_trip(void **state)
{
	uint8_t wire[HANDLE_WIRE_MAX];
	struct fs_handle h, got;
	unsigned len;
	size_t n;

	(void)state;
	for (len = 0; len <= HANDLE_BYTES_MAX; len++) {
		h = sample(len);
		n = handle_encode(&key, &h, wire);
		assert_int_equal(handle_decode(&key, wire, n, &got), 0);
		assert_true(handle_same(&h, &got));
		assert_int_equal(got.export_id, 77);
		assert_int_equal(handle_hash(&h), handle_hash(&got));
	}
}

static void forged(void **state)
{
	struct siphash_key other = key;
	uint8_t wire[HANDLE_WIRE_MAX];
	struct fs_handle h = sample(12), got;
	size_t n = handle_encode(&key, &h, wire), bit, len;

	(void)state;
	for (bit = 0; bit < n * 8; bit++) {
		wire[bit / 8] ^= (uint8_t)(1u << bit % 8);
		assert_int_equal(handle_decode(&key, wire, n, &got), -EBADFD);
		wire[bit / 8] ^= (uint8_t)(1u << bit % 8);
	}
	for (len = 0; len <= HANDLE_WIRE_MAX; len++)
		assert_int_equal(handle_decode(&key, wire, len, &got),
				 len == n ? 0 : -EBADFD);
	other.k[1] ^= 1;
	assert_int_equal(handle_decode(&other, wire, n, &got), -EBADFD);
}

static void opens_file(void **state)
{
	char dir[] = "/tmp/tr-handle.XXXXXX", path[64];
	struct fs_handle h;
	struct stat a, b;
	int dirfd, fd, mount, ret;

	(void)state;
	assert_non_null(mkdtemp(dir));
	snprintf(path, sizeof(path), "%s/f", dir);
	dirfd = open(dir, O_RDONLY | O_DIRECTORY);
	fd = open(path, O_CREAT | O_RDWR, 0600);
	assert_int_equal(fstat(fd, &a), 0);
	close(fd);
	ret = handle_at(dirfd, "f", &h, &mount);
	fd = ret ? ret : handle_open(dirfd, &h, O_PATH);
	if (fd == -EPERM || ret == -EOPNOTSUPP) {
		unlink(path);
		rmdir(dir);
		close(dirfd);
		skip();
	}
	assert_true(fd >= 0);
	assert_int_equal(fstat(fd, &b), 0);
	assert_int_equal(a.st_ino, b.st_ino);
	close(fd);
	unlink(path);
	assert_int_equal(handle_open(dirfd, &h, O_PATH), -ESTALE);
	rmdir(dir);
	close(dirfd);
}

static void key_file(void **state)
{
	char dir[] = "/tmp/tr-handle.XXXXXX", path[64];
	struct siphash_key a, b;
	int fd;

	(void)state;
	assert_non_null(mkdtemp(dir));
	snprintf(path, sizeof(path), "%s/key", dir);
	assert_int_equal(handle_key_load(path, &a), 0);
	assert_int_equal(handle_key_load(path, &b), 0);
	assert_memory_equal(&a, &b, sizeof(a));
	chmod(path, 0640);
	assert_int_equal(handle_key_load(path, &b), -EPERM);
	chmod(path, 0600);
	fd = open(path, O_WRONLY | O_TRUNC);
	close(fd);
	assert_int_equal(handle_key_load(path, &b), -EINVAL);
	unlink(path);
	assert_int_equal(rmdir(dir), 0);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(checksum_vectors),
		cmocka_unit_test(round_trip),
		cmocka_unit_test(forged),
		cmocka_unit_test(opens_file),
		cmocka_unit_test(key_file),
	};
	return cmocka_run_group_tests(tests, leak_setup, leak_check);
}

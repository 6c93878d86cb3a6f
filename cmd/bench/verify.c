/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * The separate reader: opens the file anew with O_DIRECT, so that what it sees
 * is what the device holds, and compares every byte with the pattern. A file
 * that is too short or too long differs as well.
 */
#include "cmd/bench/bench.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

#define VERIFY_LEN (1u << 20)

static int verify_fd(struct bench *b, int fd, char *buf, uint64_t seed,
		     uint64_t bytes, uint64_t *wrong)
{
	uint64_t off = 0;

	while (off < bytes) {
		ssize_t n = pread(fd, buf, VERIFY_LEN, (off_t)off);

		if (n < 0)
			return -errno;
		*wrong = off;
		if (!n || (n % 512 && off + (uint64_t)n != bytes))
			return -EUCLEAN;
		if (!pattern_matches(&b->pattern, seed, buf, off, (size_t)n,
				     wrong))
			return -EUCLEAN;
		off += (uint64_t)n;
		if (bench_interrupted(b))
			return -EINTR;
	}
	return 0;
}

int verify_file(struct bench *b, const char *path, uint64_t seed,
		uint64_t bytes, uint64_t *wrong)
{
	char *buf = aligned_alloc(4096, VERIFY_LEN);
	int err, fd = open(path, O_RDONLY | O_DIRECT | O_CLOEXEC);
	struct stat st;

	if (fd < 0) {
		err = -errno;
		goto out;
	}
	err = buf ? 0 : -ENOMEM;
	if (!err && fstat(fd, &st))
		err = -errno;
	if (!err && (uint64_t)st.st_size != bytes) {
		*wrong = (uint64_t)st.st_size;
		err = -EUCLEAN;
	}
	if (!err)
		err = verify_fd(b, fd, buf, seed, bytes, wrong);
	close(fd);
out:
	free(buf);
	return err;
}

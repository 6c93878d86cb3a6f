/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Goal: a writer killed at any moment leaves the host's file no larger than the
 * highest byte it had asked to write, and what it was told is durable is there.
 * Method: a child appends and interleaves records of odd length through the
 * cache on a host directory, noting in shared memory the highest end before each
 * write and, after each stable one, how far it reached; it is killed after a
 * number of writes that the seed picks. Whoever then gets the directory's lock
 * knows that the last device write has ended, and looks.
 */
#include "lib/test.h"

#include "base/rng.h"
#include "lib/seed.h"

#include <tailrace/cache.h>

#include <fcntl.h>
#include <sched.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#define RECORD 47008
#define ROUNDS 8

struct notes {
	atomic_long highest; /* end of what was asked for */
	atomic_long stable; /* all before is durable */
	atomic_long writes;
};

static char record_byte(int64_t nr)
{
	return (char)(nr % 251 + 1);
}

/* Never returns. Every eighth write is stable; of each pair of records the
 * second is written first. */
static void write_until_killed(const char *dir, struct notes *n)
{
	struct tr_cache_options o = { .struct_size = sizeof(o),
				      .size = 16 << 20 };
	char *buf = malloc(RECORD);
	struct tr_store *store;
	struct tr_cache *cache;
	struct tr_file *file;

	if (!buf || tr_store_host_open(dir, NULL, &store) ||
	    tr_cache_create(&o, &cache) ||
	    tr_file_open(cache, store, "f", O_RDWR | O_CREAT, 0600, &file))
		_exit(1);
	for (int64_t i = 0;; i++) {
		int64_t nr = i ^ 1, end = (nr + 1) * RECORD;
		unsigned sync = i % 8 == 7 ? TR_DSYNC : 0;

		if (end > atomic_load(&n->highest))
			atomic_store(&n->highest, end);
		memset(buf, record_byte(nr), RECORD);
		if (tr_write(file, buf, RECORD, nr * RECORD,
			     TR_DONTCACHE | sync) != RECORD)
			_exit(1);
		/* Its own range is stable; now all that was written is. */
		if (sync && tr_fdatasync(file))
			_exit(1);
		if (sync)
			atomic_store(&n->stable, (i + 1) * RECORD);
		atomic_fetch_add(&n->writes, 1);
	}
}

static void check_survivor(const char *dir, const struct notes *n)
{
	char *buf = malloc(RECORD), path[128];
	struct tr_store *store;
	struct stat st;
	int fd;

	assert_non_null(buf);
	assert_int_equal(tr_store_host_open(dir, NULL, &store), 0);
	snprintf(path, sizeof(path), "%s/f", dir);
	assert_int_equal(stat(path, &st), 0);
	assert_true(st.st_size <= atomic_load(&n->highest));
	assert_true(st.st_size >= atomic_load(&n->stable));
	fd = open(path, O_RDONLY);
	assert_true(fd >= 0);
	for (int64_t nr = 0; nr < atomic_load(&n->stable) / RECORD; nr++) {
		assert_int_equal(pread(fd, buf, RECORD, nr * RECORD), RECORD);
		for (size_t i = 0; i < RECORD; i++)
			assert_int_equal(buf[i], record_byte(nr));
	}
	close(fd);
	unlink(path);
	free(buf);
	tr_store_destroy(store);
}

static void killed_writers_leave_no_more(void **state)
{
	struct notes *n = mmap(NULL, sizeof(*n), PROT_READ | PROT_WRITE,
			       MAP_SHARED | MAP_ANONYMOUS, -1, 0);
	char dir[] = "/var/tmp/tailrace-killed.XXXXXX";
	struct rng rng;
	int status;

	rng_seed(&rng, seed_draw());
	assert_ptr_not_equal(n, MAP_FAILED);
	assert_non_null(mkdtemp(dir));
	for (int round = 0; round < ROUNDS; round++) {
		long writes = 8 + rng_below(&rng, 300);
		pid_t pid;

		memset(n, 0, sizeof(*n));
		pid = fork();
		assert_true(pid >= 0);
		if (!pid)
			write_until_killed(dir, n);
		while (atomic_load(&n->writes) < writes &&
		       !waitpid(pid, &status, WNOHANG))
			sched_yield();
		kill(pid, SIGKILL);
		assert_int_equal(waitpid(pid, &status, 0), pid);
		assert_true(WIFSIGNALED(status));
		check_survivor(dir, n);
	}
	rmdir(dir);
	munmap(n, sizeof(*n));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(killed_writers_leave_no_more),
	};

	return cmocka_run_group_tests(tests, leak_setup, leak_check);
}

/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Goal: the host store keeps its directory to itself, names inside it, sizes
 * exact and what it allocates ahead temporary. Method: look at the files from
 * outside with the host's own calls, over both engines.
 */
#include "store/host.h"

#include "lib/storetest.h"
#include "lib/test.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#define MIB (1024 * 1024)

static enum tr_engine engine;

static struct stat stat_in(struct tr_store *store, const char *name)
{
	struct stat st;

	assert_int_equal(fstatat(host_store_dir_fd(store), name, &st, 0), 0);
	return st;
}

static void one_owner(void **state)
{
	struct tr_host_options options = {
		.struct_size = sizeof(options),
		.engine = engine,
		.lock_wait_ms = -1,
	};
	const char *dir = storetest_dir();
	struct tr_store *store = storetest_host(dir, engine), *other;

	assert_int_equal(tr_store_host_open(dir, &options, &other), -EBUSY);
	options.lock_wait_ms = 20;
	assert_int_equal(tr_store_host_open(dir, &options, &other), -EBUSY);
	tr_store_destroy(store);
	assert_int_equal(tr_store_host_open(dir, &options, &other), 0);
	tr_store_destroy(other);
	assert_int_equal(tr_store_host_open("/nonexistent", NULL, &other),
			 -ENOENT);
	assert_int_equal(tr_store_host_open("/dev/null", NULL, &other),
			 -ENOTDIR);
}

static int try_open(struct tr_store *store, const char *name)
{
	struct tr_store_file *file;
	int err = store->ops->open(store, name, O_RDWR | O_CREAT, 0600, &file);

	if (!err)
		store->ops->close(file);
	return err;
}

static void check_names(struct tr_store *store)
{
	assert_int_equal(try_open(store, "../escape"), -EXDEV);
	assert_int_equal(try_open(store, "sub/../../escape"), -EXDEV);
	assert_int_equal(try_open(store, "/etc/passwd"), -EXDEV);
	assert_int_not_equal(try_open(store, "out/passwd"), 0);
	assert_int_equal(try_open(store, "sub"), -EISDIR);
	assert_int_equal(try_open(store, "fifo"), -EINVAL);
	assert_int_equal(try_open(store, "none/file"), -ENOENT);
	assert_int_equal(try_open(store, "sub/file"), 0);
	assert_int_equal(try_open(store, "sub//file"), 0);
}

static void names_stay_below(void **state)
{
	struct tr_store *store = storetest_host(storetest_dir(), engine);
	int fd = host_store_dir_fd(store);

	assert_int_equal(mkdirat(fd, "sub", 0700), 0);
	assert_int_equal(symlinkat("/etc", fd, "out"), 0);
	assert_int_equal(mkfifoat(fd, "fifo", 0600), 0);
	check_names(store);
	atomic_store(&host_store_of(store)->no_openat2, true);
	check_names(store);
	tr_store_destroy(store);
}

static void write_at(struct tr_store_file *file, size_t len, int64_t off,
		     bool dense)
{
	void *buf = storetest_memory(len);

	memset(buf, 1, len);
	storetest_prepare(file, off, len, off + len, dense);
	assert_int_equal(storetest_io(file, TR_IO_WRITE, buf, len, off), len);
	free(buf);
}

static void ahead_is_given_back(void **state)
{
	struct tr_store *store = storetest_host(storetest_dir(), engine);
	struct tr_store_file *file = storetest_file(store, "f"), *second;

	write_at(file, MIB, 0, true);
	assert_int_equal(stat_in(store, "f").st_size, MIB);
	assert_true(stat_in(store, "f").st_blocks * 512 >= 17 * MIB);
	/* Neither another opening nor its end takes it away. */
	assert_int_equal(store->ops->open(store, "f", O_RDWR, 0, &second), 0);
	storetest_prepare(second, 0, MIB, MIB, false);
	store->ops->close(second);
	assert_true(stat_in(store, "f").st_blocks * 512 >= 17 * MIB);
	store->ops->close(file);
	assert_int_equal(stat_in(store, "f").st_size, MIB);
	assert_true(stat_in(store, "f").st_blocks * 512 < 2 * MIB);
	tr_store_destroy(store);
}

/* What a killed process allocated ahead goes when the file is next opened to write. */
static void leftover_is_cut(void **state)
{
	struct tr_store *store = storetest_host(storetest_dir(), engine);
	struct tr_store_file *file;
	struct stat before, after;
	int fd = openat(host_store_dir_fd(store), "f", O_RDWR | O_CREAT, 0600);

	assert_int_equal(pwrite(fd, "x", 1, 0), 1);
	assert_int_equal(fallocate(fd, FALLOC_FL_KEEP_SIZE, 0, 16 * MIB), 0);
	assert_int_equal(fsync(fd), 0);
	close(fd);
	before = stat_in(store, "f");
	assert_int_equal(store->ops->open(store, "f", O_RDWR, 0, &file), 0);
	storetest_prepare(file, 0, 65536, 65536, false);
	after = stat_in(store, "f");
	assert_int_equal(before.st_size, 1);
	assert_int_equal(after.st_size, 65536);
	/* tmpfs cannot be asked for what lies beyond the end. */
	if (!host_file_of(file)->buffered)
		assert_true(after.st_blocks * 512 < MIB);
	store->ops->close(file);
	tr_store_destroy(store);
}

static bool same_time(struct timespec a, struct timespec b)
{
	return a.tv_sec == b.tv_sec && a.tv_nsec == b.tv_nsec;
}

static void writes_keep_times(void **state)
{
	struct tr_store *store = storetest_host(storetest_dir(), engine);
	struct tr_store_file *file = storetest_file(store, "f");
	struct timespec t = { 1234567890, 987654321 };
	struct stat before, after;

	storetest_prepare(file, 0, MIB, MIB, true);
	assert_int_equal(store->ops->set_mtime(file, t), 0);
	before = stat_in(store, "f");
	write_at(file, MIB, 0, true);
	assert_int_equal(store->ops->sync(file, false), 0);
	after = stat_in(store, "f");
	if (host_file_of(file)->times_kept) {
		assert_true(same_time(before.st_mtim, after.st_mtim));
		assert_true(same_time(before.st_ctim, after.st_ctim));
	}
	assert_int_equal(store->ops->set_mtime(file, t), 0);
	store->ops->close(file);
	/* Giving back what was ahead does not move it either. */
	assert_true(same_time(stat_in(store, "f").st_mtim, t));
	tr_store_destroy(store);
}

static void descriptor_is_taken(void **state)
{
	struct tr_store *store = storetest_host(storetest_dir(), engine);
	int dir = host_store_dir_fd(store), fd;
	struct tr_store_file *file;

	fd = openat(dir, ".", O_RDONLY | O_DIRECTORY);
	assert_int_equal(host_store_open_fd(store, fd, &file), -EISDIR);
	close(fd);
	fd = openat(dir, "f", O_RDWR | O_CREAT, 0600);
	assert_int_equal(host_store_open_fd(store, fd, &file), 0);
	write_at(file, MIB, 0, false);
	store->ops->close(file);
	fd = openat(dir, "f", O_RDONLY);
	assert_int_equal(host_store_open_fd(store, fd, &file), 0);
	assert_false(host_file_of(file)->writable);
	store->ops->close(file);
	fd = open("/proc/self/stat", O_RDONLY);
	assert_int_equal(host_store_open_fd(store, fd, &file), -EXDEV);
	close(fd);
	tr_store_destroy(store);
}

/* A foreign change of the size is not undone by raising it. */
static void raising_never_lowers(void **state)
{
	struct tr_store *store = storetest_host(storetest_dir(), engine);
	struct tr_store_file *file = storetest_file(store, "f");
	int fd = openat(host_store_dir_fd(store), "f", O_RDWR);

	assert_int_equal(ftruncate(fd, 5 * MIB), 0);
	storetest_prepare(file, 0, MIB, MIB, false);
	assert_int_equal(stat_in(store, "f").st_size, 5 * MIB);
	close(fd);
	store->ops->close(file);
	tr_store_destroy(store);
}

/* Pages of the file that the host has in its cache. */
static unsigned resident(struct tr_store *store, const char *name)
{
	size_t len = stat_in(store, name).st_size, nr = (len + 4095) / 4096, i;
	unsigned char *map = calloc(nr, 1);
	int fd = openat(host_store_dir_fd(store), name, O_RDONLY);
	void *p = mmap(NULL, len, PROT_READ, MAP_SHARED, fd, 0);
	unsigned found = 0;

	assert_true(p != MAP_FAILED);
	assert_int_equal(mincore(p, len, map), 0);
	for (i = 0; i < nr; i++)
		found += map[i] & 1;
	munmap(p, len);
	close(fd);
	free(map);
	return found;
}

/* The host caches the partial tail, until it is full or the file is closed. */
static void host_caches_the_tail_only(void **state)
{
	struct tr_store *store = storetest_host(storetest_dir(), engine);
	struct tr_store_file *file = storetest_file(store, "f");
	struct tr_store_attr attr;
	void *buf = storetest_memory(65536);
	unsigned pages, least;

	assert_int_equal(store->ops->getattr(file, &attr), 0);
	if (attr.offset_align == 0)
		goto out;
	pages = (attr.block + 4095) / 4096;
	/* mincore does not see pages of which only some blocks are read. */
	least = attr.block >= 4096;
	write_at(file, MIB, 0, true);
	assert_int_equal(resident(store, "f"), 0);
	assert_int_equal(store->ops->write_tail(file, buf, 100, MIB), 0);
	assert_in_range(resident(store, "f"), least, pages);
	assert_int_equal(store->ops->sync(file, true), 0);
	assert_in_range(resident(store, "f"), least, pages);
	write_at(file, 65536, MIB, true);
	assert_int_equal(resident(store, "f"), 0);
	assert_int_equal(store->ops->write_tail(file, buf, 100, MIB + 65536),
			 0);
	assert_int_equal(store->ops->sync(file, true), 0);
out:
	store->ops->close(file);
	if (attr.offset_align)
		assert_int_equal(resident(store, "f"), 0);
	free(buf);
	tr_store_destroy(store);
}

static void write_until_killed(const char *dir)
{
	struct tr_store *store = storetest_host(dir, engine);
	struct tr_store_file *file = storetest_file(store, "f");
	void *buf = storetest_memory(MIB);
	static struct storetest_batch batch;
	int i;

	storetest_prepare(file, 0, 32 * MIB, 32 * MIB, true);
	storetest_batch_init(&batch, store);
	for (i = 0; i < 32; i++)
		storetest_start(&batch, TR_IO_WRITE, file, buf, MIB, i * MIB,
				1);
	store->ops->submit(batch.queue);
	kill(getpid(), SIGKILL);
}

/*
 * The lock lives until the last write of a killed process ended: whoever gets
 * it reads the same bytes now and later.
 */
static void lock_outlives_process(void **state)
{
	const char *dir = storetest_dir();
	struct tr_store_file *file;
	struct tr_store *store;
	pid_t pid = fork();
	int status;

	if (pid == 0) {
		write_until_killed(dir);
		_exit(1);
	}
	assert_int_equal(waitpid(pid, &status, 0), pid);
	/* Where there is no io_uring the child has left by skip(). */
	if (!WIFSIGNALED(status))
		skip();
	store = storetest_host(dir, engine);
	assert_int_equal(store->ops->open(store, "f", O_RDWR, 0, &file), 0);
	assert_int_equal(stat_in(store, "f").st_size, 32 * MIB);
	if (!host_file_of(file)->buffered)
		assert_true(stat_in(store, "f").st_blocks * 512 <= 33 * MIB);
	store->ops->close(file);
	tr_store_destroy(store);
}

/* From now on this process has no io_uring, as in many containers. */
static void forbid_uring(void)
{
	struct sock_filter code[] = {
		BPF_STMT(BPF_LD | BPF_W | BPF_ABS,
			 offsetof(struct seccomp_data, nr)),
		BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, SYS_io_uring_setup, 0, 1),
		BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ERRNO | EPERM),
		BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW),
	};
	struct sock_fprog program = { ARRAY_SIZE(code), code };

	if (prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) ||
	    prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &program))
		_exit(77);
}

/* The exit status: 0 if threads were chosen, and only where that is allowed. */
static int without_uring(const char *dir)
{
	struct tr_host_options options = {
		.struct_size = sizeof(options),
		.engine = TR_ENGINE_URING,
	};
	struct tr_store *store;
	int chosen;

	forbid_uring();
	if (tr_store_host_open(dir, &options, &store) != -ENOSYS)
		return 1;
	if (tr_store_host_open(dir, NULL, &store))
		return 2;
	chosen = strcmp(store->ops->describe(store), "threads");
	tr_store_destroy(store);
	return chosen ? 3 : 0;
}

static void threads_where_uring_is_refused(void **state)
{
	const char *dir = storetest_dir();
	pid_t pid = fork();
	int status;

	if (pid == 0)
		_exit(without_uring(dir));
	assert_int_equal(waitpid(pid, &status, 0), pid);
	assert_true(WIFEXITED(status));
	if (WEXITSTATUS(status) == 77)
		skip();
	assert_int_equal(WEXITSTATUS(status), 0);
}

int main(void)
{
	static const struct {
		const char *name;
		enum tr_engine engine;
	} engines[] = {
		{ "uring", TR_ENGINE_URING },
		{ "threads", TR_ENGINE_THREADS },
	};
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(one_owner),
		cmocka_unit_test(names_stay_below),
		cmocka_unit_test(ahead_is_given_back),
		cmocka_unit_test(leftover_is_cut),
		cmocka_unit_test(writes_keep_times),
		cmocka_unit_test(descriptor_is_taken),
		cmocka_unit_test(raising_never_lowers),
		cmocka_unit_test(host_caches_the_tail_only),
		cmocka_unit_test(lock_outlives_process),
		cmocka_unit_test(threads_where_uring_is_refused),
	};
	int failed = 0;
	size_t i;

	for (i = 0; i < ARRAY_SIZE(engines); i++) {
		engine = engines[i].engine;
		failed += _cmocka_run_group_tests(engines[i].name, tests,
						  ARRAY_SIZE(tests), leak_setup,
						  leak_check);
	}
	return failed;
}

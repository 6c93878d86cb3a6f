/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Goal: the control socket answers each request once and in order, whatever
 * else is sent to it, to several clients at once; nothing that a client does or
 * leaves undone harms the others. Method: a server without exports, and
 * sockets in place of the program.
 */
#include "lib/test.h"

#include <errno.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/task.h"
#include "base/trace.h"
#include "ctl/server.h"
#include "nfs/nfs.h"

struct world {
	struct tr_cache *cache;
	struct ctl_env env;
	struct nfs *nfs;
	struct ctl *ctl;
	char path[64];
};

static int world_up(void **state)
{
	struct world *w = calloc(1, sizeof(*w));
	struct tr_cache_options cache = { .struct_size = sizeof(cache),
					  .size = 8 << 20 };
	struct fs_server_options fs = { .file_age_ns = 1 };
	struct rpc_server_options rpc = { .nr_workers = 2 };

	assert_int_equal(tr_cache_create(&cache, &w->cache), 0);
	fs.cache = w->cache;
	assert_int_equal(fs_server_create(&fs, &w->env.fs), 0);
	assert_int_equal(nfs_create(w->env.fs, 2, &w->nfs), 0);
	rpc.programs = nfs_programs(w->nfs, &rpc.nr_programs);
	assert_int_equal(rpc_server_create(&rpc, &w->env.rpc), 0);
	w->env.version = "test";
	snprintf(w->path, sizeof(w->path), "/tmp/control.%d", getpid());
	assert_int_equal(ctl_create(&w->env, w->path, &w->ctl), 0);
	*state = w;
	return 0;
}

static int world_down(void **state)
{
	struct world *w = *state;

	ctl_destroy(w->ctl);
	assert_int_equal(access(w->path, F_OK), -1);
	rpc_server_destroy(w->env.rpc);
	nfs_destroy(w->nfs);
	assert_int_equal(fs_server_destroy(w->env.fs), 0);
	free(w);
	return 0;
}

static int dial(struct world *w)
{
	int fd = ctl_connect(w->path);

	assert_true(fd >= 0);
	return fd;
}

static void say(int fd, const char *data, size_t len)
{
	assert_int_equal(send(fd, data, len, MSG_NOSIGNAL), len);
}

/* Reads until what has come ends with end, or the other side closes. */
static void hear(int fd, const char *end, char *buf, size_t size)
{
	size_t len = 0, end_len = strlen(end);
	ssize_t n;

	do {
		assert_true(len + 1 < size);
		n = recv(fd, buf + len, size - 1 - len, 0);
		if (n <= 0)
			break;
		len += (size_t)n;
		buf[len] = 0;
	} while (len < end_len || strcmp(buf + len - end_len, end));
	buf[len] = 0;
}

static void expect(int fd, const char *request, const char *answer)
{
	char buf[4096];

	say(fd, request, strlen(request));
	hear(fd, answer, buf, sizeof(buf));
	assert_string_equal(buf, answer);
}

static void requests(void **state)
{
	struct world *w = *state;
	int fd = dial(w);
	char buf[32768];

	expect(fd, "get io_interlock\n", "ok\nio_interlock N bool\n.\n");
	expect(fd, "set io_interlock Y\n", "ok\nio_interlock Y bool\n.\n");
	expect(fd, "set io_depth 4\n", "ok\nio_depth 4 requests\n.\n");
	expect(fd, "set io_depth 4\n", "ok\n.\n");
	/* In pieces, and two at once. */
	say(fd, "get io_", 7);
	expect(fd, "depth\nget io_interlock\n",
	       "ok\nio_depth 4 requests\n.\nok\nio_interlock Y bool\n.\n");
	say(fd, "stat\n", 5);
	hear(fd, "\n.\n", buf, sizeof(buf));
	assert_non_null(strstr(buf, "\n@cache\ncache_size "));
	assert_non_null(strstr(buf, "\nversion test text\n"));
	close(fd);
}

/* The error's number and a message that is one word. */
static void refused(int fd, const char *request, size_t len, int error)
{
	char buf[512];
	int number;

	say(fd, request, len);
	hear(fd, "\n", buf, sizeof(buf));
	assert_int_equal(sscanf(buf, "error %d ", &number), 1);
	assert_int_equal(number, error);
}

static void nonsense(void **state)
{
	struct world *w = *state;
	int fd = dial(w);

	refused(fd, "\n", 1, EINVAL);
	refused(fd, " \n", 2, EINVAL);
	refused(fd, "stat \n", 6, EINVAL);
	refused(fd, "stat now\n", 9, EINVAL);
	refused(fd, "stat\0x\n", 7, EINVAL);
	refused(fd, "set io_depth\n", 13, EINVAL);
	refused(fd, "set io_depth 9999999999999999999\n", 33, EINVAL);
	refused(fd, "set io_depth -1\n", 16, EINVAL);
	refused(fd, "set \\777 1\n", 11, EINVAL);
	refused(fd, "get-export /none\n", 17, ENOENT);
	refused(fd, "trace none\n", 11, ENOENT);
	refused(fd, "\xff\xfe\x01\n", 4, EINVAL);
	expect(fd, "get io_interlock\n", "ok\nio_interlock N bool\n.\n");
	close(fd);
}

static void endless_line(void **state)
{
	static char line[CTL_REQUEST_MAX];
	struct world *w = *state;
	int fd = dial(w);
	char buf[64];

	memset(line, 'x', sizeof(line));
	refused(fd, line, sizeof(line), E2BIG);
	assert_int_equal(recv(fd, buf, sizeof(buf), 0), 0);
	close(fd);
}

/* Who takes no answers holds only its own place. */
static void deaf(void **state)
{
	struct world *w = *state;
	int fds[CTL_CLIENTS_MAX], fd, i, j;

	for (i = 0; i < CTL_CLIENTS_MAX - 1; i++) {
		fds[i] = dial(w);
		for (j = 0; j < 100; j++)
			if (send(fds[i], "stat\n", 5,
				 MSG_NOSIGNAL | MSG_DONTWAIT) < 0)
				break;
	}
	fd = dial(w);
	expect(fd, "get io_interlock\n", "ok\nio_interlock N bool\n.\n");
	close(fd);
	for (i = 0; i < CTL_CLIENTS_MAX - 1; i++)
		close(fds[i]);
}

/* Those that say nothing make room for others. */
static void crowd(void **state)
{
	struct world *w = *state;
	int fds[2 * CTL_CLIENTS_MAX], i;

	for (i = 0; i < 2 * CTL_CLIENTS_MAX; i++) {
		fds[i] = dial(w);
		expect(fds[i], "get io_interlock\n",
		       "ok\nio_interlock N bool\n.\n");
	}
	for (i = 0; i < 2 * CTL_CLIENTS_MAX; i++)
		close(fds[i]);
}

static void half_closed(void **state)
{
	struct world *w = *state;
	int fd = dial(w);
	char buf[256];

	say(fd, "get io_interlock\nget io_depth\nget", 33);
	shutdown(fd, SHUT_WR);
	hear(fd, "never", buf, sizeof(buf));
	assert_string_equal(
		buf,
		"ok\nio_interlock N bool\n.\nok\nio_depth 8 requests\n.\n");
	close(fd);
}

static void trace_many(void *arg)
{
	for (uint64_t i = 0; i < 20000; i++) {
		TRACE(edge_held, .ino = 7, .offset = i);
		if (i % 512 == 0)
			task_yield();
	}
}

/* Two readers with different choices, of whom one does not read. */
static void traces(void **state)
{
	struct world *w = *state;
	int one = dial(w), two = dial(w), deaf_one = dial(w);
	struct task *t;
	char buf[4096];

	expect(one, "trace edge_aged edge_c*\n", "ok\n");
	expect(two, "trace edge_h*\n", "ok\n");
	expect(deaf_one, "trace all\n", "ok\n");
	assert_int_equal(task_create(&t, "tracing", trace_many, NULL), 0);
	task_join(t);
	/* The ring may be full still, which both are told. */
	do {
		TRACE(edge_aged, .ino = 3, .offset = 4096);
		hear(one, "\n", buf, sizeof(buf));
		assert_null(strstr(buf, "edge_held"));
		assert_non_null(
			strstr(buf, "lost ")
				?: strstr(buf,
					  " edge_aged ino=3 offset=4096\n"));
	} while (!strstr(buf, "edge_aged"));
	assert_true(recv(two, buf, sizeof(buf) - 1, 0) > 0);
	close(one);
	close(two);
	close(deaf_one);
	/* The last one that looks switches all off. */
	while (__atomic_load_n(&tailrace_edge_held_semaphore, __ATOMIC_RELAXED))
		task_yield();
}

static void taken(void **state)
{
	struct world *w = *state;
	struct ctl *other;
	struct stat st;

	assert_int_equal(ctl_create(&w->env, w->path, &other), -EADDRINUSE);
	assert_int_equal(ctl_create(&w->env, "/nowhere/x", &other), -ENOENT);
	assert_int_equal(lstat(w->path, &st), 0);
	assert_int_equal(st.st_mode & 07777, 0600);
}

#define CONTROL(test)                                                          \
	cmocka_unit_test_setup_teardown(test, world_up, world_down)

int main(void)
{
	const struct CMUnitTest tests[] = {
		CONTROL(requests), CONTROL(nonsense), CONTROL(endless_line),
		CONTROL(deaf),	   CONTROL(crowd),    CONTROL(half_closed),
		CONTROL(traces),   CONTROL(taken),
	};

	return cmocka_run_group_tests(tests, leak_setup, leak_check);
}

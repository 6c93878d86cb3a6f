/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Goal: both engines move the right bytes with and without registered memory,
 * with a backlog larger than a ring, and when queues outlive memory. Method: a
 * temporary file, patterns that differ by place, memory dropped and mapped
 * anew at the same address.
 */
#include "ring/engine.h"
#include "ring/memory.h"
#include "ring/ring.h"

#include "base/task.h"

#include "lib/storetest.h"
#include "lib/test.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#define PAGE 4096
#define NR 700 /* requests: more than a ring has entries */
#define LEN ((size_t)NR * PAGE)

static enum tr_engine engine;
static bool forbid_clone;

struct fixture {
	struct ring *ring;
	struct ring_queue *q;
	int fd;
};

struct request {
	struct tr_io io;
	struct iovec iov[4];
	unsigned *nr_done;
};

static struct fixture begin(void)
{
	const char *dir = storetest_dir();
	struct fixture f;
	int err;

	f.fd = open(dir, O_RDWR | O_TMPFILE, 0600);
	assert_true(f.fd >= 0);
	assert_int_equal(ftruncate(f.fd, LEN), 0);
	err = ring_create(engine, f.fd, &f.ring);
	if (err == -ENOSYS && engine == TR_ENGINE_URING) {
		close(f.fd);
		skip();
	}
	assert_int_equal(err, 0);
	if (forbid_clone)
		memory_forbid_clone(f.ring->private);
	assert_int_equal(ring_queue_create(f.ring, &f.q), 0);
	return f;
}

static void end(struct fixture *f)
{
	ring_queue_destroy(f->q);
	ring_destroy(f->ring);
	close(f->fd);
}

static void *map_at(void *addr)
{
	void *p = mmap(addr, LEN, PROT_READ | PROT_WRITE,
		       MAP_PRIVATE | MAP_ANONYMOUS | (addr ? MAP_FIXED : 0), -1,
		       0);

	assert_true(p != MAP_FAILED);
	return p;
}

static void done(struct tr_io *io)
{
	++*((struct request *)io)->nr_done;
}

/* All of mem to or from the file, a page or four vectors a request. */
static void move_all(struct fixture *f, enum tr_io_op op, char *mem,
		     bool vectored)
{
	size_t len = vectored ? 4 * PAGE : PAGE, at;
	struct request *requests = calloc(NR, sizeof(*requests)), *r = requests;
	unsigned nr_done = 0, i;

	for (at = 0; at < LEN; at += len, r++) {
		r->nr_done = &nr_done;
		r->io = (struct tr_io){
			.op = op,
			.off = at,
			.iov = r->iov,
			.nr_iov = vectored ? 4 : 1,
			.len = len,
			.done = done,
		};
		/* Backwards, so that the vectors cannot be joined. */
		for (i = 0; i < len / PAGE; i++) {
			r->iov[i].iov_base = mem + at + len - (i + 1) * PAGE;
			r->iov[i].iov_len = PAGE;
		}
		ring_start(f->q, f->fd, &r->io);
	}
	assert_int_equal(nr_done, 0);
	assert_true(ring_wait(f->q, 1) >= 1);
	while (ring_wait(f->q, 7))
		;
	assert_int_equal(nr_done, r - requests);
	while (r-- > requests)
		assert_int_equal(r->io.result, len);
	free(requests);
}

static void pattern(char *mem, unsigned salt)
{
	size_t i;

	for (i = 0; i < LEN; i++)
		mem[i] = (i / PAGE * 7 + i + salt) * 2654435761u >> 20;
}

static void move_and_compare(struct fixture *f, char *out, char *in,
			     unsigned salt)
{
	pattern(out, salt);
	memset(in, 0, LEN);
	move_all(f, TR_IO_WRITE, out, salt & 1);
	move_all(f, TR_IO_READ, in, salt & 1);
	assert_memory_equal(in, out, LEN);
}

static void moves_bytes(void **state)
{
	struct fixture f = begin();
	char *out = map_at(NULL), *in = map_at(NULL);

	move_and_compare(&f, out, in, 0);
	move_and_compare(&f, out, in, 1);
	munmap(out, LEN);
	munmap(in, LEN);
	end(&f);
}

static void registered_memory_may_go(void **state)
{
	struct fixture f = begin();
	char *out = map_at(NULL), *in = map_at(NULL);
	int err = ring_add_memory(f.ring, out, LEN);

	if (!err)
		assert_int_equal(ring_add_memory(f.ring, in, LEN), 0);
	move_and_compare(&f, out, in, 2);
	move_and_compare(&f, out, in, 3);
	/* The same addresses, other pages: a stale registration would show. */
	ring_drop_memory(f.ring, out, LEN);
	map_at(out);
	move_and_compare(&f, out, in, 4);
	move_and_compare(&f, out, in, 5);
	ring_drop_memory(f.ring, in, LEN);
	map_at(in);
	err = ring_add_memory(f.ring, in, LEN);
	move_and_compare(&f, out, in, 6);
	move_and_compare(&f, out, in, 7);
	if (!err)
		assert_non_null(strstr(ring_describe(f.ring), "registered"));
	munmap(out, LEN);
	munmap(in, LEN);
	end(&f);
}

static void memory_is_refused(void **state)
{
	struct fixture f = begin();
	char c;

	assert_int_not_equal(ring_add_memory(f.ring, NULL, 4096), 0);
	assert_int_not_equal(ring_add_memory(f.ring, &c, (size_t)2 << 30), 0);
	ring_drop_memory(f.ring, &c, 1);
	end(&f);
}

static void errors_are_results(void **state)
{
	struct fixture f = begin();
	char *mem = map_at(NULL);
	unsigned nr_done = 0;
	struct request r = {
		.iov = { { mem, PAGE } },
		.nr_done = &nr_done,
		.io = { .op = TR_IO_WRITE,
			.nr_iov = 1,
			.len = PAGE,
			.iov = r.iov,
			.done = done },
	};
	int fd = open("/dev/null", O_RDONLY);

	ring_start(f.q, fd, &r.io);
	ring_submit(f.q);
	assert_int_equal(ring_wait(f.q, 1), 1);
	assert_int_equal(r.io.result, -EBADF);
	/* A read that ends at the end of the file. */
	assert_int_equal(ftruncate(f.fd, 100), 0);
	r.io.op = TR_IO_READ;
	ring_start(f.q, f.fd, &r.io);
	assert_int_equal(ring_wait(f.q, 5), 1);
	assert_int_equal(r.io.result, 100);
	r.io.off = LEN;
	ring_start(f.q, f.fd, &r.io);
	assert_int_equal(ring_wait(f.q, 1), 1);
	assert_int_equal(r.io.result, 0);
	assert_int_equal(nr_done, 3);
	close(fd);
	munmap(mem, LEN);
	end(&f);
}

struct handed {
	struct fixture *f;
	struct request *requests;
	unsigned nr;
};

static void submit_and_leave(void *arg)
{
	struct handed *h = arg;
	unsigned i;

	for (i = 0; i < h->nr; i++)
		ring_start(h->f->q, h->f->fd, &h->requests[i].io);
	ring_submit(h->f->q);
}

/* A thread submits and exits; another waits for what it left in flight. */
static void queue_changes_threads(void **state)
{
	struct fixture f = begin();
	char *mem = map_at(NULL), *in = map_at(NULL);
	struct request requests[64] = { 0 };
	struct handed h = { &f, requests, 64 };
	unsigned nr_done = 0, i;
	struct task *task;

	pattern(mem, 8);
	/* Direct, if the file system can: then it really is in flight. */
	(void)fcntl(f.fd, F_SETFL, fcntl(f.fd, F_GETFL) | O_DIRECT);
	for (i = 0; i < 64; i++) {
		requests[i].nr_done = &nr_done;
		requests[i].iov[0] =
			(struct iovec){ mem + i * 4 * PAGE, 4 * PAGE };
		requests[i].io = (struct tr_io){
			.op = TR_IO_WRITE,
			.off = i * 4 * PAGE,
			.iov = requests[i].iov,
			.nr_iov = 1,
			.len = 4 * PAGE,
			.done = done,
		};
	}
	assert_int_equal(task_create(&task, "submit", submit_and_leave, &h), 0);
	task_join(task);
	assert_int_equal(ring_wait(f.q, 64), 64);
	assert_int_equal(nr_done, 64);
	for (i = 0; i < 64; i++)
		assert_int_equal(requests[i].io.result, 4 * PAGE);
	assert_int_equal(pread(f.fd, in, 256 * PAGE, 0), 256 * PAGE);
	assert_memory_equal(mem, in, 256 * PAGE);
	munmap(mem, LEN);
	munmap(in, LEN);
	end(&f);
}

int main(void)
{
	static const struct {
		const char *name;
		enum tr_engine engine;
		bool forbid_clone;
	} kinds[] = {
		{ "uring", TR_ENGINE_URING, false },
		{ "uring without clone", TR_ENGINE_URING, true },
		{ "threads", TR_ENGINE_THREADS, false },
	};
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(moves_bytes),
		cmocka_unit_test(registered_memory_may_go),
		cmocka_unit_test(memory_is_refused),
		cmocka_unit_test(errors_are_results),
		cmocka_unit_test(queue_changes_threads),
	};
	int failed = 0;
	size_t i;

	for (i = 0; i < ARRAY_SIZE(kinds); i++) {
		engine = kinds[i].engine;
		forbid_clone = kinds[i].forbid_clone;
		failed += _cmocka_run_group_tests(kinds[i].name, tests,
						  ARRAY_SIZE(tests), leak_setup,
						  leak_check);
	}
	return failed;
}

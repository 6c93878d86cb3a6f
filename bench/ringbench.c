/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * How fast the host store's requests reach a device: sequential writes (or
 * reads) of one file through one queue, with a fixed number in flight, as a
 * flusher issues them.
 *
 *	ringbench DIR|ram [engine=uring|threads] [op=write|read] [mib=N] [io=BYTES]
 *		  [vec=BYTES] [depth=N] [register=0|1] [dense=0|1]
 *		  [fresh=0|1] [rounds=N]
 *
 * fresh=0 overwrites the file of the round before.
 * vec is the size of each vector; the memory is laid out so that vectors do
 * not touch (a stride of two) unless vec equals io. Prints one line a round:
 * MiB/s, requests/s, and CPU time of the process per GiB.
 */
#include <tailrace/store.h>

#include <errno.h>
#include <fcntl.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/resource.h>

#define ARENA ((size_t)64 << 20)
#define DEPTH_MAX 64
#define MIB ((int64_t)1 << 20)

struct args {
	enum tr_engine engine;
	enum tr_io_op op;
	int64_t mib, io, vec, depth, registered, dense, fresh, rounds;
};

struct slot {
	struct tr_io io;
	struct iovec iov[TR_IO_IOV_MAX];
};

/* What runs: the queue refills itself from completions. */
struct run {
	struct tr_queue *queue;
	const struct args *args;
	int64_t next, end;
	int error;
};

static struct run run;
static struct slot slots[DEPTH_MAX];

static void die(const char *what, int err)
{
	fprintf(stderr, "ringbench: %s: %s\n", what, strerror(-err));
	exit(1);
}

static double now_s(clockid_t clock)
{
	struct timespec t;

	clock_gettime(clock, &t);
	return t.tv_sec + t.tv_nsec / 1e9;
}

static void start_next(struct tr_io *io)
{
	const struct tr_store_ops *ops = io->file->store->ops;
	int err;

	if (run.next >= run.end)
		return;
	io->off = run.next;
	run.next += io->len;
	if (io->op == TR_IO_WRITE) {
		err = ops->prepare(io->file, io->off, io->len, run.end,
				   run.args->dense);
		if (err)
			die("prepare", err);
	}
	ops->start(run.queue, io);
}

static void done(struct tr_io *io)
{
	if (io->result != (ssize_t)io->len)
		die("request", io->result < 0 ? (int)io->result : -EIO);
	start_next(io);
}

static void lay_out(struct tr_store_file *file, char *arena,
		    const struct args *a)
{
	int64_t stride = a->vec == a->io ? 1 : 2, i, s, at = 0;

	for (s = 0; s < a->depth; s++) {
		slots[s].io = (struct tr_io){
			.op = a->op,
			.file = file,
			.iov = slots[s].iov,
			.nr_iov = a->io / a->vec,
			.len = a->io,
			.done = done,
		};
		for (i = 0; i < a->io / a->vec; i++) {
			slots[s].iov[i].iov_base = arena + at;
			slots[s].iov[i].iov_len = a->vec;
			at = (at + stride * a->vec) % (ARENA - a->vec);
			at -= at % a->vec;
		}
	}
}

static void round_of(struct tr_store *store, struct tr_store_file *file,
		     const struct args *a)
{
	double start = now_s(CLOCK_MONOTONIC), cpu;
	double cpu_start = now_s(CLOCK_PROCESS_CPUTIME_ID), wall;
	int64_t i;

	run.next = 0;
	run.end = a->mib * MIB;
	for (i = 0; i < a->depth; i++)
		start_next(&slots[i].io);
	while (store->ops->wait(run.queue, 1))
		;
	wall = now_s(CLOCK_MONOTONIC) - start;
	cpu = now_s(CLOCK_PROCESS_CPUTIME_ID) - cpu_start;
	printf("%.0f MiB/s  %.0f requests/s  %.3f CPU s/GiB\n", a->mib / wall,
	       a->mib * MIB / a->io / wall, cpu / (a->mib / 1024.0));
	if (store->ops->sync(file, true))
		die("sync", -EIO);
}

static void parse(struct args *a, const char *word)
{
	static const struct {
		const char *name;
		size_t at;
	} numbers[] = {
		{ "mib=", offsetof(struct args, mib) },
		{ "io=", offsetof(struct args, io) },
		{ "vec=", offsetof(struct args, vec) },
		{ "depth=", offsetof(struct args, depth) },
		{ "register=", offsetof(struct args, registered) },
		{ "dense=", offsetof(struct args, dense) },
		{ "fresh=", offsetof(struct args, fresh) },
		{ "rounds=", offsetof(struct args, rounds) },
	};
	size_t i, n;

	for (i = 0; i < sizeof(numbers) / sizeof(numbers[0]); i++) {
		n = strlen(numbers[i].name);
		if (strncmp(word, numbers[i].name, n))
			continue;
		*(int64_t *)((char *)a + numbers[i].at) = atoll(word + n);
		return;
	}
	if (!strcmp(word, "engine=threads"))
		a->engine = TR_ENGINE_THREADS;
	else if (!strcmp(word, "op=read"))
		a->op = TR_IO_READ;
	else if (strcmp(word, "engine=uring") && strcmp(word, "op=write"))
		die(word, -EINVAL);
}

int main(int argc, char **argv)
{
	struct args a = {
		.engine = TR_ENGINE_URING,
		.op = TR_IO_WRITE,
		.mib = 1024,
		.io = MIB,
		.vec = MIB,
		.depth = 8,
		.registered = 1,
		.dense = 1,
		.fresh = 1,
		.rounds = 3,
	};
	struct tr_host_options options = { .struct_size = sizeof(options) };
	struct tr_store_file *file;
	struct tr_store *store;
	char *arena;
	int i, err;

	if (argc < 2)
		die("usage: ringbench DIR [NAME=VALUE]...", -EINVAL);
	for (i = 2; i < argc; i++)
		parse(&a, argv[i]);
	if (a.vec < 512 || a.io % a.vec || a.io / a.vec > TR_IO_IOV_MAX ||
	    a.depth < 1 || a.depth > DEPTH_MAX)
		die("io, vec or depth", -EINVAL);
	options.engine = a.engine;
	if (!strcmp(argv[1], "ram"))
		err = tr_store_ram_create(NULL, &store);
	else
		err = tr_store_host_open(argv[1], &options, &store);
	if (err)
		die(argv[1], err);
	arena = mmap(NULL, ARENA, PROT_READ | PROT_WRITE,
		     MAP_PRIVATE | MAP_ANONYMOUS | MAP_POPULATE, -1, 0);
	if (arena == MAP_FAILED)
		die("mmap", -errno);
	if (a.registered && (!store->ops->add_memory ||
			     store->ops->add_memory(store, arena, ARENA)))
		fprintf(stderr, "ringbench: not registered\n");
	run.args = &a;
	err = store->ops->open(store, "ringbench.tmp", O_RDWR | O_CREAT, 0600,
			       &file);
	if (!err)
		err = store->ops->queue_create(store, &run.queue);
	if (err)
		die("open", err);
	printf("%s\n", store->ops->describe(store));
	lay_out(file, arena, &a);
	for (i = 0; i < a.rounds; i++) {
		if (a.op == TR_IO_WRITE && a.fresh &&
		    store->ops->truncate(file, 0))
			die("truncate", -EIO);
		round_of(store, file, &a);
	}
	store->ops->queue_destroy(run.queue);
	store->ops->close(file);
	tr_store_destroy(store);
	munmap(arena, ARENA);
	return 0;
}

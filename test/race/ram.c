/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Goal: in every order of device, writer, crash and release, a request is
 * completed once, and what a sync covered survives. Method: a writer of two
 * blocks on an emulated device, power loss at any moment; a hung write that
 * another task releases at any moment.
 */
#include "base/explore.h"
#include "base/task.h"

#include <tailrace/store.h>

#include <fcntl.h>
#include <stdlib.h>
#include <string.h>

#define BLOCK 512

struct scene {
	struct tr_store *store;
	struct tr_store_file *file;
	struct tr_queue *queue;
	struct request {
		struct tr_io io;
		struct iovec iov;
		unsigned nr_done;
	} requests[2];
	unsigned char *memory;
	bool durable; /* the sync has returned */
	bool failed; /* a request met the crash */
};

static void done(struct tr_io *io)
{
	((struct request *)io)->nr_done++;
}

static void scene_begin(struct scene *s, struct tr_store *store)
{
	const struct tr_store_ops *ops = store->ops;
	int i;

	memset(s, 0, sizeof(*s));
	s->store = store;
	explore_assert(
		!ops->open(store, "f", O_RDWR | O_CREAT, 0600, &s->file));
	explore_assert(!ops->queue_create(store, &s->queue));
	s->memory = aligned_alloc(BLOCK, 2 * BLOCK);
	memset(s->memory, 1, 2 * BLOCK);
	for (i = 0; i < 2; i++) {
		s->requests[i].iov =
			(struct iovec){ s->memory + i * BLOCK, BLOCK };
		s->requests[i].io = (struct tr_io){
			.op = TR_IO_WRITE,
			.file = s->file,
			.off = i * BLOCK,
			.iov = &s->requests[i].iov,
			.nr_iov = 1,
			.len = BLOCK,
			.done = done,
		};
	}
	explore_assert(!ops->prepare(s->file, 0, 2 * BLOCK, 2 * BLOCK, true));
}

static void scene_end(struct scene *s)
{
	s->store->ops->queue_destroy(s->queue);
	s->store->ops->close(s->file);
	tr_store_destroy(s->store);
	free(s->memory);
}

static void write_both(struct scene *s)
{
	const struct tr_store_ops *ops = s->store->ops;
	int i;

	for (i = 0; i < 2; i++)
		ops->start(s->queue, &s->requests[i].io);
	explore_assert(ops->wait(s->queue, 2) == 2);
	for (i = 0; i < 2; i++) {
		explore_assert(s->requests[i].nr_done == 1);
		s->failed |= s->requests[i].io.result != BLOCK;
	}
}

static void writer(void *arg)
{
	struct scene *s = arg;

	write_both(s);
	if (s->failed)
		return;
	explore_assert(!s->store->ops->sync(s->file, true));
	s->durable = true;
}

static void crash_any_time(void *arg)
{
	struct tr_ram_options options = {
		.struct_size = sizeof(options),
		.block = BLOCK,
		.volatile_cache = true,
		.seed = 7,
	};
	unsigned char got[2 * BLOCK];
	struct tr_store *store;
	struct tr_ram_counters c;
	struct scene s;
	struct task *task;
	bool durable;
	int i;

	explore_assert(!tr_store_ram_create(&options, &store));
	scene_begin(&s, store);
	/* The size survives in any case; the blocks are what is looked at. */
	explore_assert(!store->ops->sync(s.file, false));
	explore_assert(!task_create(&task, "writer", writer, &s));
	task_yield();
	durable = s.durable;
	tr_store_ram_crash(store);
	explore_assert(tr_store_ram_peek(store, "f", got, sizeof(got), 0) ==
		       (ssize_t)sizeof(got));
	for (i = 0; i < 2 * BLOCK; i++)
		explore_assert(got[i] == 1 || (got[i] == 0 && !durable));
	task_join(task);
	tr_store_ram_counters(store, &c);
	explore_assert(!c.extending_writes && !c.overlapping_writes);
	scene_end(&s);
}

static void releaser(void *arg)
{
	tr_store_fault_set(arg, TR_FAULT_HANG, 0, false, 0);
}

static void release_any_time(void *arg)
{
	struct tr_ram_options options = { .struct_size = sizeof(options),
					  .block = BLOCK };
	struct tr_store *store;
	struct scene s;
	struct task *task;

	explore_assert(!tr_store_ram_create(&options, &store));
	explore_assert(!tr_store_fault_create(store, &store));
	tr_store_fault_set(store, TR_FAULT_HANG, 1, true, 0);
	scene_begin(&s, store);
	explore_assert(!task_create(&task, "releaser", releaser, store));
	write_both(&s);
	explore_assert(!s.failed);
	task_join(task);
	scene_end(&s);
}

int main(int argc, char **argv)
{
	/* A quarter of the default: each schedule makes a store and ends it. */
	static const struct explore_options few = { .schedules_max = 50000 };
	const struct explore_test tests[] = {
		{ "crash-any-time", crash_any_time, NULL, few },
		{ "release-any-time", release_any_time, NULL, few },
	};

	return explore_main(argc, argv, tests,
			    sizeof(tests) / sizeof(tests[0]));
}

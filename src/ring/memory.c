/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * Registered memory.
 *
 * Happy path: memory_add() registers a piece with an io_uring that does
 * nothing else (the master), which pins its pages once; a queue clones the
 * master's table (Linux 6.13, microseconds) the next time it makes entries.
 *
 * Failure modes: an older kernel cannot clone: the queue has a sparse table
 * (5.19) and registers the pieces itself, pinning them once more. No sparse
 * tables, or RLIMIT_MEMLOCK: nothing is registered and I/O goes on without.
 *
 * Invariants: a slot of the master's table is in use exactly if its len is not
 * 0; a view's pieces are a copy of the slots in use at its generation, and the
 * queue's io_uring has them registered under the same numbers.
 */
#include "ring/memory.h"

#include "ring/engine.h"

#include "base/mem.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <unistd.h>

/* Pieces of 64 MiB: a cache of 64 GiB. The kernel's own limit is 16384. */
#define SLOTS_MAX 1024
/* The kernel refuses larger ones. */
#define PIECE_MAX ((size_t)1 << 30)

/* Newer than Debian 12's liburing: values of the kernel's interface. */
#define OP_READV_FIXED 60 /* IORING_OP_READV_FIXED, Linux 6.15 */
#define OP_WRITEV_FIXED 61
#define REGISTER_CLONE_BUFFERS 30 /* Linux 6.12, replacing from 6.13 on */
#define CLONE_DST_REPLACE (1U << 1)

struct clone_buffers {
	uint32_t src_fd;
	uint32_t flags;
	uint32_t src_off;
	uint32_t dst_off;
	uint32_t nr; /* 0: all */
	uint32_t pad[3];
};

struct slot {
	uintptr_t addr;
	size_t len;
	uint64_t serial; /* what tells it from what was here before */
};

struct memory {
	atomic_ullong generation; /* changed under the ring's lock */
	bool vectored; /* (C) */
	bool no_clone; /* by the ring's lock: found out by the first queue */
	bool has_master;
	struct io_uring master;
	struct slot slots[SLOTS_MAX];
	unsigned nr_used;
};

int memory_create(struct io_uring *u, struct memory **out)
{
	struct memory *memory = mem_zalloc(sizeof(*memory));
	struct io_uring_probe *probe;

	if (!memory)
		return -ENOMEM;
	probe = io_uring_get_probe_ring(u);
	if (probe) {
		/* io_uring_opcode_supported() stops at the opcodes that
		 * liburing knows. */
		memory->vectored = probe->last_op >= OP_WRITEV_FIXED &&
				   probe->ops[OP_READV_FIXED].flags &
					   IO_URING_OP_SUPPORTED &&
				   probe->ops[OP_WRITEV_FIXED].flags &
					   IO_URING_OP_SUPPORTED;
		io_uring_free_probe(probe);
	}
	*out = memory;
	return 0;
}

void memory_forbid_clone(struct memory *memory)
{
	memory->no_clone = true;
}

void memory_destroy(struct memory *memory)
{
	if (memory->has_master)
		io_uring_queue_exit(&memory->master);
	mem_free(memory);
}

const char *memory_describe(const struct memory *memory)
{
	if (!memory->nr_used)
		return "io_uring";
	return memory->vectored ? "io_uring, registered, vectored"
				: "io_uring, registered";
}

static int master_open(struct memory *memory)
{
	int err;

	if (memory->has_master)
		return 0;
	err = io_uring_queue_init(1, &memory->master, 0);
	if (err)
		return err;
	err = io_uring_register_buffers_sparse(&memory->master, SLOTS_MAX);
	if (err) {
		io_uring_queue_exit(&memory->master);
		return err;
	}
	memory->has_master = true;
	return 0;
}

static int update(struct io_uring *u, unsigned slot, uintptr_t addr, size_t len)
{
	struct iovec iov = { (void *)addr, len };
	int n = io_uring_register_buffers_update_tag(u, slot, &iov, NULL, 1);

	return n < 0 ? n : 0;
}

int memory_add(struct memory *memory, void *addr, size_t len)
{
	unsigned slot = 0;
	int err;

	if (!addr || !len || len > PIECE_MAX)
		return -EINVAL;
	while (slot < SLOTS_MAX && memory->slots[slot].len)
		slot++;
	if (slot == SLOTS_MAX)
		return -ENOSPC;
	err = master_open(memory);
	if (!err)
		err = update(&memory->master, slot, (uintptr_t)addr, len);
	if (err)
		return err;
	memory->nr_used++;
	memory->slots[slot] = (struct slot){
		.addr = (uintptr_t)addr,
		.len = len,
		.serial = atomic_fetch_add(&memory->generation, 1) + 1,
	};
	return 0;
}

void memory_drop(struct memory *memory, void *addr, size_t len)
{
	unsigned slot;

	for (slot = 0; slot < SLOTS_MAX; slot++) {
		if (memory->slots[slot].addr != (uintptr_t)addr ||
		    memory->slots[slot].len != len)
			continue;
		(void)update(&memory->master, slot, 0, 0);
		memory->nr_used--;
		memory->slots[slot] = (struct slot){ 0 };
		atomic_fetch_add(&memory->generation, 1);
	}
}

static int clone_table(struct memory *memory, struct io_uring *u)
{
	struct clone_buffers arg = {
		.src_fd = memory->master.ring_fd,
		.flags = CLONE_DST_REPLACE,
	};

	if (syscall(SYS_io_uring_register, u->ring_fd, REGISTER_CLONE_BUFFERS,
		    &arg, 1) < 0)
		return -errno;
	return 0;
}

/* Brings the queue's own table in line, for kernels that cannot clone. */
static int update_table(struct memory *memory, struct memory_view *view,
			struct io_uring *u)
{
	const struct slot *slot;
	unsigned i;
	int err = 0;

	if (!view->table) {
		view->serials = mem_zalloc_array(SLOTS_MAX, sizeof(uint64_t));
		if (!view->serials)
			return -ENOMEM;
		err = io_uring_register_buffers_sparse(u, SLOTS_MAX);
		if (err) {
			mem_free(view->serials);
			view->serials = NULL;
			return err;
		}
		view->table = true;
	}
	for (i = 0; i < SLOTS_MAX && !err; i++) {
		slot = &memory->slots[i];
		if (view->serials[i] == slot->serial)
			continue;
		err = update(u, i, slot->addr, slot->len);
		view->serials[i] = err ? 0 : slot->serial;
	}
	return err;
}

static int by_address(const void *a, const void *b)
{
	const struct memory_piece *x = a, *y = b;

	return x->addr < y->addr ? -1 : x->addr > y->addr;
}

/* Copies the table; with the ring's lock. */
static int copy_pieces(struct memory *memory, struct memory_view *view)
{
	unsigned i;

	mem_free(view->pieces);
	view->pieces = NULL;
	view->nr = 0;
	if (!memory->nr_used)
		return 0;
	view->pieces = mem_zalloc_array(memory->nr_used, sizeof(*view->pieces));
	if (!view->pieces)
		return -ENOMEM;
	for (i = 0; i < SLOTS_MAX; i++) {
		if (memory->slots[i].len)
			view->pieces[view->nr++] = (struct memory_piece){
				memory->slots[i].addr, memory->slots[i].len, i
			};
	}
	qsort(view->pieces, view->nr, sizeof(*view->pieces), by_address);
	return 0;
}

void memory_view_refresh(struct memory_view *view, struct ring *ring,
			 struct io_uring *u)
{
	struct memory *memory = ring->private;
	int err;

	if (view->generation == atomic_load(&memory->generation))
		return;
	mutex_lock(&ring->lock);
	view->generation = atomic_load(&memory->generation);
	view->vectored = memory->vectored;
	err = copy_pieces(memory, view);
	if (!err && memory->has_master) {
		err = memory->no_clone ? -EINVAL : clone_table(memory, u);
		if (err == -EINVAL || err == -ENOSYS) {
			memory->no_clone = true;
			err = update_table(memory, view, u);
		}
	}
	/* Nothing registered is always right; the next change tries again. */
	if (err)
		view->nr = 0;
	mutex_unlock(&ring->lock);
}

void memory_view_fini(struct memory_view *view)
{
	mem_free(view->pieces);
	mem_free(view->serials);
}

static const struct memory_piece *find(const struct memory_view *view,
				       uintptr_t addr)
{
	unsigned low = 0, high = view->nr, mid;

	while (low < high) {
		mid = (low + high) / 2;
		if (addr < view->pieces[mid].addr)
			high = mid;
		else if (addr - view->pieces[mid].addr >= view->pieces[mid].len)
			low = mid + 1;
		else
			return &view->pieces[mid];
	}
	return NULL;
}

void memory_view_apply(const struct memory_view *view, struct io_uring_sqe *sqe,
		       const struct tr_io *io)
{
	bool reads = io->op == TR_IO_READ;
	const struct memory_piece *piece;
	uintptr_t addr;
	int i;

	if (!view->nr || (io->nr_iov > 1 && !view->vectored))
		return;
	piece = find(view, (uintptr_t)io->iov[0].iov_base);
	if (!piece)
		return;
	for (i = 0; i < io->nr_iov; i++) {
		addr = (uintptr_t)io->iov[i].iov_base;
		if (addr < piece->addr || io->iov[i].iov_len > piece->len ||
		    addr - piece->addr > piece->len - io->iov[i].iov_len)
			return;
	}
	if (io->nr_iov > 1) {
		sqe->opcode = reads ? OP_READV_FIXED : OP_WRITEV_FIXED;
	} else {
		sqe->opcode =
			reads ? IORING_OP_READ_FIXED : IORING_OP_WRITE_FIXED;
		sqe->addr = (uintptr_t)io->iov[0].iov_base;
		sqe->len = io->iov[0].iov_len;
	}
	sqe->buf_index = piece->slot;
}

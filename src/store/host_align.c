/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * What the host file system demands of direct I/O on a file.
 *
 * Happy path: statx says it (STATX_DIOALIGN, Linux 6.1; the alignment of reads
 * STATX_DIO_READ_ALIGN, 6.15). Before that the file system's block is safe for
 * offsets, and a page for memory. Where O_DIRECT is refused, or is taken and
 * not done (tmpfs), the file is buffered beneath and reported so by an
 * offset_align of 0.
 *
 * Failure modes: fstat and fstatfs only.
 */
#include "store/host.h"

#include <errno.h>
#include <fcntl.h>
#include <sys/stat.h>
#include <sys/statfs.h>
#include <sys/syscall.h>
#include <unistd.h>

#define TMPFS_MAGIC 0x01021994
#define RAMFS_MAGIC 0x858458f6

#define WANT_DIOALIGN 0x2000u
#define WANT_DIO_READ_ALIGN 0x20000u

/* The kernel's struct statx, of which the C library knows less. */
struct raw_statx {
	uint32_t mask;
	uint8_t skipped[0x98 - 4];
	uint32_t dio_mem_align; /* at 0x98 */
	uint32_t dio_offset_align;
	uint8_t skipped_too[0xb4 - 0xa0];
	uint32_t dio_read_offset_align; /* at 0xb4 */
	uint8_t rest[0x100 - 0xb8];
};
_Static_assert(sizeof(struct raw_statx) == 256, "as in the kernel");

/* Blocks beyond these are not a disk file system's (NFS says 1 MiB). */
#define BLOCK_MIN 512u
#define BLOCK_MAX 65536u
#define BLOCK_ELSE 4096u
#define PAGE_BYTES 4096u

static bool never_direct(const struct statfs *fs)
{
	return fs->f_type == TMPFS_MAGIC || fs->f_type == RAMFS_MAGIC;
}

static void set_buffered(struct host_file *file, int flags)
{
	(void)fcntl(file->fd, F_SETFL, flags & ~O_DIRECT);
	file->buffered = true;
	file->offset_align = 0;
	file->mem_align = 1;
	file->read_align = 0;
}

int host_file_probe(struct host_file *file)
{
	int flags = fcntl(file->fd, F_GETFL);
	struct raw_statx stx = { 0 };
	struct statfs fs;

	if (flags < 0 || fstatfs(file->fd, &fs))
		return -errno;
	/* Of no use on a regular file, but io_uring would obey it. */
	flags &= ~O_NONBLOCK;
	file->block = BLOCK_ELSE;
	if (is_power_of_two(fs.f_bsize) && fs.f_bsize >= BLOCK_MIN &&
	    fs.f_bsize <= BLOCK_MAX)
		file->block = fs.f_bsize;
	if (never_direct(&fs) ||
	    fcntl(file->fd, F_SETFL, flags | O_DIRECT) != 0) {
		set_buffered(file, flags);
		return 0;
	}
	if (syscall(SYS_statx, file->fd, "", AT_EMPTY_PATH,
		    WANT_DIOALIGN | WANT_DIO_READ_ALIGN, &stx) ||
	    !(stx.mask & WANT_DIOALIGN)) {
		file->offset_align = file->block;
		file->mem_align = PAGE_BYTES;
		file->read_align = file->block;
		return 0;
	}
	if (!stx.dio_offset_align || !stx.dio_mem_align) {
		set_buffered(file, flags);
		return 0;
	}
	file->offset_align = stx.dio_offset_align;
	file->mem_align = stx.dio_mem_align;
	file->read_align = stx.dio_offset_align;
	if (stx.mask & WANT_DIO_READ_ALIGN)
		file->read_align = stx.dio_read_offset_align;
	/* Cached I/O is in blocks: never less than direct I/O asks for. */
	file->block = max_of(file->block, file->offset_align);
	return 0;
}

/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Failing device calls in a whole server: preloaded into it (LD_PRELOAD), with
 * --io threads, so that data goes through these calls.
 *
 * Happy path: the calls count themselves in a page that the test shares (the
 * file that TAILRACE_FAILIO names) and go on to the C library. The one whose
 * turn it is returns the error that the test put there, or waits until the
 * test says otherwise. Without the file nothing is counted and nothing fails.
 *
 * Built with 64-bit offsets as the program is, these have the names that it
 * calls.
 */
#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <stdatomic.h>
#include <stddef.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/uio.h>
#include <time.h>
#include <unistd.h>

enum kind { WRITE, FSYNC, FDATASYNC, TRUNCATE, FALLOCATE, KINDS };

/* Five words of the page for each kind, native byte order; see nfs3.py. */
struct fail {
	atomic_int seen; /* calls so far */
	atomic_int nth; /* fails when seen gets there; 0: none does */
	atomic_int lasting; /* all later ones too */
	atomic_int error; /* errno, or -1: wait while nth is not 0 */
	atomic_int waiting; /* calls that do */
};

static struct fail *fails;

__attribute__((constructor)) static void map(void)
{
	const char *path = getenv("TAILRACE_FAILIO");
	int fd = path ? open(path, O_RDWR | O_CLOEXEC) : -1;
	void *p;

	if (fd < 0)
		return;
	p = mmap(NULL, 4096, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
	close(fd);
	if (p != MAP_FAILED)
		fails = p;
}

/* Whether this call is to fail; errno says how. */
static int hit(enum kind kind)
{
	const struct timespec ms = { 0, 1000000 };
	struct fail *f = fails ? &fails[kind] : NULL;
	int seen, nth, error;

	if (!f)
		return 0;
	seen = atomic_fetch_add(&f->seen, 1) + 1;
	nth = atomic_load(&f->nth);
	if (!nth || seen < nth || (seen > nth && !atomic_load(&f->lasting)))
		return 0;
	error = atomic_load(&f->error);
	if (error >= 0) {
		errno = error;
		return 1;
	}
	atomic_fetch_add(&f->waiting, 1);
	while (atomic_load(&f->nth))
		nanosleep(&ms, NULL);
	atomic_fetch_sub(&f->waiting, 1);
	return 0;
}

/* The project hides what is not said to be public. */
#pragma GCC visibility push(default)

#define NEXT(name, ...)                                                        \
	(((__typeof__(&(name)))dlsym(RTLD_NEXT, #name))(__VA_ARGS__))

ssize_t pwritev(int fd, const struct iovec *iov, int nr, off_t off)
{
	return hit(WRITE) ? -1 : NEXT(pwritev, fd, iov, nr, off);
}

ssize_t pwritev2(int fd, const struct iovec *iov, int nr, off_t off, int flags)
{
	return hit(WRITE) ? -1 : NEXT(pwritev2, fd, iov, nr, off, flags);
}

ssize_t pwrite(int fd, const void *p, size_t n, off_t off)
{
	return hit(WRITE) ? -1 : NEXT(pwrite, fd, p, n, off);
}

int fsync(int fd)
{
	return hit(FSYNC) ? -1 : NEXT(fsync, fd);
}

int fdatasync(int fd)
{
	return hit(FDATASYNC) ? -1 : NEXT(fdatasync, fd);
}

int ftruncate(int fd, off_t size)
{
	return hit(TRUNCATE) ? -1 : NEXT(ftruncate, fd, size);
}

int fallocate(int fd, int mode, off_t off, off_t len)
{
	return hit(FALLOCATE) ? -1 : NEXT(fallocate, fd, mode, off, len);
}

#pragma GCC visibility pop

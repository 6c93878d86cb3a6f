/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * umlfp.so: LD_PRELOAD for Debian 12's linux.uml (6.1), which keeps 2696 bytes
 * of XSAVE state a task.  On a host CPU with AMX the area is 11008 bytes and the
 * host kernel takes PTRACE_SETREGSET(NT_X86_XSTATE) for the whole area only, so
 * the unmodified program panics with "ptrace set fp regs failed, errno = 14".
 * This pads each set with zeros (AMX stays unused in the guest), and leaves out
 * a set of just what was read while the task has not run since.
 */
#define _GNU_SOURCE
#include <errno.h>
#include <stdarg.h>
#include <string.h>
#include <unistd.h>
#include <sys/ptrace.h>
#include <sys/syscall.h>
#include <sys/uio.h>

#define XSTATE 0x202

static unsigned char buf[65536] __attribute__((aligned(64)));
static unsigned char last[65536];
static size_t full, lastlen;
static long lastpid;

long ptrace(enum __ptrace_request request, ...)
{
	int req = request;
	long pid, r, word;
	char *addr, *data;
	va_list ap;

	va_start(ap, request);
	pid = va_arg(ap, long);
	addr = va_arg(ap, char *);
	data = va_arg(ap, char *);
	va_end(ap);

	if ((req == PTRACE_GETREGSET || req == PTRACE_SETREGSET) &&
	    (unsigned long)addr == XSTATE) {
		struct iovec *u = (struct iovec *)data;
		struct iovec f = { buf, sizeof buf };

		if (req == PTRACE_GETREGSET) {
			r = syscall(SYS_ptrace, req, pid, addr, &f);
			if (r < 0)
				return r;
			full = f.iov_len;
			if (u->iov_len > full)
				u->iov_len = full;
			memcpy(u->iov_base, buf, u->iov_len);
			lastpid = pid;
			lastlen = u->iov_len;
			memcpy(last, buf, lastlen);
			return r;
		}
		if (pid == lastpid && u->iov_len >= lastlen &&
		    !memcmp(last, u->iov_base, lastlen))
			return 0;
		lastpid = 0;
		if (full > u->iov_len) {
			memcpy(buf, u->iov_base, u->iov_len);
			memset(buf + u->iov_len, 0, full - u->iov_len);
			f.iov_len = full;
			return syscall(SYS_ptrace, req, pid, addr, &f);
		}
		return syscall(SYS_ptrace, req, pid, addr, data);
	}
	switch (req) {
	case PTRACE_CONT:
	case PTRACE_SYSCALL:
	case PTRACE_SINGLESTEP:
	case PTRACE_SYSEMU:
	case PTRACE_SYSEMU_SINGLESTEP:
	case PTRACE_SETFPREGS:
	case PTRACE_KILL:
	case PTRACE_DETACH:
		lastpid = 0;
		break;
	case PTRACE_PEEKTEXT:
	case PTRACE_PEEKDATA:
	case PTRACE_PEEKUSER:
		r = syscall(SYS_ptrace, req, pid, addr, &word);
		if (r < 0)
			return r;
		errno = 0;
		return word;
	}
	return syscall(SYS_ptrace, req, pid, addr, data);
}

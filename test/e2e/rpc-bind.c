/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Goal: programs are registered with a real rpcbind, taken back, and the lack
 * of rpcbind is told apart from its refusal.
 *
 * Method: rpcbind runs in namespaces of the test's own (network, and /run), so
 * that the host's is neither seen nor touched. Skipped without the right to
 * make them, or without rpcbind.
 */
#include "lib/test.h"

#include "base/clock.h"
#include "rpc/rpcbind.h"

#include <errno.h>
#include <net/if.h>
#include <sched.h>
#include <signal.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/mount.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <sys/wait.h>
#include <unistd.h>

#define RPCBIND "/usr/sbin/rpcbind"
#define PROG 400100

static int namespaces(void)
{
	struct ifreq lo = { .ifr_name = "lo",
			    .ifr_flags = IFF_UP | IFF_RUNNING };
	int fd, err;

	if (unshare(CLONE_NEWNET | CLONE_NEWNS) ||
	    mount(NULL, "/", NULL, MS_REC | MS_PRIVATE, NULL) ||
	    mount("tmpfs", "/run", "tmpfs", 0, NULL))
		return -errno;
	fd = socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC, 0);
	err = fd < 0 || ioctl(fd, SIOCSIFFLAGS, &lo) ? -errno : 0;
	if (fd >= 0)
		close(fd);
	return err;
}

static bool answers(void)
{
	struct sockaddr_un un = { .sun_family = AF_UNIX,
				  .sun_path = "/run/rpcbind.sock" };
	int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
	bool ok = !connect(fd, (struct sockaddr *)&un, sizeof(un));

	close(fd);
	return ok;
}

static pid_t rpcbind_start(void)
{
	uint64_t deadline = clock_ns() + 10 * NS_PER_S;
	pid_t pid = fork();

	if (!pid) {
		prctl(PR_SET_PDEATHSIG, SIGKILL);
		execl(RPCBIND, RPCBIND, "-f", NULL);
		_exit(127);
	}
	/* It has no way to tell that it is ready but to answer. */
	while (!answers()) {
		assert_true(clock_ns() < deadline);
		clock_sleep(5 * NS_PER_MS);
	}
	return pid;
}

static void programs_are_registered(void **state)
{
	pid_t pid;

	assert_int_equal(rpc_bind_set(PROG, 3, 2049, false), -ENOENT);
	assert_int_equal(rpc_bind_unset(PROG, 3, false), -ENOENT);
	pid = rpcbind_start();
	assert_int_equal(rpc_bind_set(PROG, 3, 2049, true), 0);
	/* Again, at another port: the stale entry is replaced. */
	assert_int_equal(rpc_bind_set(PROG, 3, 2050, true), 0);
	assert_int_equal(system("rpcinfo -p 127.0.0.1 | grep -q "
				"'400100 *3 *tcp *2050'"),
			 0);
	assert_int_equal(rpc_bind_unset(PROG, 3, true), 0);
	assert_int_equal(system("rpcinfo -p 127.0.0.1 | grep -q 400100"), 256);
	assert_int_equal(rpc_bind_unset(PROG, 3, true), 0);
	kill(pid, SIGTERM);
	waitpid(pid, NULL, 0);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(programs_are_registered),
	};
	int err;

	if (access(RPCBIND, X_OK)) {
		printf("skipped: no " RPCBIND "\n");
		return 77;
	}
	err = namespaces();
	if (err) {
		printf("skipped: namespaces: %s\n", strerror(-err));
		return 77;
	}
	return cmocka_run_group_tests(tests, leak_setup, leak_check);
}

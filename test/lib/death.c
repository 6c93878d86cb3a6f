/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * A child with a pipe for its stderr; the parent reads to the end and then asks
 * how it ended. A child that lives on is told from one that died otherwise by
 * the status in the message.
 */
#include "lib/death.h"

#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

static void death_child(int fd, void (*fn)(void *arg), void *arg)
{
	const struct rlimit none = { 0, 0 };

	/* A core file would say nothing that the message does not. */
	setrlimit(RLIMIT_CORE, &none);
	dup2(fd, STDERR_FILENO);
	/* cmocka's handler would go on with the next test, in the child. */
	signal(SIGABRT, SIG_DFL);
	fn(arg);
	_exit(0);
}

bool death_of(void (*fn)(void *arg), void *arg, const char *words)
{
	char said[4096] = "";
	size_t n = 0;
	ssize_t got;
	int fds[2], status = 0;
	pid_t pid;
	bool ok;

	if (pipe(fds))
		return false;
	pid = fork();
	if (!pid)
		death_child(fds[1], fn, arg);
	close(fds[1]);
	while (n < sizeof(said) - 1 &&
	       (got = read(fds[0], said + n, sizeof(said) - 1 - n)) > 0)
		n += (size_t)got;
	close(fds[0]);
	ok = pid > 0 && waitpid(pid, &status, 0) == pid &&
	     WIFSIGNALED(status) && WTERMSIG(status) == SIGABRT &&
	     strstr(said, words);
	if (!ok)
		fprintf(stderr, "wanted death by \"%s\", status 0x%x: %s\n",
			words, (unsigned)status, said);
	return ok;
}

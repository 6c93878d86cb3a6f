/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Goal: the service manager is told, at a path and at an abstract name, and
 * nothing happens without one. Method: a socket in its place.
 */
#include "lib/test.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include "cmd/notify.h"

/* Binds name ('@': abstract) and expects what notify_manager() says there. */
static void hears(const char *name)
{
	struct sockaddr_un addr = { .sun_family = AF_UNIX };
	size_t len = strlen(name);
	char got[64] = "";
	int fd;

	memcpy(addr.sun_path, name, len);
	if (name[0] == '@')
		addr.sun_path[0] = 0;
	fd = socket(AF_UNIX, SOCK_DGRAM | SOCK_CLOEXEC, 0);
	assert_true(fd >= 0);
	assert_int_equal(
		bind(fd, (struct sockaddr *)&addr,
		     (socklen_t)(offsetof(struct sockaddr_un, sun_path) + len)),
		0);
	setenv("NOTIFY_SOCKET", name, 1);
	notify_manager("READY=1");
	assert_int_equal(recv(fd, got, sizeof(got), MSG_DONTWAIT), 7);
	assert_string_equal(got, "READY=1");
	close(fd);
}

static void path_and_abstract(void **state)
{
	char name[64];

	snprintf(name, sizeof(name), "/tmp/notify.%d", getpid());
	hears(name);
	unlink(name);
	/* Nobody is there any more. */
	notify_manager("STOPPING=1");
	snprintf(name, sizeof(name), "@notify.%d", getpid());
	hears(name);
}

static void nobody(void **state)
{
	char name[300];

	unsetenv("NOTIFY_SOCKET");
	notify_manager("READY=1");
	setenv("NOTIFY_SOCKET", "", 1);
	notify_manager("READY=1");
	setenv("NOTIFY_SOCKET", "no/path", 1);
	notify_manager("READY=1");
	memset(name, 'x', sizeof(name));
	name[0] = '/';
	name[sizeof(name) - 1] = 0;
	setenv("NOTIFY_SOCKET", name, 1);
	notify_manager("READY=1");
	unsetenv("NOTIFY_SOCKET");
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(path_and_abstract),
		cmocka_unit_test(nobody),
	};

	return cmocka_run_group_tests(tests, leak_setup, leak_check);
}

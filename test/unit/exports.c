/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Goal: exports(5) is understood, the right client wins, and each mistake is
 * answered by file, line and what is allowed.
 *
 * Method: texts with their expected tables and messages; every prefix of a
 * large correct text is parsed too, and every allocation is failed once.
 */
#include "lib/test.h"

#include "base/mem.h"
#include "fs/exports.h"

#include <arpa/inet.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

static const char good[] =
	"# a comment\n"
	"/srv/data 192.168.0.0/24(rw,no_root_squash,async) 10.1.2.3(rw,sync) "
	"\\\n"
	"\t*(ro,all_squash,anonuid=1000,anongid=-2)\n"
	"\"/srv/with space\" -rw,sync ::1 fe80::/10(ro)\n"
	"/srv/x\\040y/ *.example.com(rw,io_cache_write=3,io_cache_read=inherit)"
	" 10.0.0.0/255.0.0.0(rw,fsid=7,sec=sys,subtree_check)\n";

static const struct export_options *match(const struct exports *x, int i,
					  const char *addr, const char *name)
{
	struct sockaddr_in6 in6 = { .sin6_family = AF_INET6 };
	struct sockaddr_in in = { .sin_family = AF_INET };
	struct in6_addr a;
	uint16_t port;

	if (inet_pton(AF_INET, addr, &in.sin_addr) == 1)
		assert_true(exports_addr((void *)&in, &a, &port));
	else if (inet_pton(AF_INET6, addr, &in6.sin6_addr) == 1)
		assert_true(exports_addr((void *)&in6, &a, &port));
	return export_match(&x->entries[i], &a, name);
}

static void parses(void **state)
{
	char error[EXPORTS_ERROR_MAX] = "";
	const struct export_options *o;
	struct exports x;

	(void)state;
	assert_int_equal(exports_parse(good, "exports", &x, error), 0);
	assert_int_equal(x.nr, 3);
	assert_string_equal(x.entries[0].path, "/srv/data");
	assert_string_equal(x.entries[1].path, "/srv/with space");
	assert_string_equal(x.entries[2].path, "/srv/x y");
	assert_int_equal(x.entries[2].line, 5);
	assert_int_equal(x.entries[2].fsid, 7);
	assert_int_equal(x.entries[2].io[IO_KNOB_io_cache_write], 3);
	assert_int_equal(x.entries[2].io[IO_KNOB_io_cache_read], IO_INHERIT);

	o = match(&x, 0, "192.168.0.77", NULL);
	assert_true(o && o->writable && !o->root_squash && !o->sync);
	o = match(&x, 0, "10.1.2.3", NULL);
	assert_true(o && o->writable && o->root_squash && o->sync);
	o = match(&x, 0, "::ffff:10.1.2.3", NULL);
	assert_true(o && o->writable);
	o = match(&x, 0, "192.168.1.1", NULL);
	assert_true(o && !o->writable && o->all_squash);
	assert_int_equal(o->anon_uid, 1000);
	assert_int_equal(o->anon_gid, (uint32_t)-2);
	o = match(&x, 1, "::1", NULL);
	assert_true(o && o->writable && o->secure);
	o = match(&x, 1, "fe80::1234", NULL);
	assert_true(o && !o->writable);
	assert_null(match(&x, 1, "10.0.0.1", NULL));
	assert_true(export_wants_name(&x.entries[2]));
	assert_non_null(match(&x, 2, "1.2.3.4", "a.EXAMPLE.com"));
	assert_null(match(&x, 2, "1.2.3.4", "a.example.org"));
	assert_null(match(&x, 2, "1.2.3.4", NULL));
	assert_non_null(match(&x, 2, "10.255.0.1", NULL));
	exports_fini(&x);
}

static void refuses(void **state)
{
	static const struct {
		const char *text, *says;
	} wrong[] = {
		{ "\n\n/x\n", "f:3: /x is exported to nobody" },
		{ "/a *\nx *\n", "f:2: 'x' is not an absolute path" },
		{ "/x *(rx)", "f:1: unknown option 'rx': allowed are ro, rw" },
		{ "/x *(rw", "f:1: '*(rw': options are written" },
		{ "/x *(rw)y", "options are written CLIENT(OPTION" },
		{ "/x *(sec=krb5)", "sec=krb5: the value is sys" },
		{ "/x *(io_cache_read=3)", "the value is 0, 1 or 2" },
		{ "/x *(anonuid=x)", "anonuid=x: the value is 0 to" },
		{ "/x *(fsid=)", "fsid=: the value is a number or root" },
		{ "/x *(foo=1)", "unknown option 'foo='" },
		{ "/x 1.2.3.4/33", "the prefix is 0 to 32 bits" },
		{ "/x 1.2.3.4/255.0.255.0", "the prefix is 0 to 32 bits" },
		{ "/x host/24", "'host/24' is not a network" },
		{ "/x @group", "netgroup '@group' is not supported" },
		{ "/x a{b", "'a{b' is not a client" },
		{ "/x *\n/x/ *\n", "f:2: /x is exported already" },
		{ "\"/x *\n", "a quote (\") is not closed" },
		{ "/x\\000 *\n", "\\000 in a name" },
		{ "/x *(io_cache_read=1) 1.1.1.1(io_cache_read=2)",
		  "differs from an earlier one" },
	};
	char error[EXPORTS_ERROR_MAX];
	struct exports x;
	size_t i;

	(void)state;
	for (i = 0; i < sizeof(wrong) / sizeof(wrong[0]); i++) {
		assert_int_equal(exports_parse(wrong[i].text, "f", &x, error),
				 -EINVAL);
		if (!strstr(error, wrong[i].says))
			fail_msg("'%s' says '%s'", wrong[i].text, error);
	}
}

static void every_prefix(void **state)
{
	char text[sizeof(good)], error[EXPORTS_ERROR_MAX];
	struct exports x;
	size_t len;

	(void)state;
	for (len = 0; len < sizeof(good); len++) {
		memcpy(text, good, len);
		text[len] = 0;
		if (!exports_parse(text, "f", &x, error))
			exports_fini(&x);
	}
}

static void no_memory(void **state)
{
	char error[EXPORTS_ERROR_MAX];
	struct exports x;
	uint64_t n;
	int ret;

	(void)state;
	for (n = 1;; n++) {
		mem_fail_at(n, false);
		ret = exports_parse(good, "f", &x, error);
		if (!ret)
			break;
		assert_int_equal(ret, -ENOMEM);
		assert_string_equal(error, "f: out of memory");
	}
	mem_fail_at(0, false);
	assert_true(n > 10);
	exports_fini(&x);
}

/* A directory that is there, and no option. */
static void colon_in_name(struct exports *x)
{
	char dir[] = "/tmp/exports.XXXXXX", name[sizeof(dir) + 8];
	char error[EXPORTS_ERROR_MAX];
	const struct export_options *o;

	assert_non_null(mkdtemp(dir));
	snprintf(name, sizeof(name), "%s/x:ro", dir);
	assert_int_equal(mkdir(name, 0700), 0);
	assert_int_equal(exports_add(x, name, false, error), 0);
	o = match(x, x->nr - 1, "127.0.0.1", NULL);
	assert_true(o && o->writable);
	assert_string_equal(x->entries[x->nr - 1].path, name);
	assert_int_equal(rmdir(name) | rmdir(dir), 0);
}

static void command_line(void **state)
{
	char error[EXPORTS_ERROR_MAX];
	const struct export_options *o;
	struct exports x = { 0 };

	(void)state;
	assert_int_equal(exports_add(&x, "/tmp", false, error), 0);
	o = match(&x, 0, "127.0.0.1", NULL);
	assert_true(o && o->writable && o->secure && !o->root_squash);
	assert_non_null(match(&x, 0, "::1", NULL));
	assert_null(match(&x, 0, "10.0.0.1", NULL));
	assert_int_equal(exports_add(&x, "/tmp/", false, error), -EINVAL);
	assert_non_null(strstr(error, "exported already"));
	assert_int_equal(exports_add(&x, "/:ro,client=10.0.0.0/8,insecure",
				     false, error),
			 0);
	o = match(&x, 1, "10.0.0.1", NULL);
	assert_true(o && !o->writable && !o->secure);
	assert_null(match(&x, 1, "127.0.0.1", NULL));
	assert_int_equal(exports_add(&x, "/usr:rx", false, error), -EINVAL);
	assert_non_null(strstr(error, "/usr:rx: unknown option 'rx'"));
	assert_int_equal(exports_add(&x, "/usr:client=", false, error),
			 -EINVAL);
	assert_non_null(strstr(error, "client= without a name"));
	colon_in_name(&x);
	assert_int_equal(exports_add(&x, "/no/such", false, error), -EINVAL);
	assert_string_equal(error, "/no/such: No such file or directory");
	assert_int_equal(x.nr, 3);
	exports_fini(&x);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(parses),	cmocka_unit_test(refuses),
		cmocka_unit_test(every_prefix), cmocka_unit_test(no_memory),
		cmocka_unit_test(command_line),
	};
	return cmocka_run_group_tests(tests, leak_setup, leak_check);
}

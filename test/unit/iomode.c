/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Goal: setting a knob does what the table of rules says to the others, and
 * nothing on a wrong value.
 *
 * Method: every pair of read and write mode, interlock on and off, every new
 * value, for the server and for an export that inherits; the rules are written
 * out a second time here, one line each.
 */
#include "lib/test.h"

#include "fs/iomode.h"

#include <errno.h>
#include <string.h>

#define READ IO_KNOB_io_cache_read
#define WRITE IO_KNOB_io_cache_write
#define LOCKED IO_KNOB_io_interlock
#define NOSPLICE IO_KNOB_disable_splice_read

static void start(struct io_knobs *k, int locked, int r, int w)
{
	io_knobs_init(k, false);
	atomic_store(&k->value[LOCKED], locked);
	atomic_store(&k->value[READ], r);
	atomic_store(&k->value[WRITE], w);
	atomic_store(&k->value[NOSPLICE], r != 0);
}

/* What read and write become when read is set to n. */
static int write_after_read(int locked, int n, int w)
{
	if (locked && n == 2 && w < 2)
		return 2;
	if (locked && n < 2 && w >= 2)
		return n;
	return w;
}

static int read_after_write(int locked, int n, int r)
{
	if (locked && n >= 2)
		return 2;
	if (locked && n < 2 && r == 2)
		return n;
	return r;
}

static void expect(struct io_knobs *server, struct io_knobs *export, int r,
		   int w)
{
	assert_int_equal(io_knob_get(server, export, READ), r);
	assert_int_equal(io_knob_get(server, export, WRITE), w);
}

static void one(int locked, int r, int w, int on_export)
{
	struct io_knobs server, own, *export = on_export ? &own : NULL;
	struct io_knobs *k = on_export ? &own : &server;
	const struct io_knobs *up = on_export ? &server : NULL;
	unsigned changed;
	int n;

	io_knobs_init(&own, true);
	for (n = 0; n <= 2; n++) {
		start(&server, locked, r, w);
		io_knobs_init(&own, true);
		assert_int_equal(io_knob_set(k, up, READ, n, &changed), 0);
		expect(&server, export, n, write_after_read(locked, n, w));
		assert_int_equal(!!(changed & 1u << WRITE),
				 write_after_read(locked, n, w) != w);
		if (n || r)
			assert_true(io_knob_get(&server, export, NOSPLICE));
	}
	for (n = 0; n <= 4; n++) {
		start(&server, locked, r, w);
		io_knobs_init(&own, true);
		assert_int_equal(io_knob_set(k, up, WRITE, n, &changed), 0);
		expect(&server, export, read_after_write(locked, n, r), n);
	}
	start(&server, locked, r, w);
	io_knobs_init(&own, true);
	assert_int_equal(io_knob_set(k, up, NOSPLICE, 0, &changed), 0);
	expect(&server, export, 0, locked && w >= 2 ? 0 : w);
}

static void rules(void **state)
{
	int locked, r, w, on_export;

	(void)state;
	for (on_export = 0; on_export < 2; on_export++)
		for (locked = 0; locked < 2; locked++)
			for (r = 0; r <= 2; r++)
				for (w = 0; w <= 4; w++)
					one(locked, r, w, on_export);
}

static void wrong_values(void **state)
{
	struct io_knobs server, export;
	unsigned changed = 77;
	int v = 5;

	(void)state;
	start(&server, 1, 1, 1);
	io_knobs_init(&export, true);
	assert_int_equal(io_knob_set(&server, NULL, READ, 3, &changed),
			 -EINVAL);
	assert_int_equal(io_knob_set(&server, NULL, WRITE, 5, &changed),
			 -EINVAL);
	assert_int_equal(io_knob_set(&server, NULL, READ, IO_INHERIT, &changed),
			 -EINVAL);
	assert_int_equal(changed, 77);
	expect(&server, &export, 1, 1);
	assert_int_equal(io_knob_parse(READ, "3", true, &v), -EINVAL);
	assert_int_equal(io_knob_parse(READ, "", true, &v), -EINVAL);
	assert_int_equal(io_knob_parse(READ, "-1", true, &v), -EINVAL);
	assert_int_equal(io_knob_parse(READ, "1x", true, &v), -EINVAL);
	assert_int_equal(io_knob_parse(READ, "inherit", false, &v), -EINVAL);
	assert_int_equal(io_knob_parse(READ, "Y", false, &v), -EINVAL);
	assert_int_equal(v, 5);
}

static void export_inherits(void **state)
{
	struct io_knobs server, export;
	struct io_mode mode;
	unsigned changed;
	char text[16];
	int v;

	(void)state;
	io_knobs_init(&server, false);
	io_knobs_init(&export, true);
	io_mode_get(&server, &export, &mode);
	assert_true(mode.splice_read && mode.dontcache);
	assert_int_equal(mode.num_pages, 2);
	assert_int_equal(io_knob_set(&export, &server, WRITE, 3, &changed), 0);
	assert_int_equal(io_knob_set(&server, NULL, WRITE, 1, &changed), 0);
	io_mode_get(&server, &export, &mode);
	assert_int_equal(mode.write, IO_WRITE_DATA_SYNC);
	assert_int_equal(
		io_knob_set(&export, &server, WRITE, IO_INHERIT, &changed), 0);
	io_mode_get(&server, &export, &mode);
	assert_int_equal(mode.write, IO_WRITE_UNCACHED);

	assert_int_equal(io_knob_find("io_cache_write"), WRITE);
	assert_int_equal(io_knob_find("nothing"), -ENOENT);
	assert_int_equal(io_knob_parse(NOSPLICE, "n", false, &v), 0);
	io_knob_format(NOSPLICE, v, text, sizeof(text));
	assert_string_equal(text, "N");
	io_knob_format(WRITE, IO_INHERIT, text, sizeof(text));
	assert_string_equal(text, "inherit");
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(rules),
		cmocka_unit_test(wrong_values),
		cmocka_unit_test(export_inherits),
	};
	return cmocka_run_group_tests(tests, leak_setup, leak_check);
}

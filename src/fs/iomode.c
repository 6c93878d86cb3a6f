/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * The knobs of I/O modes and what setting one does to the others.
 *
 * Happy path: io_knob_set() checks the value, works on a copy of the values in
 * force, applies the rules, and stores what differs. An unknown value changes
 * nothing.
 *
 * Invariant: with io_interlock on and every change made through here, the
 * values in force never have direct on one side only.
 */
#include "fs/iomode.h"

#include <assert.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static const struct knob_row {
	const char *name;
	bool boolean;
	int initial, least, most;
} knob_rows[IO_NR_KNOBS] = {
#define IO_ROW_(name, boolean, initial, least, most, sentence)                 \
	[IO_KNOB_##name] = { #name, boolean, initial, least, most },
	IO_KNOBS(IO_ROW_)
#undef IO_ROW_
};

void io_knobs_init(struct io_knobs *k, bool inherit)
{
	int i;

	for (i = 0; i < IO_NR_KNOBS; i++)
		atomic_init(&k->value[i],
			    inherit ? IO_INHERIT : knob_rows[i].initial);
}

int io_knob_find(const char *name)
{
	int i;

	for (i = 0; i < IO_NR_KNOBS; i++)
		if (!strcmp(knob_rows[i].name, name))
			return i;
	return -ENOENT;
}

const char *io_knob_name(enum io_knob knob)
{
	return knob_rows[knob].name;
}

const char *io_knob_allowed(enum io_knob knob)
{
	if (knob_rows[knob].boolean)
		return "Y or N";
	switch (knob) {
	case IO_KNOB_io_cache_read:
		return "0, 1 or 2";
	case IO_KNOB_io_cache_write:
		return "0 to 4";
	default:
		return "0 to 1024";
	}
}

int io_knob_parse(enum io_knob knob, const char *text, bool inherit, int *out)
{
	const struct knob_row *row = &knob_rows[knob];
	char *end;
	long v;

	if (inherit && !strcmp(text, "inherit")) {
		*out = IO_INHERIT;
		return 0;
	}
	if (row->boolean && text[0] && !text[1] && strchr("YyNn", text[0])) {
		*out = text[0] == 'Y' || text[0] == 'y';
		return 0;
	}
	if (text[0] < '0' || text[0] > '9')
		return -EINVAL;
	errno = 0;
	v = strtol(text, &end, 10);
	if (errno || *end || v < row->least || v > row->most)
		return -EINVAL;
	*out = (int)v;
	return 0;
}

void io_knob_format(enum io_knob knob, int value, char *buf, size_t len)
{
	if (value == IO_INHERIT)
		snprintf(buf, len, "inherit");
	else if (knob_rows[knob].boolean)
		snprintf(buf, len, "%c", value ? 'Y' : 'N');
	else
		snprintf(buf, len, "%d", value);
}

/* Going to a mode that copies switches sending from the cache off; going back
 * to cached leaves it off. */
static void set_read(int v[IO_NR_KNOBS], int mode)
{
	v[IO_KNOB_io_cache_read] = mode;
	if (mode != IO_READ_CACHED)
		v[IO_KNOB_disable_splice_read] = 1;
}

static void follow_read(int v[IO_NR_KNOBS])
{
	int mode = v[IO_KNOB_io_cache_read];
	int *write = &v[IO_KNOB_io_cache_write];

	set_read(v, mode);
	if (!v[IO_KNOB_io_interlock])
		return;
	if (mode == IO_READ_DIRECT && *write < IO_WRITE_DIRECT)
		*write = IO_WRITE_DIRECT;
	else if (mode != IO_READ_DIRECT && *write >= IO_WRITE_DIRECT)
		*write = mode;
}

static void follow_write(int v[IO_NR_KNOBS])
{
	int mode = v[IO_KNOB_io_cache_write];

	if (!v[IO_KNOB_io_interlock])
		return;
	if (mode >= IO_WRITE_DIRECT)
		set_read(v, IO_READ_DIRECT);
	else if (v[IO_KNOB_io_cache_read] == IO_READ_DIRECT)
		set_read(v, mode);
}

static void follow_splice(int v[IO_NR_KNOBS])
{
	if (v[IO_KNOB_disable_splice_read])
		return;
	v[IO_KNOB_io_cache_read] = IO_READ_CACHED;
	if (v[IO_KNOB_io_interlock] &&
	    v[IO_KNOB_io_cache_write] >= IO_WRITE_DIRECT)
		v[IO_KNOB_io_cache_write] = IO_WRITE_CACHED;
}

int io_knob_get(const struct io_knobs *server, const struct io_knobs *export,
		enum io_knob knob)
{
	int v = IO_INHERIT;

	if (export)
		v = atomic_load_explicit(&export->value[knob],
					 memory_order_relaxed);
	if (v == IO_INHERIT)
		v = atomic_load_explicit(&server->value[knob],
					 memory_order_relaxed);
	return v;
}

int io_knob_set(struct io_knobs *k, const struct io_knobs *server,
		enum io_knob knob, int value, unsigned *changed)
{
	const struct knob_row *row = &knob_rows[knob];
	int old[IO_NR_KNOBS], v[IO_NR_KNOBS];
	unsigned bits = 0;
	int i;

	if (value == IO_INHERIT ? !server
				: value < row->least || value > row->most)
		return -EINVAL;
	for (i = 0; i < IO_NR_KNOBS; i++)
		old[i] = v[i] = server ? io_knob_get(server, k, i)
				       : io_knob_get(k, NULL, i);
	v[knob] = value == IO_INHERIT ? io_knob_get(server, NULL, knob) : value;
	if (knob == IO_KNOB_io_cache_read)
		follow_read(v);
	else if (knob == IO_KNOB_io_cache_write)
		follow_write(v);
	else if (knob == IO_KNOB_disable_splice_read)
		follow_splice(v);

	for (i = 0; i < IO_NR_KNOBS; i++) {
		int now = i == (int)knob ? value : v[i];

		if (i != (int)knob && v[i] == old[i])
			continue;
		if (atomic_exchange(&k->value[i], now) != now)
			bits |= 1u << i;
	}
	*changed = bits;
	return 0;
}

void io_mode_get(const struct io_knobs *server, const struct io_knobs *export,
		 struct io_mode *out)
{
	out->read = (enum io_read_mode)io_knob_get(server, export,
						   IO_KNOB_io_cache_read);
	out->write = (enum io_write_mode)io_knob_get(server, export,
						     IO_KNOB_io_cache_write);
	out->splice_read =
		!io_knob_get(server, export, IO_KNOB_disable_splice_read) &&
		out->read == IO_READ_CACHED;
	out->num_pages = (unsigned)io_knob_get(
		server, export, IO_KNOB_direct_misaligned_num_pages);
	out->dontcache = io_knob_get(server, export,
				     IO_KNOB_direct_misaligned_dontcache);
}

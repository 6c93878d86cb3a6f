/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * tailrace top: a running server, as numbers per second.
 *
 * Happy path: statistics are asked for twice and their differences shown, each
 * -i seconds, until 'q', SIGINT or the server's end: the cache, devices,
 * exports and clients, the busiest first. Keys: q ends; p shows the same with
 * procedures. Where standard output is no terminal this is a matter of stat.
 *
 * Failure modes: the screen is put back before anything is said on stderr.
 */
#include <ncurses.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/compiler.h"
#include "cmd/commands.h"
#include "cmd/doc.h"
#include "cmd/options.h"

struct top_options {
	const char *control;
	uint64_t interval; /* s */
	uint64_t count; /* 0: no end */
};

#define FIELD(name) offsetof(struct top_options, name)

static const struct option_row rows[] = {
	CONTROL_OPTION(FIELD(control)),
	{ "interval", 'i', OPTION_COUNT, FIELD(interval), "SECONDS",
	  "between two looks (1)", NULL, 1, 3600 },
	{ "count", 0, OPTION_COUNT, FIELD(count), "N",
	  "end after N looks (no end)", NULL, 1, UINT32_MAX },
};

static const struct option_usage usage = {
	.command = "tailrace top",
	.synopsis = "[OPTION]...",
	.summary = "Watch a running server.",
	.rows = rows,
	.nr_rows = ARRAY_SIZE(rows),
};

/* Lines of a list: more do not fit a screen. */
#define LINES_MAX 128

struct top {
	struct control control;
	struct doc old, now;
	double seconds; /* between them */
	uint64_t now_ns;
	bool procedures;
	int y; /* line that is drawn next */
};

static double rate(const struct top *t, const struct doc_row *then,
		   const struct doc_row *now, const char *name)
{
	uint64_t a = doc_number(&t->old, then, name);
	uint64_t b = doc_number(&t->now, now, name);

	return b > a && t->seconds > 0 ? (double)(b - a) / t->seconds : 0;
}

static double mib_rate(const struct top *t, const struct doc_row *then,
		       const struct doc_row *now, const char *name)
{
	return rate(t, then, now, name) / (1 << 20);
}

/* ---- drawing ---- */

static PRINTF(2, 3) void draw(struct top *t, const char *fmt, ...)
{
	char line[160];
	va_list ap;

	if (t->y >= LINES)
		return;
	va_start(ap, fmt);
	vsnprintf(line, sizeof(line), fmt, ap);
	va_end(ap);
	mvaddnstr(t->y++, 0, line, COLS);
}

static double cache_mib(const struct top *t, const char *name)
{
	return (double)doc_number(&t->now, doc_find(&t->now, "cache", NULL),
				  name) /
	       256;
}

static void draw_head(struct top *t)
{
	const struct doc_row *cache = doc_find(&t->now, "cache", NULL);
	const struct doc_row *then = doc_find(&t->old, "cache", NULL);
	const struct doc_row *rpc = doc_find(&t->now, "rpc", NULL);
	double hits = rate(t, then, cache, "read_hits");
	double misses = rate(t, then, cache, "read_misses");

	draw(t, "tailrace: up %ju s, %ju connections, %.0f calls/s",
	     (uintmax_t)doc_number(&t->now, doc_find(&t->now, "server", NULL),
				   "uptime_ms") /
		     1000,
	     (uintmax_t)doc_number(&t->now, rpc, "conns_now"),
	     rate(t, doc_find(&t->old, "rpc", NULL), rpc, "calls"));
	draw(t,
	     "cache MiB: %.0f cached, %.1f dirty (%.1f uncached), "
	     "%.1f written back, %.1f free",
	     cache_mib(t, "cached_pages"), cache_mib(t, "reclaimable"),
	     cache_mib(t, "dontcache_dirty"), cache_mib(t, "writeback"),
	     cache_mib(t, "free_pages"));
	draw(t,
	     "edges: %ju held, %.0f completed/s, %.0f aged/s, %.0f filled/s; "
	     "%.0f kicks/s",
	     (uintmax_t)doc_number(&t->now, cache, "edges_held"),
	     rate(t, then, cache, "edges_completed"),
	     rate(t, then, cache, "edges_aged"), rate(t, then, cache, "fills"),
	     rate(t, then, cache, "kicks"));
	draw(t, "reads: %.0f%% hits; writers: %.0f made to wait/s",
	     hits + misses > 0 ? 100 * hits / (hits + misses) : 0,
	     rate(t, then, cache, "throttled"));
	t->y++;
}

static void draw_devices(struct top *t)
{
	const struct doc_row *at = NULL, *then;

	attron(A_REVERSE);
	draw(t, "%-20s %9s %9s %9s %9s %9s %9s", "device", "reads/s", "MiB/s",
	     "writes/s", "MiB/s", "syncs/s", "dirty kB");
	attroff(A_REVERSE);
	while ((at = doc_next(&t->now, at, 1, "bdi"))) {
		then = doc_find(&t->old, "bdi", at->value);
		draw(t, "%-20.20s %9.0f %9.1f %9.0f %9.1f %9.0f %9ju",
		     at->value, rate(t, then, at, "device_reads"),
		     mib_rate(t, then, at, "device_read_bytes"),
		     rate(t, then, at, "device_writes"),
		     mib_rate(t, then, at, "device_write_bytes"),
		     rate(t, then, at, "device_syncs"),
		     (uintmax_t)doc_number(&t->now, at, "BdiReclaimable"));
	}
	t->y++;
}

struct line {
	const struct doc_row *now, *then;
	double calls;
};

static int busier(const void *a, const void *b)
{
	const struct line *x = a, *y = b;

	return x->calls < y->calls ? 1 : x->calls > y->calls ? -1 : 0;
}

static void draw_ops(struct top *t, const struct line *l, int indent)
{
	uint64_t count = doc_number(&t->now, l->now, "operations") -
			 doc_number(&t->old, l->then, "operations");
	uint64_t us = doc_number(&t->now, l->now, "mean_us");

	draw(t, "%*s%-*.*s %9.0f %9.1f %9.1f %9ju %9ju %9ju", indent, "",
	     20 - indent, 20 - indent, l->now->value, l->calls,
	     mib_rate(t, l->then, l->now, "bytes_in"),
	     mib_rate(t, l->then, l->now, "bytes_out"), (uintmax_t)us,
	     (uintmax_t)doc_number(&t->now, l->now, "p99_us"),
	     (uintmax_t)count);
}

/* The section of that name within the one around it. */
static const struct doc_row *find_op(const struct doc *doc,
				     const struct doc_row *around,
				     const char *name)
{
	const struct doc_row *op = around;

	while (op && (op = doc_next(doc, op, 2, "ops")))
		if (!strcmp(op->value, name))
			return op;
	return NULL;
}

static void draw_procedures(struct top *t, const struct line *around)
{
	const struct doc_row *op = around->now;
	struct line l;

	while ((op = doc_next(&t->now, op, 2, "ops"))) {
		l.now = op;
		l.then = find_op(&t->old, around->then, op->value);
		l.calls = rate(t, l.then, op, "operations");
		if (l.calls > 0)
			draw_ops(t, &l, 2);
	}
}

static void draw_list(struct top *t, const char *kind, const char *title)
{
	const struct doc_row *at = NULL;
	struct line lines[LINES_MAX];
	size_t nr = 0;

	while (nr < LINES_MAX && (at = doc_next(&t->now, at, 1, kind))) {
		struct line *l = &lines[nr++];

		l->now = at;
		l->then = doc_find(&t->old, kind, at->value);
		l->calls = rate(t, l->then, at, "operations");
	}
	qsort(lines, nr, sizeof(lines[0]), busier);
	attron(A_REVERSE);
	draw(t, "%-20s %9s %9s %9s %9s %9s %9s", title, "calls/s", "MiB/s in",
	     "MiB/s out", "mean us", "p99 us", "calls");
	attroff(A_REVERSE);
	for (size_t i = 0; i < nr; i++) {
		draw_ops(t, &lines[i], 0);
		if (t->procedures)
			draw_procedures(t, &lines[i]);
	}
	t->y++;
}

/* ---- the command ---- */

static int look(struct top *t)
{
	struct doc next;
	int status = doc_read(&t->control, &next);
	uint64_t ns = clock_ns();

	if (status)
		return status;
	doc_free(&t->old);
	t->old = t->now;
	t->now = next;
	t->seconds = (double)(ns - t->now_ns) / (double)NS_PER_S;
	t->now_ns = ns;
	return EXIT_DONE;
}

static void draw_all(struct top *t)
{
	erase();
	t->y = 0;
	draw_head(t);
	draw_devices(t);
	draw_list(t, "exports", "export");
	draw_list(t, "clients", "client");
	refresh();
}

/* True: the user has seen enough. */
static bool wait_key(struct top *t, uint64_t ms)
{
	uint64_t end = clock_ns() + ms * NS_PER_MS, now;

	while ((now = clock_ns()) < end) {
		timeout((int)((end - now) / NS_PER_MS) + 1);
		switch (getch()) {
		case 'q':
			return true;
		case 'p':
			t->procedures = !t->procedures;
			draw_all(t);
			break;
		case KEY_RESIZE:
			draw_all(t);
			break;
		default:
			break;
		}
	}
	return false;
}

static int watch(struct top *t, const struct top_options *o)
{
	SCREEN *screen = newterm(NULL, stdout, stdin);
	uint64_t nr = 0;
	int status;

	if (!screen) {
		fprintf(stderr, "%s: this terminal is not known\n",
			usage.command);
		return EXIT_CANNOT;
	}
	t->control.silent = true;
	cbreak();
	noecho();
	keypad(stdscr, true);
	curs_set(0);
	do {
		status = look(t);
		if (status)
			break;
		draw_all(t);
	} while (++nr != o->count && !wait_key(t, o->interval * 1000));
	endwin();
	delscreen(screen);
	if (status)
		fprintf(stderr, "%s: the server ended\n", usage.command);
	return status;
}

int command_top(int argc, char **argv)
{
	struct top_options o = { .interval = 1 };
	struct top t = { 0 };
	int status;

	switch (options_parse(&usage, argc, argv, &o)) {
	case OPTIONS_HELP:
		return EXIT_DONE;
	case OPTIONS_WRONG:
		return EXIT_USAGE;
	case OPTIONS_DONE:
		break;
	}
	status = control_open(&t.control, usage.command, o.control);
	if (status)
		return status;
	if (isatty(STDIN_FILENO) && isatty(STDOUT_FILENO)) {
		status = watch(&t, &o);
	} else {
		fprintf(stderr, "%s: needs a terminal; see tailrace-stat(1)\n",
			usage.command);
		status = EXIT_CANNOT;
	}
	doc_free(&t.old);
	doc_free(&t.now);
	control_close(&t.control);
	return status;
}

/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * tailrace stat: what a running server counts.
 *
 * Happy path: one answer, printed as JSON or as tables: numbers of devices and
 * writeback domains as Linux prints its own, then a line for each export and
 * client with a line for each of its procedures. With -i again and again, on
 * one connection, until interrupted or the server ends.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "base/compiler.h"
#include "cmd/commands.h"
#include "cmd/doc.h"
#include "cmd/options.h"

struct stat_options {
	const char *control;
	bool json;
	uint64_t interval; /* s; 0: once */
	uint64_t count; /* 0: no end */
};

#define FIELD(name) offsetof(struct stat_options, name)

static const struct option_row rows[] = {
	CONTROL_OPTION(FIELD(control)),
	CONTROL_OPTION_JSON(FIELD(json)),
	{ "interval", 'i', OPTION_COUNT, FIELD(interval), "SECONDS",
	  "print again after each", NULL, 1, 86400 },
	{ "count", 0, OPTION_COUNT, FIELD(count), "N",
	  "with -i: print N times (no end)", NULL, 1, UINT32_MAX },
};

static const struct option_usage usage = {
	.command = "tailrace stat",
	.synopsis = "[OPTION]...",
	.summary = "Show what a running server counts.",
	.rows = rows,
	.nr_rows = ARRAY_SIZE(rows),
};

/* ---- tables ---- */

static void print_value(const struct doc_row *row)
{
	bool plain = !strcmp(row->unit, "count") ||
		     !strcmp(row->unit, "number") ||
		     !strcmp(row->unit, "text") || !strcmp(row->unit, "bool");
	char name[64];

	snprintf(name, sizeof(name), "%s:", row->name);
	if (!strcmp(row->unit, "hex"))
		printf("%-24s %15llx\n", name, strtoull(row->value, NULL, 10));
	else
		printf("%-24s %15s%s%s\n", name, row->value, plain ? "" : " ",
		       plain ? "" : row->unit);
}

static void print_section(const struct doc *doc, const struct doc_row *at)
{
	const struct doc_row *end = doc->rows + doc->nr;

	printf("%s%s%s\n", at->name, at->value ? " " : "",
	       at->value ? at->value : "");
	for (at++; at < end && !at->level; at++)
		print_value(at);
	printf("\n");
}

static double mib(uint64_t bytes)
{
	return (double)bytes / (1 << 20);
}

static void print_ops(const struct doc *doc, const struct doc_row *at,
		      int indent)
{
	static const char *const columns[] = { "mean_us", "p50_us", "p99_us",
					       "max_us" };
	int width = 19 - indent;

	/* A long name has a line of its own. */
	if ((int)strlen(at->value) > width)
		printf("%*s%s\n%19s", indent, "", at->value, "");
	else
		printf("%*s%-*s", indent, "", width, at->value);
	printf(" %9ju %8.1f %8.1f",
	       (uintmax_t)doc_number(doc, at, "operations"),
	       mib(doc_number(doc, at, "bytes_in")),
	       mib(doc_number(doc, at, "bytes_out")));
	for (size_t i = 0; i < ARRAY_SIZE(columns); i++)
		printf(" %7ju", (uintmax_t)doc_number(doc, at, columns[i]));
	printf("\n");
}

static void print_list(const struct doc *doc, const char *kind,
		       const char *title)
{
	const struct doc_row *at = NULL, *op;

	if (!doc_next(doc, NULL, 1, kind))
		return;
	printf("%-19s %9s %8s %8s %7s %7s %7s %7s\n", title, "calls", "MiB in",
	       "MiB out", "mean us", "p50", "p99", "max");
	while ((at = doc_next(doc, at, 1, kind))) {
		print_ops(doc, at, 0);
		for (op = at; (op = doc_next(doc, op, 2, "ops"));)
			print_ops(doc, op, 2);
	}
	printf("\n");
}

static void print_tables(const struct doc *doc)
{
	const struct doc_row *at;

	for (at = doc->rows; at < doc->rows + doc->nr; at++)
		if (at->level == 1 && strcmp(at->name, "exports") &&
		    strcmp(at->name, "clients"))
			print_section(doc, at);
	print_list(doc, "exports", "export");
	print_list(doc, "clients", "client");
}

/* ---- the command ---- */

static int print_once(struct control *c, bool json)
{
	struct doc doc;
	int status = doc_read(c, &doc);

	if (status)
		return status;
	if (json)
		doc_json(&doc, stdout);
	else
		print_tables(&doc);
	doc_free(&doc);
	/* Who reads a pipe sees each as it comes. */
	return fflush(stdout) ? EXIT_FAILED : EXIT_DONE;
}

int command_stat(int argc, char **argv)
{
	struct stat_options o = { 0 };
	struct control c;
	uint64_t nr = 0;
	int status;

	switch (options_parse(&usage, argc, argv, &o)) {
	case OPTIONS_HELP:
		return EXIT_DONE;
	case OPTIONS_WRONG:
		return EXIT_USAGE;
	case OPTIONS_DONE:
		break;
	}
	if (o.count && !o.interval) {
		fprintf(stderr, "%s: --count is of --interval\n",
			usage.command);
		return EXIT_USAGE;
	}
	status = control_open(&c, usage.command, o.control);
	if (status)
		return status;
	for (;;) {
		status = print_once(&c, o.json);
		if (status || !o.interval || ++nr == o.count)
			break;
		clock_sleep(o.interval * NS_PER_S);
	}
	control_close(&c);
	return status;
}

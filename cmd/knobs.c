/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * tailrace get and tailrace set: parameters of a running server.
 *
 * Happy path: one request; the rows of the answer are printed as a table or as
 * one JSON object. `get NAME` prints the value alone, for scripts; `set` prints
 * a line for each parameter that has another value now.
 *
 * Failure modes: a name or value that the server refuses is exit status 2 with
 * its line.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/compiler.h"
#include "cmd/commands.h"
#include "cmd/control.h"
#include "cmd/json.h"
#include "cmd/options.h"

struct knob_options {
	const char *name, *value;
	const char *export;
	const char *control;
	bool json;
};

#define FIELD(name) offsetof(struct knob_options, name)
#define ROW_NAME(help)                                                         \
	{                                                                      \
		"NAME", 0, OPTION_WORD, FIELD(name), NULL, help, NULL, 0, 0    \
	}
#define ROW_EXPORT                                                             \
	{                                                                      \
		"export", 0, OPTION_STRING, FIELD(export), "PATH",             \
			"of this export, not of the server", NULL, 0, 0        \
	}

static const struct option_row get_rows[] = {
	ROW_NAME("print this one's value (all with names)"),
	ROW_EXPORT,
	CONTROL_OPTION(FIELD(control)),
	CONTROL_OPTION_JSON(FIELD(json)),
};

static const struct option_usage get_usage = {
	.command = "tailrace get",
	.synopsis = "[NAME] [OPTION]...",
	.summary = "Show parameters of a running server.",
	.rows = get_rows,
	.nr_rows = ARRAY_SIZE(get_rows),
};

static const struct option_row set_rows[] = {
	ROW_NAME("the parameter, see tailrace-parameters(7)"),
	{ "VALUE", 0, OPTION_WORD, FIELD(value), NULL,
	  "its value; of an export's also inherit", NULL, 0, 0 },
	ROW_EXPORT,
	CONTROL_OPTION(FIELD(control)),
	CONTROL_OPTION_JSON(FIELD(json)),
};

static const struct option_usage set_usage = {
	.command = "tailrace set",
	.synopsis = "NAME VALUE [OPTION]...",
	.summary = "Set a parameter of a running server.",
	.rows = set_rows,
	.nr_rows = ARRAY_SIZE(set_rows),
};

/* NAME VALUE UNIT, and of an export the value in force. */
static void print_row(char **words, int nr, bool value_only)
{
	bool unit = strcmp(words[2], "bool") && strcmp(words[2], "number");

	if (value_only)
		printf("%s\n", words[1]);
	else if (nr > 3 && !strcmp(words[1], "inherit"))
		printf("%-30s %s (%s)\n", words[0], words[1], words[3]);
	else
		printf("%-30s %s%s%s\n", words[0], words[1], unit ? " " : "",
		       unit ? words[2] : "");
}

static void json_row(struct json *j, char **words)
{
	if (!strcmp(words[1], "inherit"))
		json_string(j, words[0], words[1]);
	else if (!strcmp(words[2], "bool"))
		json_bool(j, words[0], words[1][0] == 'Y');
	else
		json_int(j, words[0], strtoll(words[1], NULL, 10));
}

static int print_rows(struct control *c, const struct knob_options *o)
{
	bool value_only = o->name && !o->value;
	char *words[CONTROL_WORDS_MAX];
	struct json j;
	int nr;

	json_init(&j, stdout);
	if (o->json)
		json_object_start(&j, NULL);
	while ((nr = control_row(c, words)) > 0) {
		if (nr < 3)
			continue;
		if (o->json)
			json_row(&j, words);
		else
			print_row(words, nr, value_only);
	}
	if (o->json) {
		json_object_end(&j);
		printf("\n");
	}
	return nr ? EXIT_FAILED : EXIT_DONE;
}

static int ask(const struct option_usage *usage, const struct knob_options *o)
{
	const char *words[5], **w = words;
	struct control c;
	int status;

	*w++ = o->value ? (o->export ? "set-export" : "set")
			: (o->export ? "get-export" : "get");
	if (o->export)
		*w++ = o->export;
	if (o->name)
		*w++ = o->name;
	if (o->value)
		*w++ = o->value;
	*w = NULL;
	status = control_open(&c, usage->command, o->control);
	if (status)
		return status;
	status = control_ask(&c, words);
	if (!status)
		status = print_rows(&c, o);
	control_close(&c);
	return status;
}

static int run(const struct option_usage *usage, int argc, char **argv,
	       bool needs_value)
{
	struct knob_options o = { 0 };

	switch (options_parse(usage, argc, argv, &o)) {
	case OPTIONS_HELP:
		return EXIT_DONE;
	case OPTIONS_WRONG:
		return EXIT_USAGE;
	case OPTIONS_DONE:
		break;
	}
	if (!needs_value || o.value)
		return ask(usage, &o);
	fprintf(stderr, "%s: NAME and VALUE are needed\n", usage->command);
	return EXIT_USAGE;
}

int command_get(int argc, char **argv)
{
	return run(&get_usage, argc, argv, false);
}

int command_set(int argc, char **argv)
{
	return run(&set_usage, argc, argv, true);
}

/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * tailrace trace: what a running server does, one event a line.
 *
 * Happy path: the events that were named are asked for and printed as they
 * come, as key=value or each as a JSON object, until --count of them have been
 * or the reader has enough. Failure modes: events that the server could not
 * keep are a line "lost N"; the server's end ends us too, with status 1.
 */
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/trace.h"
#include "cmd/commands.h"
#include "cmd/control.h"
#include "cmd/json.h"
#include "cmd/options.h"

struct trace_options {
	struct option_list events;
	const char *control;
	bool json, list;
	uint64_t count; /* 0: no end */
};

#define FIELD(name) offsetof(struct trace_options, name)

static const struct option_row rows[] = {
	{ "EVENT", 0, OPTION_WORDS, FIELD(events), NULL,
	  "a name, or its beginning and * (all)", NULL, 0, 0 },
	CONTROL_OPTION(FIELD(control)),
	{ "json", 0, OPTION_FLAG, FIELD(json), NULL,
	  "print each event as a JSON document", NULL, 0, 0 },
	{ "count", 0, OPTION_COUNT, FIELD(count), "N",
	  "end after N events (no end)", NULL, 1, UINT32_MAX },
	{ "list", 0, OPTION_FLAG, FIELD(list), NULL,
	  "print the names of all events and end", NULL, 0, 0 },
};

static const struct option_usage usage = {
	.command = "tailrace trace",
	.synopsis = "[EVENT]... [OPTION]...",
	.summary = "Show what a running server does, event by event.",
	.rows = rows,
	.nr_rows = ARRAY_SIZE(rows),
};

/* A number in decimal becomes one; all else is a string. */
static void json_field(struct json *j, char *field)
{
	char *value = strchr(field, '=');

	if (!value)
		return;
	*value++ = 0;
	if (*value && value[strspn(value, "0123456789")] == 0)
		json_int(j, field, strtoll(value, NULL, 10));
	else
		json_string(j, field, value);
}

/* "SECONDS.NANOSECONDS TID NAME key=value ..." */
static void print_json(char *line)
{
	char *save, *time = strtok_r(line, " ", &save);
	char *tid = strtok_r(NULL, " ", &save);
	char *name = strtok_r(NULL, " ", &save), *field;
	struct json j;

	if (!name)
		return;
	json_init(&j, stdout);
	json_object_start(&j, NULL);
	json_real(&j, "time", strtod(time, NULL), 9);
	json_int(&j, "tid", atoi(tid));
	json_string(&j, "event", name);
	while ((field = strtok_r(NULL, " ", &save)))
		json_field(&j, field);
	json_object_end(&j);
	printf("\n");
}

/* "lost N" */
static void print_lost(const char *line, bool json)
{
	if (json)
		printf("{\"event\":\"lost\",\"count\":%s}\n", line + 5);
	else
		printf("%s\n", line);
}

static int print_events(struct control *c, const struct trace_options *o)
{
	struct pollfd p = { .fd = STDOUT_FILENO };
	uint64_t nr = 0;
	char *line;

	while ((line = control_line(c))) {
		if (!strncmp(line, "lost ", 5))
			print_lost(line, o->json);
		else if (o->json)
			print_json(line);
		else
			printf("%s\n", line);
		/* Who reads a pipe sees each as it comes. */
		if (fflush(stdout))
			return EXIT_FAILED;
		if (strncmp(line, "lost ", 5) && ++nr == o->count)
			return EXIT_DONE;
		if (poll(&p, 1, 0) > 0 && p.revents & (POLLERR | POLLHUP))
			return EXIT_DONE;
	}
	fprintf(stderr, "%s: the server ended\n", usage.command);
	return EXIT_FAILED;
}

/* Needs no server: completion asks for it. */
static int print_names(void)
{
	for (unsigned i = 0; trace_name(i); i++)
		printf("%s\n", trace_name(i));
	return EXIT_DONE;
}

static int trace(struct control *c, const struct trace_options *o)
{
	const char *words[OPTION_LIST_MAX + 2] = { "trace", "all" };
	int status;

	for (int i = 0; i < o->events.nr; i++)
		words[i + 1] = o->events.values[i];
	status = control_ask(c, words);
	return status ? status : print_events(c, o);
}

int command_trace(int argc, char **argv)
{
	struct trace_options o = { 0 };
	struct control c;
	int status;

	switch (options_parse(&usage, argc, argv, &o)) {
	case OPTIONS_HELP:
		return EXIT_DONE;
	case OPTIONS_WRONG:
		return EXIT_USAGE;
	case OPTIONS_DONE:
		break;
	}
	if (o.list)
		return print_names();
	status = control_open(&c, usage.command, o.control);
	if (status)
		return status;
	status = trace(&c, &o);
	control_close(&c);
	return status;
}

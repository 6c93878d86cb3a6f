/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * The other end of the control socket (ctl/server.h): asking a running server.
 *
 * What goes wrong is said in one line on stderr, and the function returns the
 * program's exit status. One thread at a time.
 */
#ifndef TAILRACE_CONTROL_H
#define TAILRACE_CONTROL_H

#include "base/compiler.h"

#include <stdbool.h>
#include <stdio.h>

/* Rows of a table of options (cmd/options.h) that most who ask have. */
#define CONTROL_OPTION(field)                                                  \
	{                                                                      \
		"control", 0, OPTION_STRING, field, "SOCKET",                  \
			"the server's control socket", NULL, 0, 0              \
	}
#define CONTROL_OPTION_JSON(field)                                             \
	{                                                                      \
		"json", 0, OPTION_FLAG, field, NULL, "print a JSON document",  \
			NULL, 0, 0                                             \
	}

/* Words of a row, at most: more are none of ours. */
#define CONTROL_WORDS_MAX 8

struct control {
	const char *command; /* "tailrace stat": begins what is said */
	bool silent; /* that the server is gone is said by the caller */
	FILE *in;
	int fd;
	char *line; /* the row read last */
	size_t size; /* of line */
};

/* Connects to path, or NULL: to the first default place where a server is. */
int control_open(struct control *c, const char *command,
		 const char *path) MUST_CHECK;
void control_close(struct control *c);

/* Sends words, of which the last is NULL, and reads the first line of the
 * answer. What the server refuses is EXIT_USAGE if it is a matter of words. */
int control_ask(struct control *c, const char *const *words) MUST_CHECK;

/* The next line without its end, until the answer's end or the server's: NULL
 * then. Valid until the next one. */
char *control_line(struct control *c);

/* The words of the next line, and how many; 0 at the end, -1 if the server is
 * gone or sent nonsense, which was said. */
int control_row(struct control *c, char *words[CONTROL_WORDS_MAX]);

#endif

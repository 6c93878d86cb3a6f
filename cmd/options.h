/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Options of a subcommand: one table from which parsing and --help come.
 *
 * A row names a field of the subcommand's own structure, which holds the
 * defaults before options_parse() and what was asked for afterwards. Strings
 * point into argv. Nothing is kept between calls; any thread may call.
 */
#ifndef TAILRACE_OPTIONS_H
#define TAILRACE_OPTIONS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* Exit statuses of the program. */
enum exit_status {
	EXIT_DONE = 0,
	EXIT_FAILED = 1,
	EXIT_USAGE = 2,
	EXIT_CANNOT = 77,
};

/* The type of the field that a row names. */
enum option_type {
	OPTION_FLAG, /* bool; takes no argument */
	OPTION_COUNT, /* uint64_t */
	OPTION_SIZE, /* uint64_t, bytes; K, M, G, T */
	OPTION_TIME, /* uint64_t, milliseconds; ms, s, m */
	OPTION_CHOICE, /* int, index in choices */
	OPTION_STRING, /* const char * */
	OPTION_LIST, /* struct option_list; may be repeated */
	OPTION_WORD, /* const char *, once: a word that is no option */
	OPTION_WORDS, /* struct option_list: all further ones */
};

/* More --set than there are parameters serve nobody. */
#define OPTION_LIST_MAX 32

struct option_list {
	const char *values[OPTION_LIST_MAX];
	int nr;
};

struct option_row {
	const char *name; /* without the dashes; of a word as --help shows it */
	char letter; /* 0: none */
	enum option_type type;
	size_t field; /* offsetof() in the subcommand's structure */
	const char *argument; /* as --help shows it; NULL for a flag */
	const char *help; /* one line, with the default */
	const char *const *choices; /* ends with NULL */
	uint64_t least, most; /* of numbers; most 0: no limit */
};

struct option_usage {
	const char *command; /* "tailrace bench interleave" */
	const char *help; /* whose --help lists the options; NULL: its own */
	const char *synopsis; /* what follows the command */
	const char *summary; /* one sentence */
	const struct option_row *rows;
	int nr_rows;
};

enum option_result {
	OPTIONS_DONE,
	OPTIONS_HELP, /* --help was asked for and printed: exit 0 */
	OPTIONS_WRONG, /* a line on stderr says what and what is allowed */
};

/* argv[0] is the subcommand's name. Words that are no options only where a row
 * takes one. */
enum option_result options_parse(const struct option_usage *usage, int argc,
				 char **argv, void *out);

void options_help(const struct option_usage *usage);

/* The number, or -EINVAL and *out as it was. text is all of it. */
int parse_count(const char *text, uint64_t *out);
int parse_size(const char *text, uint64_t *out);
int parse_time(const char *text, uint64_t *out_ms);

#endif

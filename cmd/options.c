/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Parsing by table. options_parse() takes the words in order: finds each
 * one's row, takes its argument from the same word (--size=1G, -s1G) or the
 * next, and stores it in the field. The first word that does not fit ends it
 * with one line on stderr that names what is allowed; a number out of a row's
 * limits is such a word. The structure may then be half filled.
 */
#include "cmd/options.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "base/compiler.h"

/* Digits, then a suffix that the caller looks at. */
static int parse_digits(const char *text, uint64_t *out, const char **rest)
{
	uint64_t n = 0;
	const char *p = text;

	for (; *p >= '0' && *p <= '9'; p++) {
		if (__builtin_mul_overflow(n, 10, &n) ||
		    __builtin_add_overflow(n, (uint64_t)(*p - '0'), &n))
			return -EINVAL;
	}
	if (p == text)
		return -EINVAL;
	*out = n;
	*rest = p;
	return 0;
}

int parse_count(const char *text, uint64_t *out)
{
	const char *rest;
	uint64_t n;
	int err = parse_digits(text, &n, &rest);

	if (err || *rest)
		return -EINVAL;
	*out = n;
	return 0;
}

int parse_size(const char *text, uint64_t *out)
{
	static const char suffixes[] = "KMGT";
	const char *rest, *suffix;
	uint64_t n, scale = 1;
	int err = parse_digits(text, &n, &rest);

	if (err)
		return err;
	if (*rest) {
		suffix = strchr(suffixes, *rest & ~0x20);
		if (!suffix || !*suffix || rest[1])
			return -EINVAL;
		scale <<= 10 * (suffix - suffixes + 1);
	}
	if (__builtin_mul_overflow(n, scale, &n))
		return -EINVAL;
	*out = n;
	return 0;
}

int parse_time(const char *text, uint64_t *out_ms)
{
	const char *rest;
	uint64_t n, scale;
	int err = parse_digits(text, &n, &rest);

	if (err)
		return err;
	if (!strcmp(rest, "ms"))
		scale = 1;
	else if (!strcmp(rest, "s"))
		scale = 1000;
	else if (!strcmp(rest, "m"))
		scale = 60000;
	else
		return -EINVAL;
	if (__builtin_mul_overflow(n, scale, &n))
		return -EINVAL;
	*out_ms = n;
	return 0;
}

static void print_choices(FILE *f, const char *const *choices)
{
	for (int i = 0; choices[i]; i++)
		fprintf(f, "%s%s", i ? ", " : "", choices[i]);
}

static bool is_word(const struct option_row *row)
{
	return row->type == OPTION_WORD || row->type == OPTION_WORDS;
}

void options_help(const struct option_usage *usage)
{
	char left[48];
	int n;

	printf("usage: %s %s\n\n%s\n\noptions:\n", usage->command,
	       usage->synopsis, usage->summary);
	for (int i = 0; i < usage->nr_rows; i++) {
		const struct option_row *row = &usage->rows[i];

		if (is_word(row)) {
			printf("  %-26s%s\n", row->name, row->help);
			continue;
		}
		n = row->letter ? snprintf(left, sizeof(left), "-%c, --%s",
					   row->letter, row->name)
				: snprintf(left, sizeof(left), "    --%s",
					   row->name);
		if (row->argument)
			snprintf(left + n, sizeof(left) - (size_t)n, " %s",
				 row->argument);
		printf("  %-26s%s%s\n", left,
		       strlen(left) > 25 ? "\n                            "
					 : "",
		       row->help);
	}
	printf("  %-26s%s\n", "-h, --help", "show this and exit");
}

/* Ends in a line like: tailrace bench stream: --size: '12X' is not a size ... */
static int wrong_value(const struct option_usage *usage,
		       const struct option_row *row, const char *value)
{
	static const char *const kinds[] = {
		[OPTION_COUNT] = "a number",
		[OPTION_SIZE] = "a size (digits, then K, M, G or T)",
		[OPTION_TIME] = "a time (digits, then ms, s or m)",
		[OPTION_CHOICE] = "one of ",
		[OPTION_LIST] = "accepted: too many",
	};

	fprintf(stderr, "%s: --%s: '%s' is not %s", usage->command, row->name,
		value, kinds[row->type]);
	if (row->type == OPTION_CHOICE)
		print_choices(stderr, row->choices);
	else if (row->most)
		fprintf(stderr, " from %ju to %ju", (uintmax_t)row->least,
			(uintmax_t)row->most);
	else if (row->least)
		fprintf(stderr, " of at least %ju", (uintmax_t)row->least);
	fputc('\n', stderr);
	return -EINVAL;
}

static int store_number(const struct option_usage *usage,
			const struct option_row *row, const char *value,
			uint64_t *field)
{
	uint64_t n;
	int err;

	if (row->type == OPTION_SIZE)
		err = parse_size(value, &n);
	else if (row->type == OPTION_TIME)
		err = parse_time(value, &n);
	else
		err = parse_count(value, &n);
	if (err || n < row->least || (row->most && n > row->most))
		return wrong_value(usage, row, value);
	*field = n;
	return 0;
}

static int store_list(struct option_list *list, const char *value)
{
	if (list->nr == OPTION_LIST_MAX)
		return -ENOSPC;
	list->values[list->nr++] = value;
	return 0;
}

static int store_value(const struct option_usage *usage,
		       const struct option_row *row, const char *value,
		       void *out)
{
	void *field = (char *)out + row->field;

	switch (row->type) {
	case OPTION_FLAG:
		*(bool *)field = true;
		return 0;
	case OPTION_COUNT:
	case OPTION_SIZE:
	case OPTION_TIME:
		return store_number(usage, row, value, field);
	case OPTION_CHOICE:
		for (int i = 0; row->choices[i]; i++) {
			if (strcmp(row->choices[i], value))
				continue;
			*(int *)field = i;
			return 0;
		}
		return wrong_value(usage, row, value);
	case OPTION_STRING:
	case OPTION_WORD:
		*(const char **)field = value;
		return 0;
	case OPTION_LIST:
	case OPTION_WORDS:
		return store_list(field, value) ? wrong_value(usage, row, value)
						: 0;
	}
	return -EINVAL;
}

/* The row of --name, --name=value, -x or -xvalue; *value is what the word
 * itself carries, or NULL. */
static const struct option_row *find_row(const struct option_usage *usage,
					 const char *word, const char **value)
{
	const char *equals = strchr(word, '=');
	size_t len = equals ? (size_t)(equals - word) : strlen(word);

	for (int i = 0; i < usage->nr_rows; i++) {
		const struct option_row *row = &usage->rows[i];

		if (is_word(row))
			continue;
		if (word[1] == '-') {
			if (strlen(row->name) != len - 2 ||
			    strncmp(row->name, word + 2, len - 2))
				continue;
			*value = equals ? equals + 1 : NULL;
			return row;
		}
		if (row->letter && row->letter == word[1]) {
			*value = word[2] ? word + 2 : NULL;
			return row;
		}
	}
	return NULL;
}

static enum option_result wrong_word(const struct option_usage *usage,
				     const char *word, const char *what)
{
	fprintf(stderr, "%s: %s '%s'; '%s --help' lists the options\n",
		usage->command, what, word, usage->help ?: usage->command);
	return OPTIONS_WRONG;
}

/* Stores a word that is no option; false if no row takes it, or not again. */
static bool take_word(const struct option_usage *usage, const char *word,
		      void *out)
{
	for (int i = 0; i < usage->nr_rows; i++) {
		const struct option_row *row = &usage->rows[i];
		const char **field = (void *)((char *)out + row->field);

		if (row->type == OPTION_WORDS)
			return !store_list((void *)field, word);
		if (row->type != OPTION_WORD || *field)
			continue;
		*field = word;
		return true;
	}
	return false;
}

enum option_result options_parse(const struct option_usage *usage, int argc,
				 char **argv, void *out)
{
	for (int i = 1; i < argc; i++) {
		const struct option_row *row;
		const char *value, *word = argv[i];

		if (!strcmp(word, "--help") || !strcmp(word, "-h")) {
			options_help(usage);
			return OPTIONS_HELP;
		}
		if ((word[0] != '-' || !word[1]) && take_word(usage, word, out))
			continue;
		if (word[0] != '-' || !word[1])
			return wrong_word(usage, word, "unexpected word");
		row = find_row(usage, word, &value);
		if (!row)
			return wrong_word(usage, word, "unknown option");
		if (row->type == OPTION_FLAG && value)
			return wrong_word(usage, word, "no value goes with");
		if (row->type != OPTION_FLAG && !value) {
			if (i + 1 == argc)
				return wrong_word(usage, word,
						  "a value is missing after");
			value = argv[++i];
		}
		if (store_value(usage, row, value, out))
			return OPTIONS_WRONG;
	}
	return OPTIONS_DONE;
}

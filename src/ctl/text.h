/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * Text of the control protocol: a buffer that grows to a limit, and words.
 *
 * Words are separated by single spaces. Within a word a space, a backslash and
 * every control character is written as a backslash and three octal digits, as
 * in exports(5), so that a word can be any string. One thread at a time.
 */
#ifndef TR_CTL_TEXT_H
#define TR_CTL_TEXT_H

#include "base/compiler.h"

#include <stdbool.h>

struct text {
	char *data;
	size_t len;
	size_t size; /* of data */
	size_t max; /* len never exceeds it */
	bool full; /* something did not fit, or no memory; nothing is added */
};

void text_init(struct text *t, size_t max);
void text_fini(struct text *t);
/* Empty again; keeps the memory. */
void text_clear(struct text *t);

/* Takes away the first len bytes. */
void text_drop(struct text *t, size_t len);

/* Adds all of it, or nothing and sets full. */
void text_add(struct text *t, const char *data, size_t len);
void text_printf(struct text *t, const char *fmt, ...) PRINTF(2, 3);
/* Adds a word, with escapes; "" becomes \000. */
void text_word(struct text *t, const char *word);

/*
 * Splits line in place into words without escapes. Returns how many, -E2BIG
 * for more than max, -EINVAL for an empty word or a wrong escape.
 */
int text_split(char *line, char **words, int max) MUST_CHECK;

#endif

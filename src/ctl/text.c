/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * Text and words. Failure modes: a text that does not fit is full from then on,
 * so that who writes many rows looks once, at the end.
 */
#include "ctl/text.h"

#include "base/mem.h"

#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#define TEXT_SIZE_MIN 4096

void text_init(struct text *t, size_t max)
{
	*t = (struct text){ .max = max };
}

void text_fini(struct text *t)
{
	mem_free(t->data);
	*t = (struct text){ 0 };
}

void text_clear(struct text *t)
{
	t->len = 0;
	t->full = false;
}

void text_drop(struct text *t, size_t len)
{
	t->len -= len;
	if (len && t->len)
		memmove(t->data, t->data + len, t->len);
}

static bool grow(struct text *t, size_t len)
{
	size_t size = max_of(t->size, (size_t)TEXT_SIZE_MIN);
	char *data;

	if (t->full || len > t->max - t->len) {
		t->full = true;
		return false;
	}
	while (size < t->len + len)
		size *= 2;
	if (size == t->size)
		return true;
	data = mem_alloc(size);
	if (!data) {
		t->full = true;
		return false;
	}
	if (t->len)
		memcpy(data, t->data, t->len);
	mem_free(t->data);
	t->data = data;
	t->size = size;
	return true;
}

void text_add(struct text *t, const char *data, size_t len)
{
	if (!grow(t, len))
		return;
	memcpy(t->data + t->len, data, len);
	t->len += len;
}

void text_printf(struct text *t, const char *fmt, ...)
{
	char buf[1024];
	va_list ap;
	int len;

	va_start(ap, fmt);
	len = vsnprintf(buf, sizeof(buf), fmt, ap);
	va_end(ap);
	if (len < 0 || (size_t)len >= sizeof(buf))
		t->full = true;
	else
		text_add(t, buf, (size_t)len);
}

void text_word(struct text *t, const char *word)
{
	const char *p;

	if (!word[0])
		text_add(t, "\\000", 4);
	for (p = word; *p; p++) {
		unsigned char byte = (unsigned char)*p;

		if (byte <= ' ' || byte == '\\' || byte == 0x7f)
			text_printf(t, "\\%03o", byte);
		else
			text_add(t, p, 1);
	}
}

/* Takes the escapes out of a word in place. */
static int unescape(char *word)
{
	char *from = word, *to = word;
	unsigned value;
	int i;

	while (*from) {
		if (*from != '\\') {
			*to++ = *from++;
			continue;
		}
		value = 0;
		for (i = 1; i <= 3; i++) {
			if (from[i] < '0' || from[i] > '7')
				return -EINVAL;
			value = value * 8 + (unsigned)(from[i] - '0');
		}
		if (value > 0xff)
			return -EINVAL;
		*to++ = (char)value;
		from += 4;
	}
	*to = 0;
	return 0;
}

int text_split(char *line, char **words, int max)
{
	char *space, *at = line;
	int nr = 0;

	for (;;) {
		space = strchr(at, ' ');
		if (space)
			*space = 0;
		if (nr == max)
			return -E2BIG;
		if (!*at || unescape(at))
			return -EINVAL;
		words[nr++] = at;
		if (!space)
			return nr;
		at = space + 1;
	}
}

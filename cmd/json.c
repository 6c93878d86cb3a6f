/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * JSON out. Every value goes through json_key(), which puts the comma and the
 * key; an object or array start clears "follows", its end sets it again.
 */
#include "cmd/json.h"

#include <math.h>

void json_init(struct json *j, FILE *f)
{
	*j = (struct json){ .f = f };
}

static void put_string(FILE *f, const char *s)
{
	fputc('"', f);
	for (; *s; s++) {
		if (*s == '"' || *s == '\\')
			fprintf(f, "\\%c", *s);
		else if ((unsigned char)*s < 0x20)
			fprintf(f, "\\u%04x", (unsigned)*s);
		else
			fputc(*s, f);
	}
	fputc('"', f);
}

static void json_key(struct json *j, const char *key)
{
	if (j->follows)
		fputc(',', j->f);
	j->follows = true;
	if (!key)
		return;
	put_string(j->f, key);
	fputc(':', j->f);
}

void json_object_start(struct json *j, const char *key)
{
	json_key(j, key);
	fputc('{', j->f);
	j->follows = false;
}

void json_object_end(struct json *j)
{
	fputc('}', j->f);
	j->follows = true;
}

void json_array_start(struct json *j, const char *key)
{
	json_key(j, key);
	fputc('[', j->f);
	j->follows = false;
}

void json_array_end(struct json *j)
{
	fputc(']', j->f);
	j->follows = true;
}

void json_string(struct json *j, const char *key, const char *value)
{
	json_key(j, key);
	put_string(j->f, value);
}

void json_int(struct json *j, const char *key, int64_t value)
{
	json_key(j, key);
	fprintf(j->f, "%jd", (intmax_t)value);
}

void json_real(struct json *j, const char *key, double value, int decimals)
{
	json_key(j, key);
	if (isfinite(value))
		fprintf(j->f, "%.*f", decimals, value);
	else
		fputs("null", j->f);
}

void json_bool(struct json *j, const char *key, bool value)
{
	json_key(j, key);
	fputs(value ? "true" : "false", j->f);
}

void json_null(struct json *j, const char *key)
{
	json_key(j, key);
	fputs("null", j->f);
}

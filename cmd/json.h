/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Writes one JSON document to a stream, piece by piece: commas, quotes and
 * escapes are its business. key is NULL inside arrays and for the document
 * itself. A number that is not finite becomes null. Errors are the stream's:
 * see ferror(3). One thread at a time.
 */
#ifndef TAILRACE_JSON_H
#define TAILRACE_JSON_H

#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>

struct json {
	FILE *f;
	bool follows; /* something stands before in this object or array */
};

void json_init(struct json *j, FILE *f);
void json_object_start(struct json *j, const char *key);
void json_object_end(struct json *j);
void json_array_start(struct json *j, const char *key);
void json_array_end(struct json *j);
void json_string(struct json *j, const char *key, const char *value);
void json_int(struct json *j, const char *key, int64_t value);
/* With that many decimals. */
void json_real(struct json *j, const char *key, double value, int decimals);
void json_bool(struct json *j, const char *key, bool value);
void json_null(struct json *j, const char *key);

#endif

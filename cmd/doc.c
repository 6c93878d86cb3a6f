/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Reading and printing the server's statistics. Every row is kept as it came;
 * the document's form follows from the rows, so that what a newer server tells
 * is printed too.
 */
#include "cmd/doc.h"

#include <stdlib.h>
#include <string.h>

#include "base/compiler.h"
#include "cmd/json.h"
#include "cmd/options.h"

static int take_row(struct doc *doc, char **words, int nr)
{
	size_t level = strspn(words[0], "@");
	struct doc_row *rows, *row;

	if (!(doc->nr & (doc->nr - 1))) {
		rows = realloc(doc->rows,
			       (doc->nr ? 2 * doc->nr : 1) * sizeof(*rows));
		if (!rows)
			return -1;
		doc->rows = rows;
	}
	row = &doc->rows[doc->nr++];
	*row = (struct doc_row){ .level = (int)level,
				 .name = strdup(words[0] + level),
				 .value = nr > 1 ? strdup(words[1]) : NULL,
				 .unit = nr > 2 ? strdup(words[2]) : NULL };
	/* A value has all three. */
	return row->name && (level || nr > 2) && (nr < 2 || row->value) &&
			       (nr < 3 || row->unit)
		       ? 0
		       : -1;
}

int doc_read(struct control *c, struct doc *out)
{
	static const char *const words[] = { "stat", NULL };
	char *row[CONTROL_WORDS_MAX];
	int nr, status = control_ask(c, words);

	*out = (struct doc){ 0 };
	while (!status && (nr = control_row(c, row))) {
		if (nr < 0) {
			status = EXIT_FAILED;
		} else if (take_row(out, row, nr)) {
			fprintf(stderr, "%s: the answer is not understood\n",
				c->command);
			status = EXIT_FAILED;
		}
	}
	if (status)
		doc_free(out);
	return status;
}

void doc_free(struct doc *doc)
{
	for (size_t i = 0; i < doc->nr; i++) {
		free(doc->rows[i].name);
		free(doc->rows[i].value);
		free(doc->rows[i].unit);
	}
	free(doc->rows);
	*doc = (struct doc){ 0 };
}

/* ---- JSON ---- */

/* A string: numbers of JSON lose bits above 2^53. */
static void json_hex(struct json *j, const struct doc_row *row)
{
	char hex[24];

	snprintf(hex, sizeof(hex), "0x%llx", strtoull(row->value, NULL, 10));
	json_string(j, row->name, hex);
}

static void json_value(struct json *j, const struct doc_row *row)
{
	if (!strcmp(row->unit, "text"))
		json_string(j, row->name, row->value);
	else if (!strcmp(row->unit, "bool"))
		json_bool(j, row->name, row->value[0] == 'Y');
	else if (!strcmp(row->unit, "hex"))
		json_hex(j, row);
	else
		json_int(j, row->name, strtoll(row->value, NULL, 10));
}

/* Ends what the row before left open, down to the level of a new section. */
static void json_close(struct json *j, const char *open[3], int level,
		       const struct doc_row *next)
{
	for (int l = 2; l >= level; l--) {
		if (!open[l])
			continue;
		json_object_end(j);
		if (l == level && next && next->value &&
		    !strcmp(open[l], next->name))
			return;
		/* A single section has no array around it. */
		if (open[l][0])
			json_array_end(j);
		open[l] = NULL;
	}
}

static void json_section(struct json *j, const char *open[3],
			 const struct doc_row *row)
{
	json_close(j, open, row->level, row);
	if (!row->value) {
		json_object_start(j, row->name);
		open[row->level] = "";
		return;
	}
	if (!open[row->level])
		json_array_start(j, row->name);
	open[row->level] = row->name;
	json_object_start(j, NULL);
	json_string(j, "name", row->value);
}

void doc_json(const struct doc *doc, FILE *f)
{
	static const char *const lists[] = { "bdi", "wb", "exports",
					     "clients" };
	const char *open[3] = { NULL };
	struct json j;

	json_init(&j, f);
	json_object_start(&j, NULL);
	for (size_t i = 0; i < doc->nr; i++) {
		const struct doc_row *row = &doc->rows[i];

		if (!row->level)
			json_value(&j, row);
		else if (row->level <= 2)
			json_section(&j, open, row);
	}
	json_close(&j, open, 1, NULL);
	/* Who reads these need not ask whether they are there. */
	for (size_t i = 0; i < ARRAY_SIZE(lists); i++) {
		if (doc_next(doc, NULL, 1, lists[i]))
			continue;
		json_array_start(&j, lists[i]);
		json_array_end(&j);
	}
	json_object_end(&j);
	fputc('\n', f);
}

/* ---- looking ---- */

const struct doc_row *doc_next(const struct doc *doc, const struct doc_row *at,
			       int level, const char *kind)
{
	const struct doc_row *end = doc->rows + doc->nr;

	for (at = at ? at + 1 : doc->rows; at < end; at++) {
		if (at->level && at->level < level)
			return NULL;
		if (at->level == level && !strcmp(at->name, kind))
			return at;
	}
	return NULL;
}

const struct doc_row *doc_find(const struct doc *doc, const char *kind,
			       const char *name)
{
	const struct doc_row *at = NULL;

	while ((at = doc_next(doc, at, 1, kind)))
		if (!name || !at->value || !strcmp(at->value, name))
			return at;
	return NULL;
}

uint64_t doc_number(const struct doc *doc, const struct doc_row *section,
		    const char *name)
{
	const struct doc_row *row;

	if (!section)
		return 0;
	for (row = section + 1; row < doc->rows + doc->nr && !row->level; row++)
		if (!strcmp(row->name, name))
			return strtoull(row->value, NULL, 10);
	return 0;
}

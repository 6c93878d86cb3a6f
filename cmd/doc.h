/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * A server's statistics as a document: sections with rows (ctl/stat.h).
 */
#ifndef TAILRACE_DOC_H
#define TAILRACE_DOC_H

#include "cmd/control.h"

#include <stdint.h>

struct doc_row {
	/* 0: a value; 1: begins a section; 2: begins one within it. */
	int level;
	char *name; /* of the value, or the kind of section */
	char *value; /* or the section's name; NULL: it is the only one */
	char *unit; /* NULL for a section */
};

struct doc {
	struct doc_row *rows;
	size_t nr;
};

/* Asks for it; an exit status. */
int doc_read(struct control *c, struct doc *out) MUST_CHECK;
void doc_free(struct doc *doc);

/* Prints it as one JSON document: objects of single sections, arrays of the
 * others, whose elements have "name". */
void doc_json(const struct doc *doc, FILE *f);

/* The row that begins the next section of the kind behind row at (start with
 * at NULL); NULL: there is none. Level 2 ends with the section around it. */
const struct doc_row *doc_next(const struct doc *doc, const struct doc_row *at,
			       int level, const char *kind);

/* The section of that kind and name, or NULL. */
const struct doc_row *doc_find(const struct doc *doc, const char *kind,
			       const char *name);

/* A value of the section that begins at section; 0 if it is not there. */
uint64_t doc_number(const struct doc *doc, const struct doc_row *section,
		    const char *name);

#endif

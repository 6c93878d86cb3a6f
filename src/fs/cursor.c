/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * Error cursors.
 *
 * Happy path: the client's first unstable write notes how many errors there
 * were; its COMMITs compare. When slots run out one is given up, and from then
 * on a client without a cursor is told of the last error: twice rather than
 * never.
 */
#include "fs/cursor.h"

#include <string.h>

static struct cursor *find(struct cursors *c, const uint8_t client[16])
{
	int i;

	for (i = 0; i < CURSORS_MAX; i++)
		if (c->slots[i].used && !memcmp(c->slots[i].client, client, 16))
			return &c->slots[i];
	return NULL;
}

static struct cursor *add(struct cursors *c, const uint8_t client[16])
{
	struct cursor *k = &c->slots[c->hand++ % CURSORS_MAX];

	if (k->used && k->seen != c->errors)
		c->overflowed = true;
	memcpy(k->client, client, 16);
	k->used = true;
	return k;
}

void cursor_start(struct cursors *c, const uint8_t client[16])
{
	if (!find(c, client))
		add(c, client)->seen = c->errors;
}

void cursor_error(struct cursors *c, int error)
{
	c->errors++;
	c->error = error;
	/* Cursors given up before now belonged to writers owed this error. */
	if (c->hand > CURSORS_MAX)
		c->overflowed = true;
}

int cursor_check(struct cursors *c, const uint8_t client[16])
{
	struct cursor *k = find(c, client);

	if (!k) {
		if (!c->overflowed)
			return 0;
		k = add(c, client);
		k->seen = 0;
	}
	if (k->seen == c->errors)
		return 0;
	k->seen = c->errors;
	return c->error;
}

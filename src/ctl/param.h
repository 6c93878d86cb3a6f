/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * Everything that can be set while the server runs, by name: the I/O knobs of
 * the server and of each export, and the parameters of the cache.
 *
 * Rows are words: NAME VALUE UNIT, and for an export's knob the value that is
 * in force. UNIT is "bool" (then VALUE is Y or N), "number", or a parameter's.
 * Any thread may call; two who set at once both have their way, in some order.
 */
#ifndef TR_CTL_PARAM_H
#define TR_CTL_PARAM_H

#include "ctl/text.h"
#include "fs/server.h"

#define PARAM_ERROR_MAX 256

/*
 * Adds the row of name, or of all if name is NULL. export: the path of one, or
 * NULL for the server and the cache. -ENOENT: no such export or name, and error
 * says so.
 */
int param_get(struct fs_server *fs, const char *export, const char *name,
	      struct text *out, char error[PARAM_ERROR_MAX]) MUST_CHECK;

/*
 * Sets one, and adds a row for each that has another value now. Sizes take K,
 * M, G, T, times ms, s, m. -ENOENT as above; -EINVAL: the value, and nothing
 * changed; error says what is allowed. out may be NULL.
 */
int param_set(struct fs_server *fs, const char *export, const char *name,
	      const char *value, struct text *out,
	      char error[PARAM_ERROR_MAX]) MUST_CHECK;

#endif

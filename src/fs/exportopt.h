/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * The options of one export, one table row each. Pure; any thread.
 */
#ifndef TR_FS_EXPORTOPT_H
#define TR_FS_EXPORTOPT_H

#include "fs/exports.h"

/* exports(5)'s: ro, sync, secure, root_squash, anonymous 65534. */
extern const struct export_options export_options_default;

/*
 * Applies one option to the client's options or, where it belongs to the whole
 * export, to e. -EINVAL with a message that names what is allowed.
 */
int export_option_set(struct export_options *o, struct export_entry *e,
		      const char *word, char *error, size_t len);

#endif

/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * What may be a name: one component, never a path. Pure.
 */
#ifndef TR_FS_NAMECHECK_H
#define TR_FS_NAMECHECK_H

#include <errno.h>
#include <stdbool.h>
#include <string.h>

/* NAME_MAX of every host file system. */
#define NAMECHECK_MAX 255

/* 0, -EINVAL: empty or with a slash; -ENAMETOOLONG. */
static inline int name_check(const char *name)
{
	size_t len = strlen(name);

	if (!len || memchr(name, '/', len))
		return -EINVAL;
	return len > NAMECHECK_MAX ? -ENAMETOOLONG : 0;
}

static inline bool name_is_dots(const char *name)
{
	return !strcmp(name, ".") || !strcmp(name, "..");
}

#endif

/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * Lines for the administrator, to stderr (with the <N> prefix that journald
 * reads when it is its stream). Libraries do not log on their own account:
 * whoever decides what happens next says it, once.
 */
#ifndef TR_BASE_LOG_H
#define TR_BASE_LOG_H

#include "base/compiler.h"

enum log_level { LOG_ERROR, LOG_WARNING, LOG_NOTICE, LOG_INFO, LOG_DEBUG };

void log_set_level(enum log_level max);
/* fn, if given, receives the finished line instead of stderr. */
void log_set_sink(void (*fn)(enum log_level level, const char *line, void *arg),
		  void *arg);
void log_line(enum log_level level, const char *fmt, ...) PRINTF(2, 3);

#endif

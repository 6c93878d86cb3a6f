/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * Log lines: formatted on the stack, written by one write(2) each, so lines of
 * several threads do not mix and no lock is needed.
 *
 * A line longer than LOG_LINE_MAX is cut. A line that cannot be written is
 * lost: there is nowhere to say so.
 */
#include "base/log.h"

#include <stdarg.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

/* journald's own limit is far above; a line is for one screen. */
#define LOG_LINE_MAX 1024

typedef void log_sink(enum log_level level, const char *line, void *arg);

static struct {
	atomic_int max;
	_Atomic(log_sink *) sink;
	_Atomic(void *) arg;
} log_state = { .max = LOG_INFO };

void log_set_level(enum log_level max)
{
	atomic_store(&log_state.max, (int)max);
}

void log_set_sink(log_sink *fn, void *arg)
{
	/* Lines logged meanwhile go to stderr rather than to a wrong arg. */
	atomic_store(&log_state.sink, NULL);
	atomic_store(&log_state.arg, arg);
	atomic_store(&log_state.sink, fn);
}

/* Whether stderr is the stream that systemd gave us (systemd.exec(5)). */
static bool log_to_journal(void)
{
	const char *stream = getenv("JOURNAL_STREAM");
	unsigned long long dev, ino;
	struct stat st;

	if (!stream || sscanf(stream, "%llu:%llu", &dev, &ino) != 2)
		return false;
	return !fstat(STDERR_FILENO, &st) && st.st_dev == dev &&
	       st.st_ino == ino;
}

void log_line(enum log_level level, const char *fmt, ...)
{
	/* syslog(3)'s numbers, what journald's prefix means. */
	static const char priority[] = { '3', '4', '5', '6', '7' };
	log_sink *sink;
	char line[LOG_LINE_MAX];
	size_t prefix = 0;
	ssize_t n;
	va_list ap;

	if ((int)level >
	    atomic_load_explicit(&log_state.max, memory_order_relaxed))
		return;
	sink = atomic_load(&log_state.sink);
	if (!sink && log_to_journal()) {
		line[0] = '<';
		line[1] = priority[level];
		line[2] = '>';
		prefix = 3;
	}
	va_start(ap, fmt);
	/* One byte is kept for the newline. */
	vsnprintf(line + prefix, sizeof(line) - prefix - 1, fmt, ap);
	va_end(ap);
	if (sink) {
		sink(level, line, atomic_load(&log_state.arg));
		return;
	}
	strcat(line, "\n");
	n = write(STDERR_FILENO, line, strlen(line));
	(void)n;
}

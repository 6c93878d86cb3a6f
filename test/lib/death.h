/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Tests of what aborts: done in a child process, whose last words are read.
 * Called while the process has one thread.
 */
#ifndef TR_TEST_DEATH_H
#define TR_TEST_DEATH_H

#include <stdbool.h>

/*
 * Whether fn(arg), in a child, ends by SIGABRT and writes words to stderr.
 * What it wrote is shown if not.
 */
bool death_of(void (*fn)(void *arg), void *arg, const char *words);

#endif

/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * The leak check: a test ends with the file descriptors that it began with.
 * Memory is LeakSanitizer's business, threads are ThreadSanitizer's. Called
 * before a test makes threads and after it has joined them.
 */
#ifndef TR_TEST_LEAK_H
#define TR_TEST_LEAK_H

#define LEAK_FD_MAX 1024 /* descriptors looked at: the usual RLIMIT_NOFILE */

struct leak {
	unsigned char open[LEAK_FD_MAX];
};

/* Remembers what is open now. */
void leak_start(struct leak *leak);

/* Names on stderr what was opened since and is still there; returns how many. */
unsigned leak_end(const struct leak *leak);

/* The same as the set-up and tear-down of a cmocka group. */
int leak_setup(void **state);
int leak_check(void **state);

#endif

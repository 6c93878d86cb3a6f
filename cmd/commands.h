/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * The subcommands. Each takes its own words (argv[0] is its name) and returns
 * the program's exit status; what it prints on failure is one line on stderr.
 */
#ifndef TAILRACE_COMMANDS_H
#define TAILRACE_COMMANDS_H

int command_bench(int argc, char **argv);
int command_get(int argc, char **argv);
int command_serve(int argc, char **argv);
int command_set(int argc, char **argv);
int command_stat(int argc, char **argv);
int command_top(int argc, char **argv);
int command_trace(int argc, char **argv);

#endif

/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * tailrace: finds the subcommand's row and calls it. Nothing else happens
 * here; an unknown word is exit status 2 with the words that are known.
 */
#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>

#include "base/compiler.h"
#include "cmd/commands.h"
#include "cmd/options.h"

struct command {
	const char *name;
	const char *summary;
	int (*run)(int argc, char **argv);
};

/* One line a subcommand, so that branches merge. */
static const struct command commands[] = {
	{ "bench", "measure against this machine's kernel", command_bench },
	{ "get", "show parameters of a running server", command_get },
	{ "serve", "serve directories over NFS", command_serve },
	{ "set", "set a parameter of a running server", command_set },
	{ "stat", "show what a running server counts", command_stat },
	{ "top", "watch a running server", command_top },
	{ "trace", "show what a running server does", command_trace },
};

static void print_help(void)
{
	printf("usage: tailrace COMMAND [OPTION]...\n\n"
	       "Kernel-grade storage in user space.\n\ncommands:\n");
	for (size_t i = 0; i < ARRAY_SIZE(commands); i++)
		printf("  %-10s %s\n", commands[i].name, commands[i].summary);
	printf("\n'tailrace COMMAND --help' lists a command's options.\n");
}

static int wrong_command(const char *word)
{
	if (word)
		fprintf(stderr, "tailrace: unknown command '%s'; one of", word);
	else
		fprintf(stderr, "tailrace: a command is missing: one of");
	for (size_t i = 0; i < ARRAY_SIZE(commands); i++)
		fprintf(stderr, "%s %s", i ? "," : "", commands[i].name);
	fprintf(stderr, "\n");
	return EXIT_USAGE;
}

/* What was printed must have arrived: a full disk is a failure. */
static int end_output(int status)
{
	if (!fflush(stdout) && !ferror(stdout))
		return status;
	fprintf(stderr, "tailrace: standard output: %s\n", strerror(errno));
	return status ? status : EXIT_FAILED;
}

int main(int argc, char **argv)
{
	/* A limit of file sizes is an error of the write that meets it. */
	signal(SIGXFSZ, SIG_IGN);
	if (argc < 2)
		return wrong_command(NULL);
	if (!strcmp(argv[1], "--help") || !strcmp(argv[1], "-h")) {
		print_help();
		return end_output(EXIT_DONE);
	}
	if (!strcmp(argv[1], "--version")) {
		printf("tailrace %s\n", TAILRACE_VERSION);
		return EXIT_DONE;
	}
	for (size_t i = 0; i < ARRAY_SIZE(commands); i++) {
		if (!strcmp(commands[i].name, argv[1]))
			return end_output(commands[i].run(argc - 1, argv + 1));
	}
	return wrong_command(argv[1]);
}

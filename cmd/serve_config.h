/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * What `tailrace serve` was asked to do: the command line and the
 * configuration file, which has the same words.
 */
#ifndef TAILRACE_SERVE_CONFIG_H
#define TAILRACE_SERVE_CONFIG_H

#include "cmd/options.h"

struct serve_options {
	const char *dir;
	struct option_list exports; /* DIR[:OPTIONS] */
	const char *exports_file;
	const char *config;
	uint64_t port, mount_port; /* SERVE_PORT_DEFAULT: not given */
	struct option_list listen;
	uint64_t cache; /* bytes; 0: the library's default */
	int io; /* enum tr_engine */
	const char *state;
	bool daemon;
	const char *control; /* path of the control socket; NULL: default */
	struct option_list set; /* NAME=VALUE */
};

#define SERVE_PORT_DEFAULT 65536u

extern const struct option_usage serve_usage;

/*
 * Parses the words, and the file that -c names before them, so that words win.
 * Strings are kept for the life of the process. Anything but OPTIONS_DONE:
 * what there is to say was said.
 */
enum option_result serve_config_parse(int argc, char **argv,
				      struct serve_options *out);

#endif

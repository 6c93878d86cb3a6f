/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * The options of `tailrace serve`.
 *
 * Happy path: the words are parsed once to find -c; then the file's settings,
 * each as if it were the option of its name, and the words again over them.
 * Lists add up. The file has one section, [serve].
 *
 * Failure modes: one line that names the word, or file and line, and what is
 * allowed.
 */
#include "cmd/serve_config.h"

#include <ini.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/compiler.h"

static const char *const engines[] = { "auto", "uring", "threads", NULL };

#define FIELD(name) offsetof(struct serve_options, name)

static const struct option_row rows[] = {
	{ "DIR", 0, OPTION_WORD, FIELD(dir), NULL,
	  "export it read-write to this machine", NULL, 0, 0 },
	{ "export", 0, OPTION_LIST, FIELD(exports), "DIR[:OPTIONS]",
	  "export it; options as in exports(5), and client=NAME", NULL, 0, 0 },
	{ "exports", 0, OPTION_STRING, FIELD(exports_file), "FILE",
	  "read exports from FILE, in exports(5) syntax", NULL, 0, 0 },
	{ "config", 'c', OPTION_STRING, FIELD(config), "FILE",
	  "read these options from FILE, section [serve]", NULL, 0, 0 },
	{ "port", 'p', OPTION_COUNT, FIELD(port), "PORT",
	  "NFS port (2049; 12049 when not root; 0: any)", NULL, 0, 65535 },
	{ "mount-port", 0, OPTION_COUNT, FIELD(mount_port), "PORT",
	  "MOUNT port (20048 with 2049, else one more)", NULL, 0, 65535 },
	{ "listen", 0, OPTION_LIST, FIELD(listen), "ADDR",
	  "listen there (this machine; all if exports are named)", NULL, 0, 0 },
	{ "cache", 0, OPTION_SIZE, FIELD(cache), "SIZE",
	  "memory for the cache (a quarter, at most 4G)", NULL, 4 << 20, 0 },
	{ "io", 0, OPTION_CHOICE, FIELD(io), "ENGINE",
	  "auto, uring or threads (auto)", engines, 0, 0 },
	{ "state", 0, OPTION_STRING, FIELD(state), "DIR",
	  "where the key of file handles is kept", NULL, 0, 0 },
	{ "control", 0, OPTION_STRING, FIELD(control), "SOCKET",
	  "control socket ($XDG_RUNTIME_DIR or /run, tailrace/control)", NULL,
	  0, 0 },
	{ "daemon", 0, OPTION_FLAG, FIELD(daemon), NULL,
	  "go to the background when ready", NULL, 0, 0 },
	{ "set", 0, OPTION_LIST, FIELD(set), "NAME=VALUE",
	  "set a parameter, see tailrace-parameters(7)", NULL, 0, 0 },
};

const struct option_usage serve_usage = {
	.command = "tailrace serve",
	.synopsis = "[DIR] [OPTION]...",
	.summary = "Serve directories over NFS.",
	.rows = rows,
	.nr_rows = ARRAY_SIZE(rows),
};

/* ---- the file ---- */

struct reading {
	const char *file;
	FILE *stream;
	int line; /* that was read last */
	struct serve_options *out;
	bool said; /* a message was printed */
};

static char *read_line(char *buf, int size, void *arg)
{
	struct reading *r = arg;
	char *line = fgets(buf, size, r->stream);

	r->line++;
	return line;
}

static int said(struct reading *r, const char *what, const char *word)
{
	fprintf(stderr, "%s:%d: %s '%s'\n", r->file, r->line, what, word);
	r->said = true;
	return 0;
}

static bool is_flag(const char *name)
{
	size_t i;

	for (i = 0; i < ARRAY_SIZE(rows); i++)
		if (rows[i].type == OPTION_FLAG && !strcmp(rows[i].name, name))
			return true;
	return false;
}

/* inih wants 1 for a good line. Memory of strings lives as long as we do. */
static int take_setting(void *arg, const char *section, const char *name,
			const char *value)
{
	struct reading *r = arg;
	char place[4096], *word, *words[2] = { place, NULL };
	struct option_usage usage = serve_usage;

	if (strcmp(section, "serve"))
		return said(r, "section [serve] is allowed, not", section);
	if (!strcmp(name, "config"))
		return said(r, "not allowed in a file:", name);
	if (is_flag(name)) {
		if (!strcmp(value, "no"))
			return 1;
		if (strcmp(value, "yes"))
			return said(r, "yes or no is allowed, not", value);
	}
	if (asprintf(&word, is_flag(name) ? "--%s" : "--%s=%s", name, value) <
	    0)
		return said(r, "out of memory at", name);
	snprintf(place, sizeof(place), "%s:%d", r->file, r->line);
	usage.command = place;
	usage.help = serve_usage.command;
	words[1] = word;
	r->said = options_parse(&usage, 2, words, r->out) != OPTIONS_DONE;
	return !r->said;
}

static enum option_result read_config(const char *file,
				      struct serve_options *out)
{
	struct reading r = { .file = file, .out = out };
	int ret;

	r.stream = fopen(file, "re");
	if (!r.stream) {
		fprintf(stderr, "tailrace serve: %s: %m\n", file);
		return OPTIONS_WRONG;
	}
	ret = ini_parse_stream(read_line, &r, take_setting, &r);
	if (ret > 0 && !r.said)
		fprintf(stderr,
			"%s:%d: NAME = VALUE is allowed below "
			"[serve], and comments after ; or #\n",
			file, ret);
	else if (ret < 0)
		fprintf(stderr, "tailrace serve: %s: out of memory\n", file);
	fclose(r.stream);
	return ret ? OPTIONS_WRONG : OPTIONS_DONE;
}

enum option_result serve_config_parse(int argc, char **argv,
				      struct serve_options *out)
{
	const struct serve_options none = { .port = SERVE_PORT_DEFAULT,
					    .mount_port = SERVE_PORT_DEFAULT };
	struct serve_options words = none;
	enum option_result result;

	result = options_parse(&serve_usage, argc, argv, &words);
	if (result != OPTIONS_DONE)
		return result;
	*out = none;
	if (!words.config) {
		*out = words;
		return OPTIONS_DONE;
	}
	result = read_config(words.config, out);
	if (result != OPTIONS_DONE)
		return result;
	return options_parse(&serve_usage, argc, argv, out);
}

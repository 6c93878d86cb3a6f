/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Asking a server. Happy path: connect, one line there, rows back up to a line
 * that is a dot. Failure modes: no server, or one that goes away in the middle
 * of an answer, is one line on stderr and EXIT_FAILED.
 */
#include "cmd/control.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "cmd/options.h"
#include "ctl/server.h"
#include "ctl/text.h"

static int connect_somewhere(const char *path, char where[CTL_PATH_MAX])
{
	int fd = -ENOENT;

	if (path) {
		snprintf(where, CTL_PATH_MAX, "%s", path);
		return ctl_connect(path);
	}
	for (unsigned i = 0; ctl_default_path(i, where); i++) {
		fd = ctl_connect(where);
		if (fd >= 0)
			break;
	}
	return fd;
}

int control_open(struct control *c, const char *command, const char *path)
{
	char where[CTL_PATH_MAX] = "";
	int fd = connect_somewhere(path, where);

	*c = (struct control){ .command = command, .fd = fd };
	if (fd >= 0)
		c->in = fdopen(fd, "r");
	if (c->in)
		return EXIT_DONE;
	fprintf(stderr, "%s: no server at %s: %s\n", command,
		path ? path : where, strerror(fd < 0 ? -fd : errno));
	if (fd >= 0)
		close(fd);
	return EXIT_FAILED;
}

void control_close(struct control *c)
{
	if (c->in)
		fclose(c->in);
	free(c->line);
	*c = (struct control){ .fd = -1 };
}

static int gone(struct control *c)
{
	if (!c->silent)
		fprintf(stderr, "%s: the server ended the connection\n",
			c->command);
	return EXIT_FAILED;
}

static int send_all(struct control *c, const char *data, size_t len)
{
	ssize_t n;

	while (len) {
		n = send(c->fd, data, len, MSG_NOSIGNAL);
		if (n < 0 && errno == EINTR)
			continue;
		if (n < 0)
			return gone(c);
		data += n;
		len -= (size_t)n;
	}
	return EXIT_DONE;
}

char *control_line(struct control *c)
{
	ssize_t n = getline(&c->line, &c->size, c->in);

	if (n <= 0 || c->line[n - 1] != '\n')
		return NULL;
	c->line[n - 1] = 0;
	return c->line;
}

/* "ok", or "error ERRNO MESSAGE". */
static int take_status(struct control *c)
{
	char *words[CONTROL_WORDS_MAX];
	char *line = control_line(c);
	int nr, error;

	if (!line)
		return gone(c);
	if (!strcmp(line, "ok"))
		return EXIT_DONE;
	nr = text_split(line, words, CONTROL_WORDS_MAX);
	if (nr != 3 || strcmp(words[0], "error"))
		return gone(c);
	error = atoi(words[1]);
	fprintf(stderr, "%s: %s\n", c->command, words[2]);
	return error == EINVAL || error == ENOENT ? EXIT_USAGE : EXIT_FAILED;
}

int control_ask(struct control *c, const char *const *words)
{
	struct text line;
	int status;

	text_init(&line, CTL_REQUEST_MAX - 1);
	for (int i = 0; words[i]; i++) {
		if (i)
			text_add(&line, " ", 1);
		text_word(&line, words[i]);
	}
	text_add(&line, "\n", 1);
	if (line.full) {
		fprintf(stderr, "%s: the words are too long\n", c->command);
		status = EXIT_USAGE;
	} else {
		status = send_all(c, line.data, line.len);
	}
	text_fini(&line);
	return status ? status : take_status(c);
}

int control_row(struct control *c, char *words[CONTROL_WORDS_MAX])
{
	char *line = control_line(c);
	int nr = -1;

	if (line && !strcmp(line, "."))
		return 0;
	if (line)
		nr = text_split(line, words, CONTROL_WORDS_MAX);
	if (nr > 0)
		return nr;
	gone(c);
	return -1;
}

/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * The control thread.
 *
 * Happy path: poll; a line has arrived; its words find a row of the request
 * table; the answer is written into the client's buffer and sent as far as the
 * socket takes it. While an answer is not sent, nothing is read from its
 * client. While somebody traces, rings are drained every TRACE_NS.
 *
 * Failure modes: a line that is too long or not made of words is answered with
 * an error, and too long ones end the client; who does not take its answer for
 * STALL_NS is ended; when all places are taken the one that was silent longest
 * makes room.
 *
 * Invariants: a client with events chosen counts as one of the tracer's; out of
 * a client that is no reader of traces is at most one answer.
 */
#include "ctl/server.h"

#include "base/clock.h"
#include "base/log.h"
#include "base/mem.h"
#include "base/task.h"
#include "ctl/param.h"
#include "ctl/stat.h"
#include "ctl/tracer.h"

#include <assert.h>
#include <errno.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/eventfd.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <unistd.h>

/* People do not see it, and rings of 1024 do not fill in it often. */
#define TRACE_NS (20 * NS_PER_MS)
#define STALL_NS (30 * NS_PER_S)
/* When accepting fails for want of descriptors. */
#define PAUSE_NS NS_PER_S

struct client {
	int fd;
	struct text out;
	size_t sent; /* of out */
	uint64_t active_ns; /* last progress */
	bool ending; /* closed when all is sent */
	struct tracer_set traces;
	uint64_t lost; /* events since the last that was sent */
	size_t in_len;
	char in[CTL_REQUEST_MAX];
};

struct ctl {
	struct ctl_env env; /* (C) */
	char path[CTL_PATH_MAX]; /* (C) */
	ino_t ino; /* (C) of the socket */
	int listen_fd, stop_fd; /* (C) */
	struct task *task; /* (C) */
	/* The thread's own. */
	uint64_t start_ns;
	uint64_t paused_until_ns;
	struct tracer tracer;
	uint64_t trace_lost; /* trace_lost() that readers were told of */
	struct client *clients[CTL_CLIENTS_MAX];
	unsigned nr_clients;
};

/* ---- requests ---- */

struct request {
	struct ctl *ctl;
	struct client *client;
	char **words; /* without the request's own */
	int nr;
	char error[PARAM_ERROR_MAX];
};

static int run_stat(struct request *r, struct text *out)
{
	struct stat_control c = { .start_ns = r->ctl->start_ns,
				  .clients = r->ctl->nr_clients,
				  .trace_clients = r->ctl->tracer.nr };

	stat_put(&r->ctl->env, &c, out);
	return 0;
}

static int run_get(struct request *r, struct text *out)
{
	return param_get(r->ctl->env.fs, NULL, r->nr ? r->words[0] : NULL, out,
			 r->error);
}

static int run_get_export(struct request *r, struct text *out)
{
	return param_get(r->ctl->env.fs, r->words[0],
			 r->nr > 1 ? r->words[1] : NULL, out, r->error);
}

static int run_set(struct request *r, struct text *out)
{
	return param_set(r->ctl->env.fs, NULL, r->words[0], r->words[1], out,
			 r->error);
}

static int run_set_export(struct request *r, struct text *out)
{
	return param_set(r->ctl->env.fs, r->words[0], r->words[1], r->words[2],
			 out, r->error);
}

static int run_trace(struct request *r, struct text *out)
{
	struct tracer_set set = { 0 };

	for (int i = 0; i < r->nr; i++) {
		if (!tracer_choose(&set, r->words[i]))
			continue;
		snprintf(r->error, sizeof(r->error),
			 "no event '%.60s': see tailrace-trace(1)",
			 r->words[i]);
		return -ENOENT;
	}
	if (!r->ctl->tracer.nr)
		r->ctl->trace_lost = trace_lost();
	r->client->traces = set;
	tracer_start(&r->ctl->tracer, &r->client->traces);
	return 0;
}

static const struct request_row {
	const char *name;
	int least, most; /* words behind it */
	int (*run)(struct request *r, struct text *out);
} request_rows[] = {
	{ "stat", 0, 0, run_stat },
	{ "get", 0, 1, run_get },
	{ "get-export", 1, 2, run_get_export },
	{ "set", 2, 2, run_set },
	{ "set-export", 3, 3, run_set_export },
	{ "trace", 1, CTL_WORDS_MAX - 1, run_trace },
};

static int run_words(struct request *r, struct text *out)
{
	const struct request_row *row;
	size_t i;

	snprintf(r->error, sizeof(r->error), "no such request");
	for (i = 0; r->nr > 0 && i < ARRAY_SIZE(request_rows); i++) {
		row = &request_rows[i];
		if (strcmp(row->name, r->words[0]))
			continue;
		r->words++;
		r->nr--;
		if (r->nr >= row->least && r->nr <= row->most)
			return row->run(r, out);
		snprintf(r->error, sizeof(r->error),
			 "%s takes %d to %d words, not %d", row->name,
			 row->least, row->most, r->nr);
		return -EINVAL;
	}
	return -EINVAL;
}

/* Answers one line. */
static void answer(struct ctl *ctl, struct client *c, char *line)
{
	char *words[CTL_WORDS_MAX];
	struct request r = { .ctl = ctl, .client = c, .words = words };
	struct text *out = &c->out;
	int ret;

	text_add(out, "ok\n", 3);
	r.nr = text_split(line, words, CTL_WORDS_MAX);
	ret = run_words(&r, out);
	if (!ret && out->full) {
		snprintf(r.error, sizeof(r.error), "the answer is too long");
		ret = -EMSGSIZE;
	}
	if (ret) {
		text_clear(out);
		text_printf(out, "error %d ", -ret);
		text_word(out, r.error);
		text_add(out, "\n", 1);
	} else if (!c->traces.any) {
		text_add(out, ".\n", 2);
	}
	/* No memory for a word of it: silence would keep the client waiting. */
	c->ending |= out->full;
}

/* ---- clients ---- */

static size_t unsent(const struct client *c)
{
	return c->out.len - c->sent;
}

static void client_close(struct ctl *ctl, unsigned i)
{
	struct client *c = ctl->clients[i];

	if (c->traces.any)
		tracer_stop(&ctl->tracer, &c->traces);
	close(c->fd);
	text_fini(&c->out);
	mem_free(c);
	ctl->clients[i] = ctl->clients[--ctl->nr_clients];
}

/* False: the client is gone. */
static bool client_send(struct client *c)
{
	ssize_t n;

	while (unsent(c)) {
		n = send(c->fd, c->out.data + c->sent, unsent(c),
			 MSG_NOSIGNAL | MSG_DONTWAIT);
		if (n < 0 && errno == EINTR)
			continue;
		if (n < 0) {
			/* A reader of traces may never be done. */
			text_drop(&c->out, c->sent);
			c->sent = 0;
			return errno == EAGAIN;
		}
		c->sent += (size_t)n;
		c->active_ns = clock_ns();
	}
	text_clear(&c->out);
	c->sent = 0;
	return !c->ending;
}

/* Runs the lines that have come, one at a time as their answers go out. */
static bool client_run(struct ctl *ctl, struct client *c)
{
	char line[CTL_REQUEST_MAX];
	char *end;
	size_t len;

	while (!unsent(c) && !c->traces.any) {
		end = memchr(c->in, '\n', c->in_len);
		if (!end && c->in_len < sizeof(c->in))
			return true;
		if (!end) {
			text_printf(&c->out, "error %d line\\040too\\040long\n",
				    E2BIG);
			c->ending = true;
			return client_send(c);
		}
		len = (size_t)(end - c->in);
		memcpy(line, c->in, len);
		line[len] = 0;
		/* A NUL would end the line before its end. */
		if (memchr(line, 0, len))
			line[0] = 0;
		c->in_len -= len + 1;
		memmove(c->in, end + 1, c->in_len);
		answer(ctl, c, line);
		if (!client_send(c))
			return false;
	}
	return true;
}

static bool client_receive(struct ctl *ctl, struct client *c)
{
	ssize_t n;

	n = recv(c->fd, c->in + c->in_len, sizeof(c->in) - c->in_len,
		 MSG_DONTWAIT);
	if (n < 0)
		return errno == EAGAIN || errno == EINTR;
	/* Who traces has said all that there is to say. */
	if (c->traces.any)
		return false;
	if (!n) {
		c->ending = true;
		return unsent(c);
	}
	c->active_ns = clock_ns();
	c->in_len += (size_t)n;
	return client_run(ctl, c);
}

static bool client_serve(struct ctl *ctl, struct client *c, short events)
{
	if (events & (POLLERR | POLLNVAL))
		return false;
	if (unsent(c)) {
		if (!client_send(c))
			return false;
		if (unsent(c) && clock_ns() - c->active_ns > STALL_NS)
			return false;
		if (!client_run(ctl, c))
			return false;
	}
	if (events & (POLLIN | POLLHUP) && (!unsent(c) || c->traces.any))
		return client_receive(ctl, c);
	return true;
}

/* The one without an answer under way that was silent longest; nr_clients if
 * there is none. */
static unsigned find_idle(const struct ctl *ctl)
{
	unsigned i, found = ctl->nr_clients;

	for (i = 0; i < ctl->nr_clients; i++) {
		const struct client *c = ctl->clients[i];

		if (c->traces.any || unsent(c))
			continue;
		if (found == ctl->nr_clients ||
		    c->active_ns < ctl->clients[found]->active_ns)
			found = i;
	}
	return found;
}

static void client_accept(struct ctl *ctl)
{
	struct client *c;
	unsigned idle;
	int fd;

	fd = accept4(ctl->listen_fd, NULL, NULL, SOCK_CLOEXEC | SOCK_NONBLOCK);
	if (fd < 0) {
		/* The connection stays in the queue: do not spin on it. */
		if (errno != EAGAIN && errno != EINTR && errno != ECONNABORTED)
			ctl->paused_until_ns = clock_ns() + PAUSE_NS;
		return;
	}
	if (ctl->nr_clients == CTL_CLIENTS_MAX) {
		idle = find_idle(ctl);
		if (idle < ctl->nr_clients)
			client_close(ctl, idle);
	}
	c = ctl->nr_clients < CTL_CLIENTS_MAX ? mem_zalloc(sizeof(*c)) : NULL;
	if (!c) {
		close(fd);
		return;
	}
	c->fd = fd;
	c->active_ns = clock_ns();
	text_init(&c->out, CTL_ANSWER_MAX);
	ctl->clients[ctl->nr_clients++] = c;
}

/* ---- traces ---- */

static void tell_lost(struct client *c)
{
	if (c->lost)
		text_printf(&c->out, "lost %ju\n", (uintmax_t)c->lost);
	c->lost = 0;
}

static void take_event(const struct trace_event *e, void *arg)
{
	struct ctl *ctl = arg;

	for (unsigned i = 0; i < ctl->nr_clients; i++) {
		struct client *c = ctl->clients[i];

		if (!c->traces.any || !c->traces.on[e->point])
			continue;
		if (unsent(c) > CTL_TRACE_MAX) {
			c->lost++;
			continue;
		}
		tell_lost(c);
		tracer_put(e, &c->out);
	}
}

static void stream_traces(struct ctl *ctl)
{
	uint64_t lost;

	trace_drain(take_event, ctl);
	lost = trace_lost() - ctl->trace_lost;
	ctl->trace_lost += lost;
	for (unsigned i = 0; i < ctl->nr_clients;) {
		struct client *c = ctl->clients[i];

		/* Whose events they would have been is not known. */
		if (c->traces.any)
			c->lost += lost;
		if (unsent(c) <= CTL_TRACE_MAX)
			tell_lost(c);
		if (c->traces.any && !client_send(c))
			client_close(ctl, i);
		else
			i++;
	}
}

/* ---- the thread ---- */

/* Fills the table: stop, listen, then the clients in order. */
static int prepare_poll(struct ctl *ctl, struct pollfd *p, int *timeout_ms)
{
	uint64_t now = clock_ns();
	bool paused = now < ctl->paused_until_ns;

	*timeout_ms = paused ? (int)(PAUSE_NS / NS_PER_MS) : -1;
	p[0] = (struct pollfd){ .fd = ctl->stop_fd, .events = POLLIN };
	/* Negative descriptors are left out. */
	p[1] = (struct pollfd){ .fd = paused ? -1 : ctl->listen_fd,
				.events = POLLIN };
	for (unsigned i = 0; i < ctl->nr_clients; i++) {
		const struct client *c = ctl->clients[i];
		bool listens = !unsent(c) || c->traces.any;

		p[2 + i] = (struct pollfd){ .fd = c->fd };
		if (listens && !c->ending)
			p[2 + i].events |= POLLIN;
		if (unsent(c))
			p[2 + i].events |= POLLOUT;
		if (unsent(c))
			*timeout_ms = (int)(STALL_NS / NS_PER_MS / 4);
	}
	if (ctl->tracer.nr)
		*timeout_ms = (int)(TRACE_NS / NS_PER_MS);
	return 2 + (int)ctl->nr_clients;
}

static void ctl_main(void *arg)
{
	struct pollfd p[2 + CTL_CLIENTS_MAX];
	struct ctl *ctl = arg;
	int nr, timeout_ms;

	for (;;) {
		nr = prepare_poll(ctl, p, &timeout_ms);
		if (poll(p, (nfds_t)nr, timeout_ms) < 0 && errno != EINTR) {
			/* Only memory can be short. */
			clock_sleep(PAUSE_NS);
			continue;
		}
		if (p[0].revents)
			break;
		/* From the end: closing one moves the last into its place. */
		for (int i = nr - 3; i >= 0; i--)
			if (!client_serve(ctl, ctl->clients[i],
					  p[2 + i].revents))
				client_close(ctl, (unsigned)i);
		if (ctl->tracer.nr)
			stream_traces(ctl);
		if (p[1].revents)
			client_accept(ctl);
	}
	while (ctl->nr_clients)
		client_close(ctl, ctl->nr_clients - 1);
}

/* ---- start and end ---- */

static int listen_at(struct ctl *ctl, const char *path)
{
	char here[4096];
	int len;

	if (path[0] == '/')
		len = snprintf(ctl->path, sizeof(ctl->path), "%s", path);
	else if (!getcwd(here, sizeof(here)))
		return -errno;
	else
		len = snprintf(ctl->path, sizeof(ctl->path), "%s/%s", here,
			       path);
	if ((size_t)len >= sizeof(ctl->path))
		return -ENAMETOOLONG;
	ctl->listen_fd = ctl_listen(ctl->path);
	return min_of(ctl->listen_fd, 0);
}

/* In the first default place that can be had. */
static int listen_somewhere(struct ctl *ctl)
{
	char path[CTL_PATH_MAX], *slash;
	int ret = -ENOENT;
	size_t len;

	for (unsigned i = 0; ctl_default_path(i, path); i++) {
		slash = strrchr(path, '/');
		*slash = 0;
		if (mkdir(path, 0755) && errno != EEXIST) {
			ret = -errno;
			continue;
		}
		*slash = '/';
		ctl_clean(path);
		ret = listen_at(ctl, path);
		len = strlen(path);
		if (ret == -EADDRINUSE &&
		    snprintf(path + len, sizeof(path) - len, ".%d", getpid()) <
			    (int)(sizeof(path) - len))
			ret = listen_at(ctl, path);
		if (!ret)
			break;
	}
	return ret;
}

int ctl_create(const struct ctl_env *env, const char *path, struct ctl **out)
{
	struct ctl *ctl = mem_zalloc(sizeof(*ctl));
	struct stat st;
	int ret;

	if (!ctl)
		return -ENOMEM;
	ctl->env = *env;
	ctl->start_ns = clock_ns();
	ctl->stop_fd = -1;
	ret = path ? listen_at(ctl, path) : listen_somewhere(ctl);
	if (ret)
		goto out_free;
	if (!lstat(ctl->path, &st))
		ctl->ino = st.st_ino;
	ctl->stop_fd = eventfd(0, EFD_CLOEXEC);
	ret = ctl->stop_fd < 0
		      ? -errno
		      : task_create(&ctl->task, "tr-control", ctl_main, ctl);
	if (!ret) {
		*out = ctl;
		return 0;
	}
	if (ctl->stop_fd >= 0)
		close(ctl->stop_fd);
	close(ctl->listen_fd);
	unlink(ctl->path);
out_free:
	mem_free(ctl);
	return ret;
}

const char *ctl_path(const struct ctl *ctl)
{
	return ctl->path;
}

void ctl_destroy(struct ctl *ctl)
{
	uint64_t one = 1;
	struct stat st;

	(void)!write(ctl->stop_fd, &one, sizeof(one));
	task_join(ctl->task);
	close(ctl->stop_fd);
	close(ctl->listen_fd);
	/* Another server may have put its own there. */
	if (!lstat(ctl->path, &st) && st.st_ino == ctl->ino)
		unlink(ctl->path);
	mem_free(ctl);
}

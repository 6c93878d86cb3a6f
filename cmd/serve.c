/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * tailrace serve: an NFS server in the foreground or as a daemon.
 *
 * Happy path: options, exports, cache, files, programs, sockets, threads; the
 * line that says ready; then signals: SIGHUP reads the exports again, SIGINT
 * and SIGTERM end the server, which sends the replies of running calls, writes
 * back everything and lets go of the directories.
 *
 * Failure modes: wrong options or exports are status 2 with one line; what the
 * machine refuses is 1. A directory that another process holds is waited for,
 * as the server before this one may be ending; a signal ends the wait. A reload
 * that fails changes nothing and is logged.
 */
#include <errno.h>
#include <fcntl.h>
#include <grp.h>
#include <malloc.h>
#include <netdb.h>
#include <signal.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/log.h"
#include "cmd/commands.h"
#include "cmd/notify.h"
#include "cmd/serve_config.h"
#include "ctl/param.h"
#include "ctl/server.h"
#include "fs/exports.h"
#include "fs/server.h"
#include "nfs/nfs.h"
#include "rpc/rpcbind.h"
#include "rpc/server.h"

#include <tailrace/cache.h>

/* As long as a client waits before it sends again (timeo=600). */
#define DRAIN_NS (10 * NS_PER_S)

/* How long a directory may be held by another process: a server that ends
 * drains its calls so long. How often it is tried, and after what time the
 * administrator is told, who wonders by then. */
#define LOCK_WAIT_NS DRAIN_NS
#define LOCK_POLL_NS (50 * NS_PER_MS)
#define LOCK_TELL_NS NS_PER_S

/* A worker per request that waits for the disk or for a group that shares a
 * sync: three quarters of them may, and 32 clients that write synchronously
 * make a group. */
#define WORKERS 64

/* Memory that the heap keeps when it is freed: the requests of a busy second.
 * Given back to the kernel each time it costs page faults at the next. */
#define HEAP_KEPT (8 << 20)

struct serve {
	struct serve_options options;
	struct tr_cache *cache;
	struct fs_server *fs;
	struct nfs *nfs;
	struct rpc_server *rpc;
	struct ctl *ctl; /* NULL: no place for its socket */
	uint16_t port, mount_port;
	char address[64]; /* the first that is listened to */
	bool ipv6; /* listened to as well */
	bool bound; /* told to rpcbind */
	sigset_t signals;
	bool ending; /* a signal came that ends the server */
	int ready_fd; /* of the daemon's parent; -1: none */
};

static PRINTF(1, 2) void complain(const char *fmt, ...)
{
	va_list ap;

	fprintf(stderr, "tailrace serve: ");
	va_start(ap, fmt);
	vfprintf(stderr, fmt, ap);
	va_end(ap);
	fputc('\n', stderr);
}

/* ---- process ---- */

static void prepare_process(struct serve *s)
{
	struct rlimit r;

	/* Modes are the clients' to choose; groups each request's own. */
	umask(0);
	if (!geteuid())
		(void)!setgroups(0, NULL);
	if (!getrlimit(RLIMIT_NOFILE, &r)) {
		r.rlim_cur = r.rlim_max;
		(void)setrlimit(RLIMIT_NOFILE, &r);
	}
	mallopt(M_TRIM_THRESHOLD, HEAP_KEPT);
	signal(SIGPIPE, SIG_IGN);
	sigemptyset(&s->signals);
	sigaddset(&s->signals, SIGINT);
	sigaddset(&s->signals, SIGTERM);
	sigaddset(&s->signals, SIGHUP);
	/* Before any thread is made: all inherit it. */
	pthread_sigmask(SIG_BLOCK, &s->signals, NULL);
}

/* Goes to the background; the parent ends when the child is ready, or with
 * the child's failure. Who ends the parent before that ends the child. Threads
 * come later, so fork is safe. */
static int start_daemon(struct serve *s)
{
	pid_t pid, parent = getpid();
	int pipe_fds[2];
	char byte;

	if (pipe2(pipe_fds, O_CLOEXEC))
		return -errno;
	pid = fork();
	if (pid < 0)
		return -errno;
	if (!pid) {
		close(pipe_fds[0]);
		s->ready_fd = pipe_fds[1];
		setsid();
		if (prctl(PR_SET_PDEATHSIG, SIGTERM) || getppid() != parent)
			_exit(EXIT_FAILED);
		return 0;
	}
	close(pipe_fds[1]);
	pthread_sigmask(SIG_UNBLOCK, &s->signals, NULL);
	_exit(read(pipe_fds[0], &byte, 1) == 1 ? EXIT_DONE : EXIT_FAILED);
}

static void detach(struct serve *s)
{
	int null = open("/dev/null", O_RDWR | O_CLOEXEC);

	if (null >= 0) {
		dup2(null, STDIN_FILENO);
		dup2(null, STDOUT_FILENO);
		dup2(null, STDERR_FILENO);
		close(null);
	}
	(void)!chdir("/");
	(void)prctl(PR_SET_PDEATHSIG, 0);
	(void)!write(s->ready_fd, "", 1);
	close(s->ready_fd);
	s->ready_fd = -1;
}

/* ---- exports ---- */

/* Status 0, 1 or 2; error says why. */
static int read_exports(struct serve *s, struct exports *x,
			char error[EXPORTS_ERROR_MAX])
{
	const struct serve_options *o = &s->options;
	/* Only root can tell clients apart: others' ports say nothing. */
	bool insecure = geteuid();
	int i, ret = 0;

	*x = (struct exports){ 0 };
	if (o->exports_file)
		ret = exports_load(o->exports_file, x, error);
	if (!ret && o->dir)
		ret = exports_add(x, o->dir, insecure, error);
	for (i = 0; i < o->exports.nr && !ret; i++)
		ret = exports_add(x, o->exports.values[i], insecure, error);
	if (!ret && !x->nr) {
		snprintf(error, EXPORTS_ERROR_MAX,
			 "nothing to export: name DIR, --export or --exports");
		ret = -EINVAL;
	}
	if (ret)
		exports_fini(x);
	return ret;
}

/* Sleeps; true if a signal came meanwhile that ends the server. */
static bool sleep_until_end(struct serve *s, uint64_t ns)
{
	struct timespec ts = { .tv_nsec = (long)ns };
	sigset_t ends = s->signals;

	sigdelset(&ends, SIGHUP);
	s->ending = sigtimedwait(&ends, NULL, &ts) > 0;
	return s->ending;
}

/* fs_server_export() as soon as no other process holds a directory; -EINTR: the
 * server is ending. */
static int export_when_free(struct serve *s, struct exports *x,
			    char error[EXPORTS_ERROR_MAX])
{
	uint64_t start = clock_ns(), waited;
	bool told = false;
	int ret;

	for (;;) {
		ret = fs_server_export(s->fs, x, error);
		waited = clock_ns() - start;
		if (ret != -EBUSY || waited >= LOCK_WAIT_NS)
			return ret;
		if (!told && waited >= LOCK_TELL_NS) {
			log_line(LOG_NOTICE, "waiting up to %u s: %s",
				 (unsigned)(LOCK_WAIT_NS / NS_PER_S), error);
			told = true;
		}
		if (sleep_until_end(s, LOCK_POLL_NS))
			return -EINTR;
	}
}

/* Exit status. */
static int export_all(struct serve *s)
{
	char error[EXPORTS_ERROR_MAX];
	struct exports x;

	if (read_exports(s, &x, error)) {
		complain("%s", error);
		return EXIT_USAGE;
	}
	for (int i = 0; i < x.nr; i++)
		for (int j = 0; j < x.entries[i].nr_clients; j++)
			if (!x.entries[i].clients[j].options.sync)
				log_line(LOG_NOTICE,
					 "export %s to %s is async: what is "
					 "answered as stable may be lost",
					 x.entries[i].path,
					 x.entries[i].clients[j].name);
	if (!export_when_free(s, &x, error))
		return EXIT_DONE;
	exports_fini(&x);
	if (s->ending)
		return EXIT_DONE;
	complain("%s", error);
	return EXIT_FAILED;
}

static void reload(struct serve *s)
{
	char error[EXPORTS_ERROR_MAX];
	struct exports x;

	if (read_exports(s, &x, error)) {
		log_line(LOG_ERROR, "exports not read again: %s", error);
		return;
	}
	if (!export_when_free(s, &x, error)) {
		log_line(LOG_NOTICE, "exports read again");
		return;
	}
	exports_fini(&x);
	if (!s->ending)
		log_line(LOG_ERROR, "exports not read again: %s", error);
}

/* ---- parameters ---- */

static int set_parameter(struct serve *s, const char *word)
{
	const char *equals = strchr(word, '=');
	char error[PARAM_ERROR_MAX];
	char name[64];

	if (!equals || (size_t)(equals - word) >= sizeof(name)) {
		complain("--set: '%s' is not NAME=VALUE", word);
		return EXIT_USAGE;
	}
	memcpy(name, word, (size_t)(equals - word));
	name[equals - word] = 0;
	if (!param_set(s->fs, NULL, name, equals + 1, NULL, error))
		return EXIT_DONE;
	complain("--set: %s", error);
	return EXIT_USAGE;
}

static int set_all(struct serve *s)
{
	int i, status = EXIT_DONE;

	for (i = 0; i < s->options.set.nr && !status; i++)
		status = set_parameter(s, s->options.set.values[i]);
	return status;
}

/* ---- the key of file handles ---- */

static int make_dirs(char *path)
{
	char *slash;

	for (slash = strchr(path + 1, '/'); slash;
	     slash = strchr(slash + 1, '/')) {
		*slash = 0;
		if (mkdir(path, 0700) && errno != EEXIST)
			return -errno;
		*slash = '/';
	}
	return 0;
}

static int load_key(const struct serve *s, struct siphash_key *key)
{
	const char *home = getenv("HOME"), *xdg = getenv("XDG_STATE_HOME");
	char path[4096];
	int ret;

	if (s->options.state)
		ret = snprintf(path, sizeof(path), "%s", s->options.state);
	else if (!geteuid())
		ret = snprintf(path, sizeof(path), "/var/lib/tailrace");
	else if (xdg && xdg[0] == '/')
		ret = snprintf(path, sizeof(path), "%s/tailrace", xdg);
	else
		ret = snprintf(path, sizeof(path), "%s/.local/state/tailrace",
			       home ? home : "");
	if (ret >= (int)sizeof(path) - 16)
		ret = -ENAMETOOLONG;
	else
		strcat(path, "/handle.key");
	if (ret >= 0)
		ret = make_dirs(path);
	if (!ret)
		ret = handle_key_load(path, key);
	if (ret)
		complain("%s: %s (--state DIR names another place)", path,
			 strerror(-ret));
	return ret;
}

/* ---- sockets ---- */

static int listen_port(struct serve *s, const struct addrinfo *ai,
		       uint16_t want, uint16_t *port)
{
	struct sockaddr_in6 addr6;
	struct sockaddr_in addr4;
	void *addr;

	if (ai->ai_family == AF_INET) {
		addr4 = *(const struct sockaddr_in *)(const void *)ai->ai_addr;
		addr4.sin_port = htons(want);
		addr = &addr4;
	} else {
		addr6 = *(const struct sockaddr_in6 *)(const void *)ai->ai_addr;
		addr6.sin6_port = htons(want);
		addr = &addr6;
	}
	return rpc_server_listen(s->rpc, addr, ai->ai_addrlen, port);
}

/* Both ports on one address. Those that the kernel chose for the first hold
 * for all. */
static int listen_addr(struct serve *s, const char *text)
{
	struct addrinfo hints = { .ai_flags = AI_NUMERICHOST,
				  .ai_socktype = SOCK_STREAM };
	struct addrinfo *ai;
	int ret;

	ret = getaddrinfo(text, NULL, &hints, &ai);
	if (ret) {
		complain("--listen: '%s' is not an address", text);
		return EXIT_USAGE;
	}
	ret = listen_port(s, ai, s->port, &s->port);
	if (!ret && s->mount_port != s->port)
		ret = listen_port(s, ai, s->mount_port, &s->mount_port);
	s->ipv6 |= ai->ai_family == AF_INET6;
	freeaddrinfo(ai);
	if (ret) {
		complain("cannot listen on %s, ports %u and %u: %s", text,
			 s->port, s->mount_port, strerror(-ret));
		return EXIT_FAILED;
	}
	if (!s->address[0])
		snprintf(s->address, sizeof(s->address), "%s", text);
	return EXIT_DONE;
}

static void choose_ports(struct serve *s)
{
	uint64_t port = s->options.port, mount_port = s->options.mount_port;

	if (port == SERVE_PORT_DEFAULT)
		port = geteuid() ? 12049 : 2049;
	if (mount_port == SERVE_PORT_DEFAULT)
		mount_port = port == 2049 ? 20048 : port ? port + 1 : 0;
	s->port = (uint16_t)port;
	s->mount_port = (uint16_t)mount_port;
}

static int listen_all(struct serve *s)
{
	const struct serve_options *o = &s->options;
	bool local = !o->exports_file && !o->exports.nr;
	int i, status = EXIT_DONE;

	choose_ports(s);
	for (i = 0; i < o->listen.nr && !status; i++)
		status = listen_addr(s, o->listen.values[i]);
	if (!o->listen.nr) {
		status = listen_addr(s, local ? "127.0.0.1" : "0.0.0.0");
		/* Machines without IPv6 are served all the same. */
		if (!status && !access("/proc/net/if_inet6", R_OK))
			status = listen_addr(s, local ? "::1" : "::");
	}
	return status;
}

/* Clients that are not told ports ask rpcbind, where it runs. */
static void tell_rpcbind(struct serve *s)
{
	int ret;

	if (geteuid())
		return;
	ret = rpc_bind_set(NFS_PROGRAM, 3, s->port, s->ipv6);
	if (!ret)
		ret = rpc_bind_set(MOUNT_PROGRAM, 3, s->mount_port, s->ipv6);
	s->bound = !ret;
	if (ret && ret != -ENOENT)
		log_line(LOG_NOTICE, "rpcbind did not take the ports: %s",
			 strerror(-ret));
}

static void untell_rpcbind(const struct serve *s)
{
	if (!s->bound)
		return;
	(void)!rpc_bind_unset(NFS_PROGRAM, 3, s->ipv6);
	(void)!rpc_bind_unset(MOUNT_PROGRAM, 3, s->ipv6);
}

/* ---- the control socket ---- */

/* A socket that was asked for must be had; no default place is no reason not to
 * serve. */
static int create_control(struct serve *s)
{
	struct ctl_env env = { .fs = s->fs,
			       .rpc = s->rpc,
			       .version = TAILRACE_VERSION };
	const char *path = s->options.control;
	int ret = ctl_create(&env, path, &s->ctl);

	if (ret && path)
		complain("control socket %s: %s", path, strerror(-ret));
	else if (ret)
		log_line(LOG_NOTICE, "no control socket: %s", strerror(-ret));
	return ret && path ? EXIT_FAILED : EXIT_DONE;
}

/* ---- the server ---- */

static int create_cache(struct serve *s)
{
	struct tr_cache_options o = { .struct_size = sizeof(o),
				      .size = s->options.cache };
	int ret = tr_cache_create(&o, &s->cache);

	if (ret)
		complain("no cache of that size: %s", strerror(-ret));
	return ret ? EXIT_FAILED : EXIT_DONE;
}

static int create_fs(struct serve *s)
{
	struct fs_server_options o = {
		.cache = s->cache,
		.host = { .struct_size = sizeof(o.host),
			  .engine = (enum tr_engine)s->options.io,
			  .lock_wait_ms = -1 }, /* export_when_free() does */
	};
	int64_t age_ms;
	int ret;

	ret = load_key(s, &o.key);
	if (ret)
		return EXIT_FAILED;
	if (tr_cache_get(s->cache, "edge_max_age", &age_ms))
		age_ms = 30000;
	o.file_age_ns = (uint64_t)age_ms * NS_PER_MS;
	ret = fs_server_create(&o, &s->fs);
	if (ret)
		complain("%s", strerror(-ret));
	return ret ? EXIT_FAILED : EXIT_DONE;
}

static int create_rpc(struct serve *s)
{
	struct rpc_server_options o = { .nr_workers = WORKERS };
	int ret;

	ret = nfs_create(s->fs, WORKERS, &s->nfs);
	if (ret) {
		complain("%s", strerror(-ret));
		return EXIT_FAILED;
	}
	o.programs = nfs_programs(s->nfs, &o.nr_programs);
	ret = rpc_server_create(&o, &s->rpc);
	if (ret)
		complain("%s", strerror(-ret));
	return ret ? EXIT_FAILED : EXIT_DONE;
}

static int start(struct serve *s)
{
	int status, ret;

	status = create_cache(s);
	if (!status)
		status = create_fs(s);
	if (!status)
		status = set_all(s);
	if (!status)
		status = export_all(s);
	if (s->ending)
		return status;
	if (!status)
		status = create_rpc(s);
	if (!status)
		status = listen_all(s);
	if (status)
		return status;
	ret = rpc_server_start(s->rpc);
	if (ret)
		complain("%s", strerror(-ret));
	else
		tell_rpcbind(s);
	return ret ? EXIT_FAILED : create_control(s);
}

static int finish(struct serve *s)
{
	int ret = 0;

	untell_rpcbind(s);
	if (s->ctl)
		ctl_destroy(s->ctl);
	if (s->rpc) {
		rpc_server_stop(s->rpc, DRAIN_NS);
		rpc_server_destroy(s->rpc);
	}
	if (s->nfs)
		nfs_destroy(s->nfs);
	if (s->fs)
		ret = fs_server_destroy(s->fs);
	else if (s->cache)
		ret = tr_cache_destroy(s->cache);
	if (ret)
		complain("writing back: %s", strerror(-ret));
	return ret ? EXIT_FAILED : EXIT_DONE;
}

static void announce(const struct serve *s)
{
	const char *at = s->address;

	if (!strcmp(at, "0.0.0.0"))
		at = "127.0.0.1";
	printf("to mount it: mount -t nfs -o vers=3,proto=tcp,nolock,port=%u,"
	       "mountport=%u %s:/export /mnt\n",
	       s->port, s->mount_port, at);
	printf("ready: nfs %s:%u mount %u%s%s\n", at, s->port, s->mount_port,
	       s->ctl ? " control " : "", s->ctl ? ctl_path(s->ctl) : "");
	fflush(stdout);
}

static void run(struct serve *s)
{
	int sig;

	while (!s->ending) {
		if (sigwait(&s->signals, &sig))
			continue;
		if (sig == SIGHUP)
			reload(s);
		else
			s->ending = true;
	}
}

int command_serve(int argc, char **argv)
{
	struct serve s = { .ready_fd = -1 };
	int status, done;

	switch (serve_config_parse(argc, argv, &s.options)) {
	case OPTIONS_HELP:
		return EXIT_DONE;
	case OPTIONS_WRONG:
		return EXIT_USAGE;
	case OPTIONS_DONE:
		break;
	}
	prepare_process(&s);
	if (s.options.daemon) {
		status = start_daemon(&s);
		if (status) {
			complain("%s", strerror(-status));
			return EXIT_FAILED;
		}
	}
	status = start(&s);
	if (!status && !s.ending) {
		announce(&s);
		if (s.options.daemon)
			detach(&s);
		notify_manager("READY=1");
		run(&s);
		notify_manager("STOPPING=1");
	}
	done = finish(&s);
	return status ? status : done;
}

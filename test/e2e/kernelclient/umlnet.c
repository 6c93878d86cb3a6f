/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * umlnet: runs a command (linux.uml) in a network namespace and a PID namespace
 * of its own, with tap devices in the first, and relays TCP connections made to
 * the taps' addresses to 127.0.0.1 of the namespace it was started in.
 *
 *   umlnet [-n NETNS] -T TAP=A.B.C.D/LEN,MTU... [-f PORT]... [-P PROG:PORT]... -- CMD...
 *
 *   -n  enter this network namespace (a path) instead of making one; no relay
 *       is needed for a server that runs in there itself
 *   -f  relay this port
 *   -P  answer on port 111 (TCP, portmapper 2 and rpcbind 3, 4) that RPC program
 *       PROG is on PORT
 *
 * When CMD ends, or SIGTERM comes, all that runs in the PID namespace is killed.
 * Its exit status is CMD's.
 */
#define _GNU_SOURCE
#include <arpa/inet.h>
#include <err.h>
#include <errno.h>
#include <fcntl.h>
#include <net/if.h>
#include <linux/if_tun.h>
#include <netinet/tcp.h>
#include <poll.h>
#include <pthread.h>
#include <sched.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

enum { MAXL = 64, BUF = 1 << 20 };

static struct {
	int fd, port;
} lst[MAXL];
static int nlst;
static struct {
	unsigned prog, port;
} pm[MAXL];
static int npm;
static in_addr_t addrs[8];
static int naddr;
static pid_t child;

static void tap(char *spec)
{
	char *eq = strchr(spec, '='), *sl = strchr(spec, '/'),
	     *co = strchr(spec, ',');
	struct ifreq r = { 0 };
	struct sockaddr_in *sa = (struct sockaddr_in *)&r.ifr_addr;
	int fd, s;

	if (!eq || !sl || !co)
		errx(2, "-T TAP=A.B.C.D/LEN,MTU");
	*eq = *sl = *co = 0;
	fd = open("/dev/net/tun", O_RDWR | O_CLOEXEC);
	if (fd < 0)
		err(2, "/dev/net/tun");
	snprintf(r.ifr_name, IFNAMSIZ, "%s", spec);
	r.ifr_flags = IFF_TAP | IFF_NO_PI | IFF_VNET_HDR;
	if (ioctl(fd, TUNSETIFF, &r) || ioctl(fd, TUNSETPERSIST, 1))
		err(2, "TUNSETIFF %s", spec);
	close(fd);
	s = socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC, 0);
	sa->sin_family = AF_INET;
	if (!inet_aton(eq + 1, &sa->sin_addr))
		errx(2, "bad address %s", eq + 1);
	addrs[naddr++] = sa->sin_addr.s_addr;
	if (ioctl(s, SIOCSIFADDR, &r))
		err(2, "SIOCSIFADDR");
	sa->sin_family = AF_INET;
	sa->sin_addr.s_addr = htonl(-1U << (32 - atoi(sl + 1)));
	if (ioctl(s, SIOCSIFNETMASK, &r))
		err(2, "SIOCSIFNETMASK");
	r.ifr_mtu = atoi(co + 1);
	if (ioctl(s, SIOCSIFMTU, &r))
		err(2, "SIOCSIFMTU");
	r.ifr_flags = IFF_UP;
	if (ioctl(s, SIOCSIFFLAGS, &r))
		err(2, "up %s", spec);
	close(s);
}

static void lo_up(void)
{
	struct ifreq r = { .ifr_name = "lo", .ifr_flags = IFF_UP };
	int s = socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC, 0);

	ioctl(s, SIOCSIFFLAGS, &r);
	close(s);
}

static void nodelay(int fd)
{
	int one = 1;

	setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &one, sizeof one);
}

static void listen_on(int port)
{
	struct sockaddr_in sa = { .sin_family = AF_INET };
	int one = 1;

	for (int i = 0; i < naddr; i++) {
		int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);

		sa.sin_addr.s_addr = addrs[i];
		sa.sin_port = htons(port);
		setsockopt(fd, SOL_SOCKET, SO_REUSEADDR, &one, sizeof one);
		if (bind(fd, (struct sockaddr *)&sa, sizeof sa) ||
		    listen(fd, 64)) {
			if (port != 111 || errno != EADDRINUSE)
				err(2, "listen on port %d", port);
			close(fd); /* there is a portmapper already */
			continue;
		}
		lst[nlst].fd = fd;
		lst[nlst++].port = port;
	}
}

struct pair {
	int from, to;
};

static void *pump(void *arg)
{
	struct pair p = *(struct pair *)arg;
	char *b = malloc(BUF);
	ssize_t n, k, w;

	free(arg);
	while (b && (n = read(p.from, b, BUF)) > 0)
		for (k = 0; k < n; k += w)
			if ((w = write(p.to, b + k, n - k)) <= 0)
				goto out;
out:
	shutdown(p.to, SHUT_WR);
	shutdown(p.from, SHUT_RD);
	free(b);
	return NULL;
}

static int dial(int port)
{
	static int next = 1023;
	struct sockaddr_in sa = { .sin_family = AF_INET };
	int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);

	/* from a reserved port, as the client's own connection is */
	for (int i = 0; i < 400; i++) {
		sa.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
		sa.sin_port = htons(next);
		next = next > 600 ? next - 1 : 1023;
		if (bind(fd, (struct sockaddr *)&sa, sizeof sa) == 0)
			break;
	}
	sa.sin_port = htons(port);
	if (connect(fd, (struct sockaddr *)&sa, sizeof sa)) {
		warn("127.0.0.1:%d", port);
		close(fd);
		return -1;
	}
	return fd;
}

/* both directions of one connection; ends by a reset when the other side did */
static void *conn(void *arg)
{
	struct pair p = *(struct pair *)arg, *q = malloc(sizeof *q);
	pthread_t t;

	nodelay(p.from);
	nodelay(p.to);
	q->from = p.to;
	q->to = p.from;
	pthread_create(&t, NULL, pump, q);
	pump(arg);
	pthread_join(t, NULL);
	close(p.from);
	close(p.to);
	return NULL;
}

static int rd(int fd, void *b, size_t n)
{
	size_t k = 0;
	ssize_t r;

	for (; k < n; k += r)
		if ((r = read(fd, (char *)b + k, n - k)) <= 0)
			return -1;
	return 0;
}

static void *portmap(void *arg)
{
	int fd = *(int *)arg;
	unsigned h, w[256], o[64];

	free(arg);
	while (!rd(fd, &h, 4)) {
		unsigned len = ntohl(h) & 0x7fffffff, vers, proc, at, prog,
			 port = 0, n = 6;

		if (len > sizeof w || len < 40 || rd(fd, w, len))
			break;
		vers = ntohl(w[4]);
		proc = ntohl(w[5]);
		at = 6 + 2 + (ntohl(w[7]) + 3) / 4; /* cred */
		if (at + 2 > len / 4)
			break;
		at += 2 + (ntohl(w[at + 1]) + 3) / 4; /* verf */
		memset(o, 0, sizeof o);
		o[0] = w[0];
		o[1] = htonl(1);
		if (proc == 3 && at < len / 4) {
			prog = ntohl(w[at]);
			for (int i = 0; i < npm; i++)
				if (pm[i].prog == prog)
					port = pm[i].port;
			if (vers == 2)
				o[n++] = htonl(port);
			else {
				struct sockaddr_in sa;
				socklen_t sl = sizeof sa;
				char ua[64] = "", ip[32];

				getsockname(fd, (struct sockaddr *)&sa, &sl);
				inet_ntop(AF_INET, &sa.sin_addr, ip, sizeof ip);
				if (port)
					snprintf(ua, sizeof ua, "%s.%u.%u", ip,
						 port >> 8, port & 255);
				o[n++] = htonl(strlen(ua));
				memcpy(&o[n], ua, strlen(ua));
				n += (strlen(ua) + 3) / 4;
			}
		} else if (proc)
			o[5] = htonl(3); /* PROC_UNAVAIL */
		h = htonl(0x80000000 | n * 4);
		if (write(fd, &h, 4) != 4 ||
		    write(fd, o, n * 4) != (ssize_t)(n * 4))
			break;
	}
	close(fd);
	return NULL;
}

static void on_term(int sig)
{
	(void)sig;
	if (child > 0)
		kill(child, SIGKILL);
}

static void on_chld(int sig)
{
	(void)sig; /* only there to end a poll() */
}

struct options {
	int fwd[MAXL], nfwd;
	char *ns, *taps[8];
	int ntap;
};

static void parse(int argc, char **argv, struct options *o)
{
	char *e;
	int c;

	while ((c = getopt(argc, argv, "+n:T:f:P:")) != -1)
		switch (c) {
		case 'n':
			o->ns = optarg;
			break;
		case 'T':
			o->taps[o->ntap++ & 7] = optarg;
			break;
		case 'f':
			o->fwd[o->nfwd++ % (MAXL / 2)] = atoi(optarg);
			break;
		case 'P':
			pm[npm].prog = strtoul(optarg, &e, 10);
			pm[npm++ % MAXL].port = *e ? atoi(e + 1) : 0;
			break;
		default:
			exit(2);
		}
	if (optind == argc)
		errx(2, "no command");
}

static void make_net(struct options *o)
{
	if (o->ns) {
		int fd = open(o->ns, O_RDONLY | O_CLOEXEC);

		if (fd < 0 || setns(fd, CLONE_NEWNET))
			err(2, "%s", o->ns);
	} else if (unshare(CLONE_NEWNET)) {
		err(2, "unshare");
	}
	lo_up();
	for (int i = 0; i < o->ntap; i++)
		tap(o->taps[i]);
	for (int i = 0; i < o->nfwd; i++)
		listen_on(o->fwd[i]);
	if (npm)
		listen_on(111);
}

static int status_of(int st)
{
	return WIFEXITED(st) ? WEXITSTATUS(st) : 128 + WTERMSIG(st);
}

/* PID 1 of the namespace: runs the command and takes in orphans. */
static void run_command(char **argv)
{
	pid_t p, q;
	int st;

	prctl(PR_SET_PDEATHSIG, SIGKILL);
	signal(SIGTERM, SIG_DFL);
	signal(SIGINT, SIG_DFL);
	signal(SIGHUP, SIG_DFL);
	signal(SIGCHLD, SIG_DFL);
	signal(SIGPIPE, SIG_DFL);
	p = fork();
	if (p == 0) {
		execvp(argv[0], argv);
		err(127, "%s", argv[0]);
	}
	while ((q = wait(&st)) != p)
		if (q < 0 && errno != EINTR)
			_exit(2);
	_exit(status_of(st));
}

static void start_thread(void *(*run)(void *), void *arg)
{
	pthread_t t;

	if (pthread_create(&t, NULL, run, arg))
		errx(2, "no thread");
	pthread_detach(t);
}

static void take(int fd, int port)
{
	struct pair *p;

	if (port == 111 && npm) {
		int *a = malloc(sizeof *a);

		*a = fd;
		nodelay(fd);
		start_thread(portmap, a);
		return;
	}
	p = malloc(sizeof *p);
	p->from = fd;
	p->to = dial(port);
	if (p->to < 0) {
		close(fd);
		free(p);
		return;
	}
	start_thread(conn, p);
}

/* Takes connections until the command ends: its status. */
static int relay(void)
{
	struct pollfd pfd[MAXL];
	int n, fd, st;

	for (int i = 0; i < nlst; i++)
		pfd[i] = (struct pollfd){ lst[i].fd, POLLIN, 0 };
	for (;;) {
		n = poll(pfd, nlst, 100);
		if (waitpid(child, &st, WNOHANG) == child)
			return status_of(st);
		for (int i = 0; n > 0 && i < nlst; i++) {
			if (!(pfd[i].revents & POLLIN))
				continue;
			fd = accept4(lst[i].fd, NULL, NULL, SOCK_CLOEXEC);
			if (fd >= 0)
				take(fd, lst[i].port);
		}
	}
}

int main(int argc, char **argv)
{
	struct options o = { .nfwd = 0 };
	int home, homepid;

	parse(argc, argv, &o);
	home = open("/proc/self/ns/net", O_RDONLY | O_CLOEXEC);
	homepid = open("/proc/self/ns/pid", O_RDONLY | O_CLOEXEC);
	make_net(&o);
	if (unshare(CLONE_NEWPID))
		err(2, "unshare");
	signal(SIGTERM, on_term);
	signal(SIGINT, on_term);
	signal(SIGHUP, on_term);
	signal(SIGCHLD, on_chld);
	signal(SIGPIPE, SIG_IGN);
	child = fork();
	if (child < 0)
		err(2, "fork");
	if (child == 0)
		run_command(argv + optind);
	/* with children in another PID namespace, threads cannot be made */
	if (setns(home, CLONE_NEWNET) || setns(homepid, CLONE_NEWPID))
		err(2, "setns");
	return relay();
}

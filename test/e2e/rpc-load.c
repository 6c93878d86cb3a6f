/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * How many null procedures the server answers, and what each costs it.
 *
 *	rpc-load [-c CONNECTIONS] [-d IN-FLIGHT] [-i IDLE] [-t SECONDS]
 *		 [-w BYTES]
 *
 * The client runs in the same process on a thread per connection, and its CPU
 * time is measured apart: what is printed per call is the server's threads'
 * alone. -i adds connections that do nothing after one call, and prints the
 * memory that each takes on the server's heap. With -w each call carries so many bytes, received into one place.
 */
#include "e2e/rpc_client.h"

#include "base/clock.h"
#include "base/mem.h"
#include "base/task.h"

#include <malloc.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/resource.h>
#include <time.h>
#include <unistd.h>

struct load {
	struct test_server *t;
	unsigned depth;
	uint32_t write_len;
	uint64_t deadline;
	uint64_t calls;
	uint64_t cpu_ns;
};

static uint64_t ns_of(struct timespec t)
{
	return (uint64_t)t.tv_sec * NS_PER_S + (uint64_t)t.tv_nsec;
}

static uint64_t thread_cpu(void)
{
	struct timespec t;

	clock_gettime(CLOCK_THREAD_CPUTIME_ID, &t);
	return ns_of(t);
}

static uint64_t process_cpu(void)
{
	struct timespec t;

	clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &t);
	return ns_of(t);
}

/* A batch of depth calls at once, then their replies. */
static void load_main(void *arg)
{
	struct load *l = arg;
	struct client_msg *m = mem_alloc(sizeof(*m));
	uint8_t *data = mem_zalloc(l->write_len + 1), *batch;
	int fd = client_connect(l->t);
	uint64_t cpu = thread_cpu();
	size_t one, used;

	client_begin(m, 1, l->write_len ? TEST_SINK : TEST_NULL);
	if (l->write_len) {
		xdr_out_opaque(&m->out, data, l->write_len);
	}
	client_end(m);
	one = xdr_out_len(&m->out);
	batch = mem_alloc(one * l->depth);
	for (used = 0; used < one * l->depth; used += one)
		memcpy(batch + used, m->buf, one);
	while (clock_ns() < l->deadline) {
		client_send(fd, batch, used);
		for (size_t left = l->depth * 28u; left;)
			left -= (size_t)recv(fd, m->buf,
					     min_of(left, sizeof(m->buf)), 0);
		l->calls += l->depth;
	}
	l->cpu_ns = thread_cpu() - cpu;
	close(fd);
	mem_free(batch);
	mem_free(data);
	mem_free(m);
}

static void print(struct test_server *t, uint64_t ns, uint64_t cpu,
		  uint64_t calls)
{
	struct rpc_statistics st = test_stats(t);
	double n = (double)(calls ? calls : 1);

	printf("%.0f calls/s, server CPU %.2f us/call; per call: %.2f recv, "
	       "%.2f send, %.2f poll, %.2f wakeups\n",
	       n * 1e9 / (double)ns, (double)cpu / 1e3 / n,
	       (double)st.recvs / n, (double)st.sends / n, (double)st.polls / n,
	       (double)st.wakeups / n);
}

/* Opens nr connections that have made one call and are idle. */
static int *idle_open(struct test_server *t, unsigned nr)
{
	struct rlimit files;
	int *fds = mem_alloc((nr + 1) * sizeof(*fds));
	size_t before;

	getrlimit(RLIMIT_NOFILE, &files);
	files.rlim_cur = files.rlim_max;
	setrlimit(RLIMIT_NOFILE, &files);
	before = mallinfo2().uordblks;
	for (unsigned i = 0; i < nr; i++) {
		fds[i] = client_connect(t);
		client_call_null(fds[i], i);
		(void)client_any(fds[i]);
	}
	if (nr)
		printf("%u idle connections, %zu bytes each\n", nr,
		       (mallinfo2().uordblks - before) / nr);
	return fds;
}

int main(int argc, char **argv)
{
	unsigned nr = 1, depth = 1, seconds = 1, nr_idle = 0, i;
	uint64_t start, cpu, calls = 0;
	struct test_server t;
	struct task *tasks[64];
	struct load loads[64] = { 0 };
	uint32_t write_len = 0;
	int opt, *idle;

	while ((opt = getopt(argc, argv, "c:d:i:t:w:")) != -1) {
		unsigned v = (unsigned)strtoul(optarg ? optarg : "", NULL, 0);

		switch (opt) {
		case 'c':
			nr = min_of(v, 64u);
			break;
		case 'd':
			depth = max_of(v, 1u);
			break;
		case 'i':
			nr_idle = v;
			break;
		case 't':
			seconds = v;
			break;
		case 'w':
			write_len = min_of(v, 1u << 20);
			break;
		default:
			fprintf(stderr, "usage: rpc-load [-c CONNECTIONS] "
					"[-d IN-FLIGHT] [-i IDLE] [-t SECONDS] "
					"[-w BYTES]\n");
			return 2;
		}
	}
	test_server_start(&t, NULL);
	idle = idle_open(&t, nr_idle);
	start = clock_ns();
	cpu = process_cpu();
	for (i = 0; i < nr; i++) {
		loads[i] =
			(struct load){ .t = &t,
				       .depth = depth,
				       .write_len = write_len,
				       .deadline = start + seconds * NS_PER_S };
		if (task_create(&tasks[i], "load", load_main, &loads[i]))
			return 1;
	}
	for (i = 0; i < nr; i++)
		task_join(tasks[i]);
	cpu = process_cpu() - cpu;
	for (i = 0; i < nr; i++) {
		calls += loads[i].calls;
		cpu -= loads[i].cpu_ns;
	}
	for (i = 0; i < nr_idle; i++)
		close(idle[i]);
	mem_free(idle);
	print(&t, clock_ns() - start, cpu, calls);
	test_server_stop(&t);
	return 0;
}

/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Scale: what one cached 4 KiB read and one insertion of a page cost as the
 * file, the number of files and the number of threads grow. All on a store in
 * memory, so that only the library is measured; the bare copy of the same
 * bytes is measured beside it.
 *
 * A read hit copies one of 256 pages touched before, in shuffled order. An
 * insertion writes 4 KiB where the cache has no page. The touched set stays the
 * same as the work grows: pages that follow on each other at the end of the
 * first file. In the "_apart" rows they are spread evenly over the file, or
 * over the files, which touches more of the index and of the mappings, and so
 * more lines of memory.
 *
 * Each figure is the least, over SCALE_ROUNDS passes through all cases, of the
 * median of SCALE_REPEATS: other guests of a machine slow it down by half for
 * seconds, which is longer than a case takes, so that repeating one in place
 * does not show it.
 */
#include "cmd/bench/bench.h"

#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/compiler.h"
#include "cmd/bench/tables.h"
#include "cmd/json.h"

#define SCALE_PAGE 4096u
#define SCALE_TOUCHED 256u
#define SCALE_REPEATS 5u
#define SCALE_ROUNDS 5u
#define SCALE_CASES_MAX 64u
#define SCALE_READS 200000u
/* Under the dirty threshold of the smallest useful cache: no writer waits. */
#define SCALE_INSERTS 2048u
#define SCALE_FILES_MAX 10000u

enum scale_op {
	SCALE_READ_HIT,
	SCALE_READ_APART,
	SCALE_INSERT,
	SCALE_INSERT_APART,
	SCALE_COPY
};

static const char *const op_names[] = {
	[SCALE_READ_HIT] = "read_hit", [SCALE_READ_APART] = "read_apart",
	[SCALE_INSERT] = "insert",     [SCALE_INSERT_APART] = "ins_apart",
	[SCALE_COPY] = "memcpy",
};

/* Nanoseconds a call: by the clock, and of the processor. */
struct scale_cost {
	double wall, cpu;
};

struct scale_case {
	enum scale_op op;
	uint64_t file_bytes;
	unsigned nr_files;
	unsigned nr_threads;
	struct scale_cost least; /* wall 0: not measured yet */
};

struct scale {
	const struct bench_options *opt;
	struct tr_store *store;
	struct tr_cache *cache;
	struct tr_file **files;
	char *region; /* what SCALE_COPY copies from */
	struct scale_case cases[SCALE_CASES_MAX];
	unsigned nr_cases;
	struct json json;
};

struct scale_thread {
	pthread_t thread;
	struct scale *s;
	const struct scale_case *c;
	pthread_barrier_t *go;
	unsigned nr;
	struct scale_cost cost;
	int error;
};

static bool is_apart(const struct scale_case *c)
{
	return c->op == SCALE_READ_APART || c->op == SCALE_INSERT_APART;
}

static bool is_insert(const struct scale_case *c)
{
	return c->op == SCALE_INSERT || c->op == SCALE_INSERT_APART;
}

/* Which file touched page i is in, and where. */
static unsigned page_file(const struct scale_case *c, unsigned i)
{
	return is_apart(c) ? i % c->nr_files : 0;
}

static int64_t page_off(const struct scale_case *c, unsigned i)
{
	uint64_t pages = c->file_bytes / SCALE_PAGE;
	unsigned in_file = i / min_of(c->nr_files, SCALE_TOUCHED);
	unsigned of_file = max_of(SCALE_TOUCHED / c->nr_files, 1u);

	if (!is_apart(c))
		return (int64_t)((pages - SCALE_TOUCHED + i) * SCALE_PAGE);
	return (int64_t)(pages * in_file / of_file % pages * SCALE_PAGE);
}

static int64_t insert_off(const struct scale_case *c, unsigned i)
{
	uint64_t pages = c->file_bytes / SCALE_PAGE;

	if (pages <= SCALE_INSERTS)
		return (int64_t)i * SCALE_PAGE;
	if (is_apart(c))
		return (int64_t)(pages / SCALE_INSERTS * i * SCALE_PAGE);
	return (int64_t)((pages - SCALE_INSERTS + i) * SCALE_PAGE);
}

static int run_reads(struct scale_thread *t, char *buf)
{
	/* 97 and 256 have no common divisor: every page, out of order. */
	unsigned page = t->nr * 31;

	for (unsigned i = 0; i < SCALE_READS; i++) {
		unsigned p = (page += 97) % SCALE_TOUCHED;
		struct tr_file *f = t->s->files[page_file(t->c, p)];
		ssize_t n;

		if (t->c->op == SCALE_COPY) {
			memcpy(buf, t->s->region + p * SCALE_PAGE, SCALE_PAGE);
			/* Nobody looks at buf; the copy must stay. */
			__asm__ volatile("" : : "r"(buf) : "memory");
			continue;
		}
		n = tr_read(f, buf, SCALE_PAGE, page_off(t->c, p), 0);
		if (n != SCALE_PAGE)
			return n < 0 ? (int)n : -EIO;
	}
	return 0;
}

static int run_inserts(struct scale_thread *t, const char *buf)
{
	for (unsigned i = t->nr; i < SCALE_INSERTS; i += t->c->nr_threads) {
		ssize_t n = tr_write(t->s->files[0], buf, SCALE_PAGE,
				     insert_off(t->c, i), 0);

		if (n != SCALE_PAGE)
			return n < 0 ? (int)n : -EIO;
	}
	return 0;
}

static uint64_t thread_cpu_ns(void)
{
	struct timespec t;

	clock_gettime(CLOCK_THREAD_CPUTIME_ID, &t);
	return (uint64_t)t.tv_sec * 1000000000u + (uint64_t)t.tv_nsec;
}

static void *scale_thread_main(void *arg)
{
	struct scale_thread *t = arg;
	char *buf = aligned_alloc(SCALE_PAGE, SCALE_PAGE);
	unsigned calls = is_insert(t->c) ? SCALE_INSERTS / t->c->nr_threads
					 : SCALE_READS;
	uint64_t start, cpu;

	if (buf)
		memset(buf, 1, SCALE_PAGE);
	pthread_barrier_wait(t->go);
	start = now_ns();
	cpu = thread_cpu_ns();
	if (!buf)
		t->error = -ENOMEM;
	else
		t->error = is_insert(t->c) ? run_inserts(t, buf)
					   : run_reads(t, buf);
	t->cost.cpu = (double)(thread_cpu_ns() - cpu) / calls;
	t->cost.wall = (double)(now_ns() - start) / calls;
	free(buf);
	return NULL;
}

/* One repeat: the mean over threads. */
static int run_threads(struct scale *s, const struct scale_case *c,
		       double *wall, double *cpu)
{
	struct scale_thread threads[BENCH_THREADS_MAX];
	pthread_barrier_t go;
	int err = 0;

	pthread_barrier_init(&go, NULL, c->nr_threads);
	for (unsigned i = 0; i < c->nr_threads; i++) {
		threads[i] = (struct scale_thread){
			.s = s, .c = c, .go = &go, .nr = i
		};
		err = pthread_create(&threads[i].thread, NULL,
				     scale_thread_main, &threads[i]);
		if (err) {
			/* Others wait at the barrier for ever. */
			fprintf(stderr, "tailrace bench: thread %u: %s\n", i,
				strerror(err));
			exit(EXIT_FAILED);
		}
	}
	*wall = *cpu = 0;
	for (unsigned i = 0; i < c->nr_threads; i++) {
		pthread_join(threads[i].thread, NULL);
		*wall += threads[i].cost.wall / c->nr_threads;
		*cpu += threads[i].cost.cpu / c->nr_threads;
		if (threads[i].error)
			err = threads[i].error;
	}
	pthread_barrier_destroy(&go);
	return err;
}

static int touch(struct tr_file *f, int64_t off)
{
	char buf[SCALE_PAGE];
	ssize_t n;

	memset(buf, 1, sizeof(buf));
	n = tr_write(f, buf, sizeof(buf), off, 0);
	return n == (ssize_t)sizeof(buf) ? 0 : n < 0 ? (int)n : -EIO;
}

/* The 256 pages to be read, and a page in every file. */
static int touch_pages(struct scale *s, const struct scale_case *c)
{
	int err = 0;

	for (unsigned i = 0; i < SCALE_TOUCHED && !err; i++)
		err = touch(s->files[page_file(c, i)], page_off(c, i));
	for (unsigned i = 0; i < c->nr_files && !err; i++)
		err = touch(s->files[i], 0);
	return err ? err : tr_cache_sync(s->cache);
}

static int open_files(struct scale *s, const struct scale_case *c)
{
	char name[32];
	int err;

	for (unsigned i = 0; i < c->nr_files; i++) {
		snprintf(name, sizeof(name), "f%u", i);
		err = tr_file_open(s->cache, s->store, name,
				   O_RDWR | O_CREAT | O_TRUNC, 0600,
				   &s->files[i]);
		if (!err)
			err = tr_truncate(s->files[i], (int64_t)c->file_bytes);
		if (err)
			return err;
	}
	return 0;
}

/* Empty again, in store and cache. */
static int reset_file(struct scale *s, const struct scale_case *c)
{
	int err = tr_truncate(s->files[0], 0);

	return err ? err : tr_truncate(s->files[0], (int64_t)c->file_bytes);
}

static int close_files(struct scale *s, unsigned nr)
{
	int ret, err = 0;

	for (unsigned i = 0; i < nr; i++) {
		if (!s->files[i])
			continue;
		ret = tr_truncate(s->files[i], 0);
		if (!err)
			err = ret;
		ret = tr_file_close(s->files[i]);
		if (!err)
			err = ret;
		s->files[i] = NULL;
	}
	return err;
}

static int compare_doubles(const void *a, const void *b)
{
	double x = *(const double *)a, y = *(const double *)b;

	return (x > y) - (x < y);
}

static void report_case(struct scale *s, const struct scale_case *c)
{
	if (!s->opt->json) {
		printf("%-10s %12.0f %9u %8u %10.0f %10.0f\n", op_names[c->op],
		       (double)c->file_bytes / MIB, c->nr_files, c->nr_threads,
		       c->least.wall, c->least.cpu);
		return;
	}
	json_object_start(&s->json, NULL);
	json_string(&s->json, "operation", op_names[c->op]);
	json_int(&s->json, "file_bytes", (int64_t)c->file_bytes);
	json_int(&s->json, "mappings", c->nr_files);
	json_int(&s->json, "threads", c->nr_threads);
	json_real(&s->json, "ns_per_call", c->least.wall, 1);
	json_real(&s->json, "cpu_ns_per_call", c->least.cpu, 1);
	json_object_end(&s->json);
}

static int run_case(struct scale *s, struct scale_case *c)
{
	double ns[SCALE_REPEATS], cpu[SCALE_REPEATS];
	int ret, err = 0;

	if (c->op != SCALE_COPY) {
		err = open_files(s, c);
		if (!err && !is_insert(c))
			err = touch_pages(s, c);
	}
	for (unsigned i = 0; i < SCALE_REPEATS && !err; i++) {
		err = run_threads(s, c, &ns[i], &cpu[i]);
		if (!err && is_insert(c))
			err = reset_file(s, c);
	}
	ret = close_files(s, c->nr_files);
	if (err || ret) {
		fprintf(stderr, "tailrace bench scale: %s: %s\n",
			op_names[c->op], strerror(-(err ? err : ret)));
		return err ? err : ret;
	}
	qsort(ns, SCALE_REPEATS, sizeof(ns[0]), compare_doubles);
	qsort(cpu, SCALE_REPEATS, sizeof(cpu[0]), compare_doubles);
	if (c->least.wall == 0 || ns[SCALE_REPEATS / 2] < c->least.wall)
		c->least = (struct scale_cost){ ns[SCALE_REPEATS / 2],
						cpu[SCALE_REPEATS / 2] };
	return 0;
}

static void add_case(struct scale *s, enum scale_op op, uint64_t file_bytes,
		     unsigned nr_files, unsigned nr_threads)
{
	if (s->nr_cases < SCALE_CASES_MAX)
		s->cases[s->nr_cases++] =
			(struct scale_case){ .op = op,
					     .file_bytes = file_bytes,
					     .nr_files = nr_files,
					     .nr_threads = nr_threads };
}

/* Each axis in turn, the others at their least. */
static void list_cases(struct scale *s)
{
	static const uint64_t sizes[] = { 1 << 20, 16 << 20, 256 << 20,
					  4ull << 30, 16ull << 30 };
	unsigned threads_max = (unsigned)s->opt->threads;

	for (enum scale_op op = SCALE_READ_HIT; op < SCALE_COPY; op++)
		for (size_t i = 0; i < ARRAY_SIZE(sizes); i++)
			add_case(s, op, sizes[i], 1, 1);
	for (enum scale_op op = SCALE_READ_HIT; op <= SCALE_READ_APART; op++)
		for (unsigned n = 10; n <= SCALE_FILES_MAX; n *= 10)
			add_case(s, op, 1 << 20, n, 1);
	for (enum scale_op op = SCALE_READ_HIT; op <= SCALE_COPY; op++)
		for (unsigned n = op == SCALE_COPY ? 1 : 2; n <= threads_max;
		     n *= 2)
			add_case(s, op, 1 << 20, 1, n);
}

static int run_cases(struct scale *s)
{
	int err = 0;

	list_cases(s);
	for (unsigned round = 0; round < SCALE_ROUNDS && !err; round++)
		for (unsigned i = 0; i < s->nr_cases && !err; i++)
			err = run_case(s, &s->cases[i]);
	for (unsigned i = 0; i < s->nr_cases && !err; i++)
		report_case(s, &s->cases[i]);
	return err;
}

static int scale_run(const struct bench_options *opt)
{
	struct tr_cache_options options = { .struct_size = sizeof(options),
					    .size = opt->cache,
					    .populate = true };
	struct scale s = { .opt = opt };
	int err = -ENOMEM;

	s.files = calloc(SCALE_FILES_MAX, sizeof(*s.files));
	s.region = aligned_alloc(SCALE_PAGE, SCALE_TOUCHED * SCALE_PAGE);
	if (!s.files || !s.region)
		goto out;
	memset(s.region, 1, SCALE_TOUCHED * SCALE_PAGE);
	err = tr_store_ram_create(NULL, &s.store);
	if (err)
		goto out;
	err = tr_cache_create(&options, &s.cache);
	if (err)
		goto out_store;
	if (opt->json) {
		json_init(&s.json, stdout);
		json_object_start(&s.json, NULL);
		json_string(&s.json, "workload", "scale");
		json_array_start(&s.json, "rows");
	} else {
		printf("%-10s %12s %9s %8s %10s %10s\n", "operation",
		       "file MiB", "mappings", "threads", "ns/call", "cpu ns");
	}
	err = run_cases(&s);
	if (opt->json) {
		json_array_end(&s.json);
		json_object_end(&s.json);
		putchar('\n');
	}
	if (tr_cache_destroy(s.cache) && !err)
		err = -EBUSY;
out_store:
	tr_store_destroy(s.store);
out:
	if (err)
		fprintf(stderr, "tailrace bench scale: %s\n", strerror(-err));
	free(s.files);
	free(s.region);
	return err;
}

static const struct option_row rows[] = {
	ROW_THREADS("measure 1, 2, 4, ... N threads (processors)"),
	ROW_CACHE("cache (256M)"),
	ROW_JSON,
};

static const struct option_usage usage = {
	.command = "tailrace bench scale",
	.synopsis = "[OPTION]...",
	.summary = "Cost of an operation as files, mappings and threads grow.",
	.rows = rows,
	.nr_rows = ARRAY_SIZE(rows),
};

int bench_scale(int argc, char **argv)
{
	struct bench_options opt = {
		.threads = (uint64_t)sysconf(_SC_NPROCESSORS_ONLN),
		.cache = 256 << 20,
	};
	int status = bench_parse(&usage, argc, argv, &opt);

	if (status >= 0)
		return status;
	return scale_run(&opt) ? EXIT_FAILED : EXIT_DONE;
}

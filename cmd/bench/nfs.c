/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Load on an NFS server: each run makes its file, writes or reads its records
 * over all connections, commits if a reply was UNSTABLE, and then verifies
 * every byte: from the device through the exported folder where that is known,
 * else through the server.
 *
 * Data to be rewritten or read goes in through the server too, and all of it
 * is read once: what the server likes to keep it has. A rewriting run of which
 * the folder is known starts from a file that is on the device and in no
 * cache of the host. The file is removed at the end of the run.
 */
#include "cmd/bench/nfs.h"

#include <errno.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/eventfd.h>
#include <unistd.h>

#include "base/compiler.h"
#include "cmd/bench/tables.h"

#define FILE_NAME "tailrace-bench.nfs"

/* How often the server's memory is looked at. */
#define SAMPLE_MS 10

/* Preparations and checks use calls of about this size. */
#define PREPARE_BYTES (1u << 20)

const char *const nfs_stable_names[] = { "unstable", "data", "file", NULL };
const char *const nfs_calls_names[] = { "one", "row", "pair", NULL };

#define FIELD(field) offsetof(struct nfs_options, field)

/* clang-format off */
static const struct option_row rows[] = {
	{ "server", 0, OPTION_STRING, FIELD(server), "ADDR",
	  "the server (127.0.0.1)", NULL, 0, 0 },
	{ "port", 'p', OPTION_COUNT, FIELD(port), "N", "its NFS port (2049)",
	  NULL, 1, 65535 },
	{ "mount-port", 0, OPTION_COUNT, FIELD(mount_port), "N",
	  "its MOUNT port (20048)", NULL, 1, 65535 },
	{ "export", 0, OPTION_STRING, FIELD(export), "PATH",
	  "what to mount (/export)", NULL, 0, 0 },
	{ "name", 0, OPTION_STRING, FIELD(name), "TEXT",
	  "what reports call it (its address)", NULL, 0, 0 },
	{ "dir", 'd', OPTION_STRING, FIELD(dir), "DIR",
	  "the folder that it exports, if on this host", NULL, 0, 0 },
	{ "pid", 0, OPTION_COUNT, FIELD(pid), "N",
	  "its process, if on this host", NULL, 1, 0 },
	{ "connections", 'C', OPTION_COUNT, FIELD(connections), "N",
	  "connections (32)", NULL, 1, NFS_CONNECTIONS_MAX },
	{ "depth", 0, OPTION_COUNT, FIELD(depth), "N",
	  "records on their way on each (1)", NULL, 1, 1024 },
	{ "threads", 't', OPTION_COUNT, FIELD(threads), "N",
	  "client threads (2)", NULL, 1, BENCH_THREADS_MAX },
	{ "record", 'r', OPTION_SIZE, FIELD(record), "SIZE",
	  "bytes of a record (47008)", NULL, 1, 1 << 20 },
	{ "size", 's', OPTION_SIZE, FIELD(size), "SIZE",
	  "bytes of the file (512M)", NULL, 1, 0 },
	{ "stable", 0, OPTION_CHOICE, FIELD(stable), "HOW",
	  "unstable, data or file (unstable)", nfs_stable_names, 0, 0 },
	{ "calls", 0, OPTION_CHOICE, FIELD(calls), "HOW",
	  "a record is one call, two in a row, or a pair at once (one)",
	  nfs_calls_names, 0, 0 },
	{ "commit-every", 0, OPTION_COUNT, FIELD(commit_every), "N",
	  "COMMIT after N records of a connection (at the end)", NULL, 1, 0 },
	{ "random", 0, OPTION_FLAG, FIELD(random), NULL,
	  "records in random order", NULL, 0, 0 },
	{ "rewrite", 'w', OPTION_FLAG, FIELD(rewrite), NULL,
	  "over data that is there", NULL, 0, 0 },
	{ "read", 0, OPTION_FLAG, FIELD(read), NULL,
	  "read what was written and read before", NULL, 0, 0 },
	{ "passes", 0, OPTION_COUNT, FIELD(passes), "N",
	  "read it so many times in a run (1)", NULL, 1, 1000 },
	{ "keep", 0, OPTION_FLAG, FIELD(keep), NULL,
	  "leave the file there", NULL, 0, 0 },
	{ "runs", 'N', OPTION_COUNT, FIELD(runs), "N",
	  "runs; the first is dropped if there are more (1)", NULL, 1, 1000 },
	{ "json", 'j', OPTION_FLAG, FIELD(json), NULL,
	  "one JSON document instead of tables", NULL, 0, 0 },
};
/* clang-format on */

static const struct option_usage usage = {
	.command = "tailrace bench nfs",
	.synopsis = "[OPTION]...",
	.summary = "Load on an NFSv3 server given by its address.",
	.rows = rows,
	.nr_rows = ARRAY_SIZE(rows),
};

static void complain(const struct nfs_bench *b, const char *what, int err)
{
	fprintf(stderr, "tailrace bench: %s: %s: %s\n", b->opt->name, what,
		err == -EUCLEAN ? "data differs" : strerror(-err));
}

/* ---- the load ---- */

struct watch {
	struct nfs_bench *b;
	struct nfs_progress progress;
	int64_t rss_peak;
};

static void watch_load(struct watch *w, const char *what, uint64_t bytes)
{
	struct nfs_bench *b = w->b;
	struct pollfd fds[2] = {
		{ .fd = w->progress.done_fd, .events = POLLIN },
		{ .fd = b->frame.signal_fd, .events = POLLIN }
	};
	struct progress progress = {
		.side = b->opt->name,
		.flags = what,
		.round = b->serial,
		.rounds = (unsigned)b->opt->runs,
		.total = bytes,
		.since_ns = b->frame.started_ns,
		.started_ns = now_ns(),
	};
	double cpu;
	int64_t rss;

	while (!fds[0].revents) {
		/* An interrupted run has nothing more to ask the signal. */
		if (poll(fds, b->frame.interrupted ? 1 : 2, SAMPLE_MS) < 0)
			fds[0].revents = 0;
		if (bench_interrupted(&b->frame))
			atomic_store(&w->progress.stop, true);
		if (b->opt->pid && !other_process(b->opt->pid, &cpu, &rss))
			w->rss_peak = max_of(w->rss_peak, rss);
		progress_show(&progress, atomic_load(&w->progress.bytes));
	}
	progress_end(&progress);
}

static int run_load(struct watch *w, const struct nfs_load *load,
		    const char *what, struct nfs_result *out)
{
	struct nfs_run *run;
	int err;

	w->progress =
		(struct nfs_progress){ .done_fd = eventfd(0, EFD_CLOEXEC) };
	if (w->progress.done_fd < 0)
		return -errno;
	err = nfs_load_start(load, &w->progress, &run);
	if (!err) {
		watch_load(w, what,
			   load->records * load->passes * w->b->opt->record);
		err = nfs_load_finish(run, out);
	}
	close(w->progress.done_fd);
	if (err && err != -EINTR)
		complain(w->b, what, err);
	return err;
}

/* ---- before and after ---- */

static uint64_t run_seed(const struct nfs_bench *b)
{
	return (uint64_t)b->serial << 16;
}

static void host_path(const struct nfs_bench *b, char *out)
{
	snprintf(out, BENCH_PATH_MAX, "%s/" FILE_NAME, b->opt->dir);
}

/* All records in order, many bytes on their way. */
static struct nfs_load plain_load(const struct nfs_bench *b, bool read)
{
	const struct nfs_options *o = b->opt;

	return (struct nfs_load){
		.rpcs = b->rpcs,
		.nr_connections = 1,
		.depth = (unsigned)max_of(PREPARE_BYTES / o->record,
					  (uint64_t)4),
		.nr_threads = 1,
		.pattern = &b->frame.pattern,
		.records = b->records,
		.passes = 1,
		.read = read,
	};
}

static int commit(struct nfs_bench *b, const struct nfs_handle *file,
		  struct nfs_result *result)
{
	char verifier[NFS_VERIFIER_LEN];
	uint64_t start = now_ns();
	int err = nfs_client_commit(b->rpcs[0], file, verifier);

	if (!err && memcmp(verifier, result->verifier, sizeof(verifier)))
		result->verifier_changed = true;
	if (!err && result->verifier_changed)
		err = -ESTALE;
	if (err) {
		complain(b, "commit", err);
		return err;
	}
	result->commits++;
	hist_add(&result->commit_latency, now_ns() - start);
	return 0;
}

/* Data for a run that reads or rewrites, other than what it will write. */
static int prepare_data(struct watch *w, const struct nfs_handle *file,
			uint64_t seed)
{
	struct nfs_bench *b = w->b;
	struct nfs_load load = plain_load(b, false);
	struct nfs_result *result = calloc(1, sizeof(*result));
	char path[BENCH_PATH_MAX];
	int err;

	if (!result)
		return -ENOMEM;
	load.file = *file;
	load.seed = seed;
	err = run_load(w, &load, "prepare", result);
	if (!err)
		err = commit(b, file, result);
	free(result);
	if (err || !b->opt->rewrite || !b->opt->dir)
		return err;
	host_path(b, path);
	return host_cache_drop(path);
}

static int read_all(struct watch *w, const struct nfs_handle *file,
		    uint64_t seed)
{
	struct nfs_load load = plain_load(w->b, true);
	struct nfs_result *result = calloc(1, sizeof(*result));
	int err;

	if (!result)
		return -ENOMEM;
	load.file = *file;
	load.seed = seed;
	err = run_load(w, &load, "read", result);
	free(result);
	return err;
}

/* From the device where it can be reached. */
static int verify(struct watch *w, const struct nfs_handle *file)
{
	struct nfs_bench *b = w->b;
	char path[BENCH_PATH_MAX];
	uint64_t wrong = 0;
	int err;

	if (!b->opt->dir)
		return read_all(w, file, run_seed(b));
	host_path(b, path);
	err = host_cache_drop(path);
	if (!err)
		err = verify_file(&b->frame, path, run_seed(b),
				  b->records * b->opt->record, &wrong);
	if (err == -EUCLEAN)
		fprintf(stderr,
			"tailrace bench: %s: data differs on the device in "
			"the record at %ju\n",
			b->opt->name, (uintmax_t)wrong);
	else if (err && err != -EINTR)
		complain(b, path, err);
	return err;
}

/* ---- a run ---- */

struct snapshot {
	struct device_counters device;
	double cpu, client_cpu;
	int64_t rss;
};

static int snapshot_take(const struct nfs_bench *b, struct snapshot *s)
{
	struct timespec t;

	memset(s, 0, sizeof(*s));
	clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &t);
	s->client_cpu = (double)t.tv_sec + (double)t.tv_nsec * 1e-9;
	if (b->opt->dir)
		device_read_counters(&b->frame.device, &s->device);
	return b->opt->pid ? other_process(b->opt->pid, &s->cpu, &s->rss) : 0;
}

static void fill_row(struct nfs_row *row, const struct snapshot *before,
		     const struct snapshot *after, const struct watch *w)
{
	row->device = (struct device_counters){
		.reads = after->device.reads - before->device.reads,
		.read_sectors = after->device.read_sectors -
				before->device.read_sectors,
		.writes = after->device.writes - before->device.writes,
		.write_sectors = after->device.write_sectors -
				 before->device.write_sectors,
	};
	row->cpu_seconds = after->cpu - before->cpu;
	row->client_cpu_seconds = after->client_cpu - before->client_cpu;
	row->rss = max_of(w->rss_peak, after->rss);
	row->rss_growth = row->rss - before->rss;
}

static int measure(struct watch *w, const struct nfs_handle *file,
		   struct nfs_row *row)
{
	struct nfs_bench *b = w->b;
	const struct nfs_options *o = b->opt;
	struct nfs_load load = { .rpcs = b->rpcs,
				 .nr_connections = (unsigned)o->connections,
				 .depth = (unsigned)o->depth,
				 .nr_threads = (unsigned)o->threads,
				 .file = *file,
				 .pattern = &b->frame.pattern,
				 .seed = run_seed(b),
				 .records = b->records,
				 .passes = o->read ? o->passes : 1,
				 .stable = (enum nfs_stable)o->stable,
				 .calls = (enum nfs_calls)o->calls,
				 .commit_every = o->commit_every,
				 .read = o->read,
				 .random = o->random,
				 .sampled = true };
	struct snapshot before, after;
	char path[BENCH_PATH_MAX];
	uint64_t start, written;
	int err;

	/* The preparation's writes are not the run's. */
	sync();
	w->rss_peak = 0;
	err = snapshot_take(b, &before);
	if (err) {
		complain(b, "--pid", err);
		return err;
	}
	start = now_ns();
	err = run_load(w, &load, o->read ? "read" : "write", &row->result);
	written = now_ns();
	if (!err && row->result.committed[NFS_UNSTABLE])
		err = commit(b, file, &row->result);
	if (err)
		return err;
	row->seconds = (double)(now_ns() - start) * 1e-9;
	row->commit_seconds = (double)(now_ns() - written) * 1e-9;
	err = snapshot_take(b, &after);
	fill_row(row, &before, &after, w);
	if (o->dir) {
		host_path(b, path);
		row->host_cache_growth = host_cache_bytes(path);
	}
	return err;
}

static int run_file(struct watch *w, struct nfs_row *row)
{
	struct nfs_bench *b = w->b;
	const struct nfs_options *o = b->opt;
	/* What is read is what was prepared; what is rewritten is not. */
	uint64_t seed = run_seed(b) | (o->read ? 0 : 1);
	struct nfs_handle file;
	int err;

	err = nfs_client_create(b->rpcs[0], &b->root, FILE_NAME, &file);
	if (err) {
		complain(b, FILE_NAME, err);
		return err;
	}
	if (o->rewrite || o->read)
		err = prepare_data(w, &file, seed);
	if (!err && o->read)
		err = read_all(w, &file, seed);
	if (!err)
		err = measure(w, &file, row);
	/* Without --dir verify() does that. */
	if (!err && o->read && o->dir)
		err = read_all(w, &file, seed);
	if (!err)
		err = verify(w, &file);
	return err;
}

static int connect_all(struct nfs_bench *b)
{
	const struct nfs_options *o = b->opt;
	int err = 0;

	for (unsigned i = 0; i < o->connections && !err; i++)
		err = nfs_client_connect(o->server, (uint16_t)o->port,
					 &b->rpcs[i]);
	if (err)
		complain(b, "connect", err);
	return err;
}

static void disconnect_all(struct nfs_bench *b)
{
	for (unsigned i = 0; i < b->opt->connections; i++) {
		nfs_client_disconnect(b->rpcs[i]);
		b->rpcs[i] = NULL;
	}
}

/* The file of a run that failed goes over a connection of its own. */
static void remove_file(struct nfs_bench *b)
{
	struct rpc_context *rpc = NULL;
	int err = nfs_client_connect(b->opt->server, (uint16_t)b->opt->port,
				     &rpc);

	if (!err)
		err = nfs_client_remove(rpc, &b->root, FILE_NAME);
	if (err)
		complain(b, "remove " FILE_NAME, err);
	nfs_client_disconnect(rpc);
}

/* Connections are new for each run, as a client's that mounts. */
static int run_once(struct nfs_bench *b, struct nfs_row *row)
{
	struct watch w = { .b = b };
	int err;

	b->serial++;
	row->run = b->serial;
	err = connect_all(b);
	if (!err)
		err = nfs_client_remove(b->rpcs[0], &b->root, FILE_NAME);
	if (!err)
		err = run_file(&w, row);
	row->verified = !err;
	disconnect_all(b);
	if (!b->opt->keep)
		remove_file(b);
	return err;
}

static int run_all(struct nfs_bench *b)
{
	const struct nfs_options *o = b->opt;
	int err, worst = 0;

	b->rows = calloc(o->runs, sizeof(*b->rows));
	b->rpcs = calloc(o->connections, sizeof(struct rpc_context *));
	if (!b->rows || !b->rpcs)
		return -ENOMEM;
	err = nfs_client_mount(o->server, (uint16_t)o->mount_port, o->export,
			       &b->root);
	if (err) {
		complain(b, o->export, err);
		return err;
	}
	for (uint64_t run = 1; run <= o->runs; run++) {
		struct nfs_row *row = &b->rows[b->nr_rows];

		memset(row, 0, sizeof(*row));
		err = run_once(b, row);
		/* Data that differs is a row too: the report says so. */
		if (err && err != -EUCLEAN)
			return err;
		if (err)
			worst = err;
		if (run > 1 || o->runs == 1 || err)
			b->nr_rows++;
	}
	return worst;
}

static int nfs_main(const struct nfs_options *o)
{
	struct nfs_bench b = { .opt = o, .records = o->size / o->record };
	int err = 0, status = EXIT_FAILED;

	b.frame.started_ns = now_ns();
	if (o->dir)
		err = device_init(&b.frame.device, o->dir);
	if (err) {
		complain(&b, o->dir, err);
		return EXIT_FAILED;
	}
	err = pattern_init(&b.frame.pattern, o->record, 1);
	if (!err)
		err = bench_signals_init(&b.frame);
	if (!err)
		err = run_all(&b);
	if (!err || (err == -EUCLEAN && b.nr_rows))
		o->json ? nfs_report_json(&b) : nfs_report_table(&b);
	if (err == -EINTR)
		fprintf(stderr, "tailrace bench: interrupted\n");
	status = err ? EXIT_FAILED : EXIT_DONE;
	close(b.frame.signal_fd);
	pattern_fini(&b.frame.pattern);
	free(b.rows);
	free(b.rpcs);
	return status;
}

int bench_nfs(int argc, char **argv)
{
	struct nfs_options o = {
		.server = "127.0.0.1",
		.export = "/export",
		.port = 2049,
		.mount_port = 20048,
		.connections = 32,
		.depth = 1,
		.threads = 2,
		.record = 47008,
		.size = 512 << 20,
		.runs = 1,
		.passes = 1,
	};

	switch (options_parse(&usage, argc, argv, &o)) {
	case OPTIONS_HELP:
		return EXIT_DONE;
	case OPTIONS_WRONG:
		return EXIT_USAGE;
	case OPTIONS_DONE:
		break;
	}
	if (o.size < o.record) {
		fprintf(stderr, "%s: --size: less than one record\n",
			usage.command);
		return EXIT_USAGE;
	}
	if (o.passes > 1 && !o.read) {
		fprintf(stderr, "%s: --passes is of --read\n", usage.command);
		return EXIT_USAGE;
	}
	if (!o.name)
		o.name = o.server;
	return nfs_main(&o);
}

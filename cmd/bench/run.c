/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * One run: make the files, open them on the side, let the writers go, sync,
 * measure, close, drop the host's cache, verify, remove.
 *
 * Timed is from the moment all writers stand ready to the end of the last
 * file's sync. Device counters run on through the close, which is when a side
 * writes what it still holds. The driving thread watches meanwhile: it samples
 * memory, shows progress and takes SIGINT, which makes the writers stop at
 * their next record. A run that fails or is interrupted leaves no file behind.
 */
#include "cmd/bench/bench.h"

#include <errno.h>
#include <poll.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/eventfd.h>
#include <unistd.h>

#include "base/compiler.h"

/* How often memory is sampled: the peaks of a run of half a second show. */
#define SAMPLE_MS 10

struct run;

struct writer {
	struct run *run;
	pthread_t thread;
	unsigned nr;
	struct bench_flags flags;
	struct hist hist;
	_Atomic uint64_t bytes;
	uint64_t writes;
	int error;
	uint64_t error_off;
} ALIGNED(CACHE_LINE);

struct run {
	struct bench *b;
	const struct load *load;
	const struct contender *contender;
	struct side *side;
	struct side_file *files[BENCH_FILES_MAX];
	uint64_t seeds[BENCH_FILES_MAX];
	uint64_t written[BENCH_FILES_MAX]; /* bytes that verify expects */
	struct writer *writers;
	pthread_mutex_t lock;
	pthread_cond_t gate_moved;
	unsigned nr_ready; /* at the gate; lock */
	bool gate_open; /* lock */
	atomic_bool stop;
	atomic_uint writing; /* threads not yet done */
	int done_fd;
	int64_t rss_before, dirty_before;
	int64_t rss_peak, dirty_peak;
	double seconds, writing_seconds;
};

/* ---- the writers ---- */

static int write_record(struct writer *w, unsigned file, uint64_t index)
{
	struct run *r = w->run;
	uint64_t len = r->b->pattern.record, start;
	const char *data;
	ssize_t n;

	if (r->load->opt->random)
		index = pattern_shuffle(index, r->load->records);
	data = pattern_record(&r->b->pattern, r->seeds[file], index);
	start = now_ns();
	n = r->side->ops->write(r->files[file], data, len,
				(int64_t)(index * len), w->flags);
	hist_add(&w->hist, now_ns() - start);
	if (n == (ssize_t)len)
		return 0;
	w->error_off = index * len;
	return n < 0 ? (int)n : -EIO;
}

static void writer_run(struct writer *w)
{
	struct run *r = w->run;
	const struct load *l = r->load;
	unsigned first_file = l->interleaved ? 0 : w->nr;
	unsigned file_step = l->interleaved ? l->nr_files : l->nr_threads;
	uint64_t record = l->interleaved ? w->nr : 0;
	uint64_t record_step = l->interleaved ? l->nr_threads : 1;

	for (; record < l->records; record += record_step) {
		for (unsigned f = first_file; f < l->nr_files; f += file_step) {
			if (atomic_load_explicit(&r->stop,
						 memory_order_relaxed))
				return;
			w->error = write_record(w, f, record);
			if (w->error)
				return;
			w->writes++;
			atomic_store_explicit(&w->bytes,
					      w->writes * l->opt->record,
					      memory_order_relaxed);
		}
	}
}

static void *writer_main(void *arg)
{
	struct writer *w = arg;
	struct run *r = w->run;
	uint64_t one = 1;

	pthread_mutex_lock(&r->lock);
	r->nr_ready++;
	pthread_cond_broadcast(&r->gate_moved);
	while (!r->gate_open)
		pthread_cond_wait(&r->gate_moved, &r->lock);
	pthread_mutex_unlock(&r->lock);
	writer_run(w);
	if (w->error || r->load->compete)
		atomic_store(&r->stop, true);
	if (atomic_fetch_sub(&r->writing, 1) == 1 &&
	    write(r->done_fd, &one, sizeof(one)) < 0)
		w->error = -errno;
	return NULL;
}

/* ---- the driving thread ---- */

static void sample(struct run *r)
{
	r->rss_peak = max_of(r->rss_peak, process_rss_bytes());
	r->dirty_peak = max_of(r->dirty_peak, host_dirty_bytes());
}

static void watch_writers(struct run *r)
{
	struct pollfd fds[2] = { { .fd = r->done_fd, .events = POLLIN },
				 { .fd = r->b->signal_fd, .events = POLLIN } };
	char flags[BENCH_FLAGS_TEXT];
	struct progress progress = {
		.side = r->side->ops->name,
		.flags = flags,
		.round = r->b->serial,
		.rounds = r->b->nr_runs,
		.total = load_file_bytes(r->load) * r->load->nr_files,
		.since_ns = r->b->started_ns,
		.started_ns = now_ns(),
	};

	bench_flags_print(r->contender->flags, flags);
	while (atomic_load(&r->writing)) {
		uint64_t done = 0;

		/* An interrupted run has nothing more to ask the signal. */
		poll(fds, r->b->interrupted ? 1 : 2, SAMPLE_MS);
		if (bench_interrupted(r->b))
			atomic_store(&r->stop, true);
		if (fds[0].revents)
			continue;
		sample(r);
		for (unsigned i = 0; i < r->load->nr_threads; i++)
			done += atomic_load_explicit(&r->writers[i].bytes,
						     memory_order_relaxed);
		progress_show(&progress, done);
	}
	progress_end(&progress);
}

/* Starts all and waits until they stand at the gate; how many there are. */
static unsigned start_writers(struct run *r)
{
	unsigned n = r->load->nr_threads, i;
	int err;

	for (i = 0; i < n; i++) {
		struct writer *w = &r->writers[i];

		w->run = r;
		w->nr = i;
		w->flags = r->contender->flags;
		if (r->load->compete && i == 1)
			w->flags.mode = MODE_CACHED;
		err = pthread_create(&w->thread, NULL, writer_main, w);
		if (!err)
			continue;
		fprintf(stderr, "tailrace bench: writer %u: %s\n", i,
			strerror(err));
		break;
	}
	pthread_mutex_lock(&r->lock);
	while (r->nr_ready < i)
		pthread_cond_wait(&r->gate_moved, &r->lock);
	pthread_mutex_unlock(&r->lock);
	return i;
}

static void open_gate(struct run *r)
{
	pthread_mutex_lock(&r->lock);
	r->gate_open = true;
	pthread_cond_broadcast(&r->gate_moved);
	pthread_mutex_unlock(&r->lock);
}

/* The first error that a writer met. */
static int join_writers(struct run *r, unsigned n)
{
	int err = 0;

	for (unsigned i = 0; i < n; i++) {
		struct writer *w = &r->writers[i];

		pthread_join(w->thread, NULL);
		if (!w->error || err)
			continue;
		err = w->error;
		fprintf(stderr, "tailrace bench: %s: write at %ju: %s\n",
			r->side->ops->name, (uintmax_t)w->error_off,
			strerror(-err));
	}
	return err;
}

static int sync_files(struct run *r)
{
	int err = 0;

	for (unsigned f = 0; f < r->load->nr_files && !err; f++)
		err = r->side->ops->sync(r->files[f]);
	return err;
}

/* The timed part. */
static int write_and_sync(struct run *r)
{
	unsigned n = r->load->nr_threads, started;
	uint64_t start, written;
	int err;

	r->writers = aligned_alloc(CACHE_LINE, n * sizeof(*r->writers));
	if (!r->writers)
		return -ENOMEM;
	/* Touched now, not by the first latencies. */
	memset(r->writers, 0, n * sizeof(*r->writers));
	atomic_store(&r->writing, n);
	started = start_writers(r);
	if (started < n) {
		atomic_store(&r->stop, true);
		open_gate(r);
		join_writers(r, started);
		return -EAGAIN;
	}
	start = now_ns();
	open_gate(r);
	watch_writers(r);
	written = now_ns();
	err = join_writers(r, n);
	if (err || r->b->interrupted)
		return err ? err : -EINTR;
	err = sync_files(r);
	r->seconds = (double)(now_ns() - start) * 1e-9;
	r->writing_seconds = (double)(written - start) * 1e-9;
	sample(r);
	if (err)
		fprintf(stderr, "tailrace bench: %s: sync: %s\n",
			r->side->ops->name, strerror(-err));
	return err;
}

/* ---- before and after ---- */

static void remove_files(struct run *r)
{
	char path[BENCH_PATH_MAX];

	for (unsigned f = 0; f < r->load->nr_files; f++) {
		bench_path(r->b, f, path);
		unlink(path);
	}
}

/* Reads the file in order through the side's cache, so that readahead leaves
 * its large folios. */
static int read_through(struct run *r, unsigned file)
{
	uint64_t bytes = load_file_bytes(r->load);
	char *buf = malloc(1 << 20);
	ssize_t n = 0;

	if (!buf)
		return -ENOMEM;
	for (uint64_t off = 0; off < bytes && n >= 0; off += 1 << 20)
		n = r->side->ops->read(r->files[file], buf, 1 << 20,
				       (int64_t)off);
	free(buf);
	return n < 0 ? (int)n : 0;
}

static int open_file(struct run *r, unsigned f)
{
	const struct bench_options *o = r->load->opt;
	bool existing = o->rewrite || o->readahead_first;
	bool direct = r->contender->flags.mode == MODE_DIRECT;
	char path[BENCH_PATH_MAX];
	const char *what;
	double seconds;
	int err = 0;

	bench_path(r->b, f, path);
	r->seeds[f] = (uint64_t)r->b->serial << 16 | f;
	if (existing)
		err = sequential_write(path, load_file_bytes(r->load), true,
				       &seconds, &what);
	if (existing && !err)
		err = host_cache_drop(path);
	if (!err)
		err = r->side->ops->file_open(r->side, strrchr(path, '/') + 1,
					      !existing, direct, &r->files[f]);
	if (!err && o->readahead_first)
		err = read_through(r, f);
	if (err)
		fprintf(stderr, "tailrace bench: %s: %s: %s\n",
			r->side->ops->name, path, strerror(-err));
	return err;
}

static int close_files(struct run *r, bool forget)
{
	int ret, err = 0;

	for (unsigned f = 0; f < r->load->nr_files; f++) {
		if (!r->files[f])
			continue;
		if (forget)
			r->side->ops->forget(r->files[f]);
		ret = r->side->ops->file_close(r->files[f]);
		if (!err)
			err = ret;
		r->files[f] = NULL;
	}
	return err;
}

/* Files stay known to a side's cache after their last close; the next run's
 * count must start from none. */
static void forget_files(struct run *r)
{
	char path[BENCH_PATH_MAX];

	for (unsigned f = 0; f < r->load->nr_files; f++) {
		bench_path(r->b, f, path);
		if (r->side->ops->file_open(r->side, strrchr(path, '/') + 1,
					    false, false, &r->files[f]))
			r->files[f] = NULL;
	}
	close_files(r, true);
}

static int verify_files(struct run *r)
{
	char path[BENCH_PATH_MAX];
	uint64_t wrong = 0;
	int err = 0;

	for (unsigned f = 0; f < r->load->nr_files && !err; f++) {
		bench_path(r->b, f, path);
		err = host_cache_drop(path);
		if (!err)
			err = verify_file(r->b, path, r->seeds[f],
					  r->written[f], &wrong);
		if (err == -EUCLEAN)
			fprintf(stderr,
				"tailrace bench: %s: data differs on the "
				"device in the record at %ju\n",
				r->side->ops->name, (uintmax_t)wrong);
		else if (err && err != -EINTR)
			fprintf(stderr, "tailrace bench: %s: %s\n", path,
				strerror(-err));
	}
	return err;
}

/* ---- what a run came to ---- */

struct snapshot {
	struct device_counters device;
	struct tr_statistics statistics;
	bool has_statistics;
	double cpu;
};

static double cpu_seconds(void)
{
	struct timespec t;

	clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &t);
	return (double)t.tv_sec + (double)t.tv_nsec * 1e-9;
}

static void snapshot_take(struct run *r, struct snapshot *s)
{
	device_read_counters(&r->b->device, &s->device);
	s->has_statistics = r->side->ops->statistics(r->side, &s->statistics);
	s->cpu = cpu_seconds();
}

/* Latencies and amounts of the writers [first, end). */
static void fill_writers(struct run *r, struct bench_row *row, unsigned first,
			 unsigned end)
{
	struct hist *sum = calloc(1, sizeof(*sum));

	for (unsigned i = first; i < end; i++) {
		row->writes += r->writers[i].writes;
		if (sum)
			hist_merge(sum, &r->writers[i].hist);
	}
	row->bytes = row->writes * r->load->opt->record;
	if (!sum)
		return;
	row->p50_ns = hist_percentile(sum, 0.5);
	row->p99_ns = hist_percentile(sum, 0.99);
	row->p999_ns = hist_percentile(sum, 0.999);
	row->max_ns = sum->max_ns;
	free(sum);
}

/* before: ahead of the writers; synced: after the sync; closed: after that. */
static void fill_row(struct run *r, struct bench_row *row,
		     const struct snapshot *before,
		     const struct snapshot *synced,
		     const struct snapshot *closed)
{
	const struct tr_statistics *s0 = &before->statistics;
	const struct tr_statistics *s1 = &synced->statistics;
	const struct tr_statistics *s2 = &closed->statistics;

	for (unsigned i = 0; i < r->load->nr_threads; i++)
		row->run_bytes += atomic_load(&r->writers[i].bytes);
	row->seconds = r->seconds;
	row->cpu_seconds = synced->cpu - before->cpu;
	row->device = (struct device_counters){
		.reads = closed->device.reads - before->device.reads,
		.read_sectors = closed->device.read_sectors -
				before->device.read_sectors,
		.writes = closed->device.writes - before->device.writes,
		.write_sectors = closed->device.write_sectors -
				 before->device.write_sectors,
	};
	row->rss_growth = r->rss_peak - r->rss_before;
	row->peak_dirty = before->has_statistics
				  ? s2->peak_dirty * 4096
				  : r->dirty_peak - r->dirty_before;
	row->dontcache_dirty_after = s1->dontcache_dirty;
	row->edges_after = s2->edges_held;
	row->cached_pages_after = before->has_statistics
					  ? s2->cached_pages
					  : row->host_cache_growth / 4096;
	row->kicks = s2->kicks - s0->kicks;
	row->edges_aged = s2->edges_aged - s0->edges_aged;
	row->lazy_fills = s2->lazy_fills - s0->lazy_fills;
}

static void add_rows(struct run *r, const struct bench_row *common)
{
	static const char *const writers[] = { "uncached", "cached" };
	unsigned nr = r->load->compete ? 2 : 1;

	for (unsigned i = 0; i < nr; i++) {
		struct bench_row *row = &r->b->rows[r->b->nr_rows++];

		*row = *common;
		if (!r->load->compete) {
			fill_writers(r, row, 0, r->load->nr_threads);
			continue;
		}
		fill_writers(r, row, i, i + 1);
		/* Rates while both wrote: the sync belongs to neither. */
		row->seconds = r->writing_seconds;
		row->writer = writers[i];
		row->contender.flags = r->writers[i].flags;
	}
}

/* What the host's cache holds of the files now, and their extents. */
static void look_at_files(struct run *r, struct bench_row *row)
{
	char path[BENCH_PATH_MAX];

	for (unsigned f = 0; f < r->load->nr_files; f++) {
		bench_path(r->b, f, path);
		row->host_cache_growth += host_cache_bytes(path);
		row->extents += max_of(file_extents(path), (int64_t)0);
	}
}

static int open_and_write(struct run *r, struct bench_row *row)
{
	struct snapshot before, synced, closed;
	int err = 0;

	for (unsigned f = 0; f < r->load->nr_files && !err; f++)
		err = open_file(r, f);
	if (err)
		return err;
	/* The preparation's writes are not the run's. */
	sync();
	r->side->ops->reset_peak(r->side);
	r->rss_before = r->rss_peak = process_rss_bytes();
	r->dirty_before = r->dirty_peak = host_dirty_bytes();
	snapshot_take(r, &before);
	err = write_and_sync(r);
	if (err)
		return err;
	snapshot_take(r, &synced);
	for (unsigned f = 0; f < r->load->nr_files; f++)
		r->written[f] = r->load->compete
					? atomic_load(&r->writers[f].bytes)
					: load_file_bytes(r->load);
	err = close_files(r, false);
	if (err) {
		fprintf(stderr, "tailrace bench: %s: close: %s\n",
			r->side->ops->name, strerror(-err));
		return err;
	}
	/* Before the look at the files, which may read metadata. */
	snapshot_take(r, &closed);
	look_at_files(r, row);
	fill_row(r, row, &before, &synced, &closed);
	return 0;
}

int run_contender(struct bench *b, const struct contender *c, unsigned round,
		  bool keep)
{
	struct run *r = calloc(1, sizeof(*r));
	struct bench_row row = { .contender = *c, .round = round };
	int err;

	if (!r)
		return -ENOMEM;
	r->b = b;
	r->load = b->load;
	r->contender = c;
	r->side = b->sides[c->side];
	pthread_mutex_init(&r->lock, NULL);
	pthread_cond_init(&r->gate_moved, NULL);
	b->serial++;
	r->done_fd = eventfd(0, EFD_CLOEXEC);
	if (r->done_fd < 0) {
		err = -errno;
		goto out;
	}
	remove_files(r);
	sync();
	if (b->load->opt->drop_caches)
		host_cache_drop_all();
	err = open_and_write(r, &row);
	if (!err)
		err = verify_files(r);
	row.verified = !err;
	/* Data that differs is a row too: the report says so. */
	if ((!err || err == -EUCLEAN) && keep)
		add_rows(r, &row);
	close_files(r, true);
	forget_files(r);
	remove_files(r);
	close(r->done_fd);
out:
	free(r->writers);
	free(r);
	return err;
}

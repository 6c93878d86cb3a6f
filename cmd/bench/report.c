/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * What came out, for people (tables of 80 columns) and as JSON (keys are a
 * promise). Ratios are taken within a round, between runs that stood next to
 * each other, and the median of the rounds is what is reported.
 */
#include "cmd/bench/bench.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>

#include "base/compiler.h"
#include "cmd/json.h"

static double row_rate(const struct bench_row *r)
{
	return r->seconds > 0 ? (double)r->bytes / MIB / r->seconds : 0;
}

static double reads_per_write(const struct bench_row *r)
{
	return r->writes
		       ? (double)r->device.read_sectors / 8 / (double)r->writes
		       : 0;
}

static int compare_doubles(const void *a, const void *b)
{
	double x = *(const double *)a, y = *(const double *)b;

	return (x > y) - (x < y);
}

/* NAN of none. */
static double median(double *v, unsigned nr)
{
	qsort(v, nr, sizeof(*v), compare_doubles);
	if (!nr)
		return NAN;
	return nr % 2 ? v[nr / 2] : (v[nr / 2 - 1] + v[nr / 2]) / 2;
}

enum opponent {
	KERNEL_SAME_FLAGS,
	KERNEL_BUFFERED,
	OWN_CACHED,
	CEILING,
};

/* What the row is measured against in its round, MiB/s; 0: nothing. */
static double opponent_rate(const struct bench *b, const struct bench_row *row,
			    enum opponent opponent)
{
	int side = opponent == OWN_CACHED ? b->load->opt->side : SIDE_KERNEL;

	if (opponent == CEILING)
		return b->ceilings[row->round];
	for (unsigned i = 0; i < b->nr_rows; i++) {
		const struct bench_row *r = &b->rows[i];

		if (r == row || r->round != row->round ||
		    (int)r->contender.side != side || r->writer != row->writer)
			continue;
		if (r->contender.reference == (opponent != KERNEL_SAME_FLAGS))
			return row_rate(r);
	}
	return 0;
}

/* Of the first contender's rows (compete: its uncached writer's). */
static double median_ratio(const struct bench *b, enum opponent opponent)
{
	double result, *v = calloc(b->nr_rows + 1, sizeof(*v));
	unsigned nr = 0;

	if (!v)
		return NAN;
	for (unsigned i = 0; i < b->nr_rows; i++) {
		const struct bench_row *r = &b->rows[i];
		double other;

		if ((int)r->contender.side != b->load->opt->side ||
		    r->contender.reference ||
		    (r->writer && r->writer[0] == 'c'))
			continue;
		other = opponent_rate(b, r, opponent);
		if (other > 0)
			v[nr++] = row_rate(r) / other;
	}
	result = median(v, nr);
	free(v);
	return result;
}

static double median_ceiling(const struct bench *b)
{
	unsigned runs = (unsigned)b->load->opt->runs;
	double result, *v = calloc(runs + 1, sizeof(*v));
	unsigned nr = 0;

	if (!v)
		return NAN;
	for (unsigned i = runs > 1 ? 2 : 1; i <= runs; i++) {
		if (b->ceilings[i] > 0)
			v[nr++] = b->ceilings[i];
	}
	result = median(v, nr);
	free(v);
	return result;
}

/* ---- for people ---- */

/* Each contender's runs together, in the order they were listed. */
static int compare_rows(const void *a, const void *b)
{
	const struct bench_row *x = a, *y = b;

	if (x->contender.nr != y->contender.nr)
		return x->contender.nr < y->contender.nr ? -1 : 1;
	if (x->writer != y->writer)
		return x->writer[0] == 'u' ? -1 : 1;
	return (x->round > y->round) - (x->round < y->round);
}

static const char *side_name(const struct bench *b, const struct bench_row *r)
{
	return b->sides[r->contender.side]->ops->name;
}

static void print_heading(const struct bench *b)
{
	const struct load *l = b->load;

	printf("%s: %u writer%s, %u file%s of %.0f MiB, %ju-byte records%s, "
	       "%s\n"
	       "device %s, %u-byte blocks\n\n",
	       l->workload, l->nr_threads, l->nr_threads > 1 ? "s" : "",
	       l->nr_files, l->nr_files > 1 ? "s" : "",
	       (double)load_file_bytes(l) / MIB, (uintmax_t)l->opt->record,
	       l->opt->random ? " in random order" : "",
	       l->opt->readahead_first ? "over a file just read"
	       : l->opt->rewrite       ? "rewriting"
				       : "new",
	       b->device.name, b->device.block);
}

static void print_speeds(const struct bench *b)
{
	char flags[BENCH_FLAGS_TEXT];

	printf("%-8s %-15s %8s %8s %8s %8s %8s %9s\n", "side", "flags", "MiB/s",
	       "p50 us", "p99 us", "p99.9 us", "max us", "reads/wr");
	for (unsigned i = 0; i < b->nr_rows; i++) {
		const struct bench_row *r = &b->rows[i];

		bench_flags_print(r->contender.flags, flags);
		printf("%-8s %-15s %8.1f %8.1f %8.1f %8.0f %8.0f %9.5f\n",
		       side_name(b, r), flags, row_rate(r),
		       (double)r->p50_ns / 1e3, (double)r->p99_ns / 1e3,
		       (double)r->p999_ns / 1e3, (double)r->max_ns / 1e3,
		       reads_per_write(r));
	}
}

static void print_costs(const struct bench *b)
{
	char flags[BENCH_FLAGS_TEXT];

	printf("\n%-8s %-15s %7s %7s %8s %8s %7s %7s %4s\n", "side", "flags",
	       "cpu s", "wr/data", "dirty M", "host M", "RSS M", "extents",
	       "data");
	for (unsigned i = 0; i < b->nr_rows; i++) {
		const struct bench_row *r = &b->rows[i];

		bench_flags_print(r->contender.flags, flags);
		printf("%-8s %-15s %7.2f %7.3f %8.1f %8.1f %7.1f %7jd %4s\n",
		       side_name(b, r), flags, r->cpu_seconds,
		       (double)r->device.write_sectors * 512 /
			       (double)max_of(r->run_bytes, (uint64_t)1),
		       (double)r->peak_dirty / MIB,
		       (double)r->host_cache_growth / MIB,
		       (double)r->rss_growth / MIB, (intmax_t)r->extents,
		       r->verified ? "ok" : "BAD");
	}
}

static void print_ratio(const char *what, double ratio)
{
	if (isfinite(ratio))
		printf("%-40s %8.2f\n", what, ratio);
}

void report_table(struct bench *b)
{
	qsort(b->rows, b->nr_rows, sizeof(*b->rows), compare_rows);
	print_heading(b);
	print_speeds(b);
	print_costs(b);
	printf("\n");
	print_ratio("ceiling, MiB/s", median_ceiling(b));
	print_ratio("against the ceiling", median_ratio(b, CEILING));
	print_ratio("against its own cached writes",
		    median_ratio(b, OWN_CACHED));
	if (b->load->opt->side == SIDE_KERNEL)
		return;
	print_ratio("against the kernel, same flags",
		    median_ratio(b, KERNEL_SAME_FLAGS));
	print_ratio("against the kernel, buffered",
		    median_ratio(b, KERNEL_BUFFERED));
}

/* ---- as JSON ---- */

static void json_latency(struct json *j, const char *key, uint64_t ns)
{
	json_real(j, key, (double)ns / 1e3, 2);
}

static void json_row(struct json *j, const struct bench *b,
		     const struct bench_row *r)
{
	const struct bench_options *o = b->load->opt;
	char flags[BENCH_FLAGS_TEXT];

	bench_flags_print(r->contender.flags, flags);
	json_object_start(j, NULL);
	json_string(j, "side", side_name(b, r));
	json_string(j, "flags", flags);
	if (r->writer)
		json_string(j, "writer", r->writer);
	json_int(j, "record", (int64_t)o->record);
	json_int(j, "threads", b->load->nr_threads);
	json_bool(j, "rewrite", o->rewrite);
	json_int(j, "run", r->round);
	json_int(j, "writes", (int64_t)r->writes);
	json_int(j, "bytes", (int64_t)r->bytes);
	json_int(j, "run_bytes", (int64_t)r->run_bytes);
	json_real(j, "seconds", r->seconds, 4);
	json_real(j, "mib_per_s", row_rate(r), 1);
	json_latency(j, "p50_us", r->p50_ns);
	json_latency(j, "p99_us", r->p99_ns);
	json_latency(j, "p999_us", r->p999_ns);
	json_latency(j, "max_us", r->max_ns);
	json_real(j, "cpu_seconds", r->cpu_seconds, 3);
	json_int(j, "device_reads", (int64_t)r->device.reads);
	json_int(j, "device_reads_4k", (int64_t)r->device.read_sectors / 8);
	json_real(j, "device_reads_per_write", reads_per_write(r), 6);
	json_int(j, "device_writes", (int64_t)r->device.writes);
	json_int(j, "device_write_bytes",
		 (int64_t)r->device.write_sectors * 512);
	json_real(j, "peak_dirty_mib", (double)r->peak_dirty / MIB, 1);
	json_real(j, "host_cache_growth_mib",
		  (double)r->host_cache_growth / MIB, 1);
	json_real(j, "rss_growth_mib", (double)r->rss_growth / MIB, 1);
	json_int(j, "cached_pages_after", r->cached_pages_after);
	json_int(j, "dontcache_dirty_after", r->dontcache_dirty_after);
	json_int(j, "edges_after", r->edges_after);
	json_int(j, "kicks", r->kicks);
	json_int(j, "edges_aged", r->edges_aged);
	json_int(j, "lazy_fills", r->lazy_fills);
	json_int(j, "extents", r->extents);
	json_bool(j, "verified", r->verified);
	json_object_end(j);
}

static void json_statistics(struct json *j, const struct bench *b)
{
	struct tr_statistics t;

	json_object_start(j, "statistics");
	for (int i = 0; i < SIDES; i++) {
		struct side *s = b->sides[i];

		if (!s || !s->ops->statistics(s, &t))
			continue;
		json_object_start(j, s->ops->name);
#define JSON_ROW(name, unit, sentence) json_int(j, #name, t.name);
		TR_STATISTICS(JSON_ROW)
#undef JSON_ROW
		json_object_end(j);
	}
	json_object_end(j);
}

void report_json(const struct bench *b)
{
	struct json j;

	json_init(&j, stdout);
	json_object_start(&j, NULL);
	json_string(&j, "workload", b->load->workload);
	json_string(&j, "device", b->device.name);
	json_int(&j, "block", b->device.block);
	json_int(&j, "files", b->load->nr_files);
	json_bool(&j, "random", b->load->opt->random);
	json_bool(&j, "readahead_first", b->load->opt->readahead_first);
	json_array_start(&j, "rows");
	for (unsigned i = 0; i < b->nr_rows; i++)
		json_row(&j, b, &b->rows[i]);
	json_array_end(&j);
	json_object_start(&j, "ceiling");
	if (b->ceiling_what) {
		json_string(&j, "what", b->ceiling_what);
		json_real(&j, "mib_per_s", median_ceiling(b), 1);
	}
	json_object_end(&j);
	json_object_start(&j, "ratios");
	json_real(&j, "vs_kernel_same_flags",
		  b->load->opt->side == SIDE_KERNEL
			  ? NAN
			  : median_ratio(b, KERNEL_SAME_FLAGS),
		  3);
	json_real(&j, "vs_kernel_buffered", median_ratio(b, KERNEL_BUFFERED),
		  3);
	json_real(&j, "vs_own_cached", median_ratio(b, OWN_CACHED), 3);
	json_real(&j, "vs_ceiling", median_ratio(b, CEILING), 3);
	json_object_end(&j);
	if (b->load->opt->stats)
		json_statistics(&j, b);
	json_object_end(&j);
	putchar('\n');
}

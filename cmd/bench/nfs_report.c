/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * What the runs of bench nfs came to, for people and as JSON. Facts that were
 * not measured, because neither --dir nor --pid told where, are left out.
 */
#include "cmd/bench/nfs.h"

#include <stdio.h>

#include "base/compiler.h"
#include "cmd/json.h"

static const char *const committed_names[] = { "UNSTABLE", "DATA_SYNC",
					       "FILE_SYNC" };

static double row_rate(const struct nfs_row *r)
{
	return r->seconds > 0 ? (double)r->result.bytes / MIB / r->seconds : 0;
}

static double reads_per_call(const struct nfs_row *r)
{
	return r->result.calls ? (double)r->device.read_sectors / 8 /
					 (double)r->result.calls
			       : 0;
}

static double cpu_per_gib(const struct nfs_row *r)
{
	return r->result.bytes
		       ? r->cpu_seconds * 1024 * MIB / (double)r->result.bytes
		       : 0;
}

/* The most that one reply promised less of: what a client must believe. */
static const char *committed(const struct nfs_row *r)
{
	for (int i = 0; i < NFS_STABLES; i++)
		if (r->result.committed[i])
			return committed_names[i];
	return "-";
}

static double percentile_us(const struct hist *h, double share)
{
	return (double)hist_percentile(h, share) / 1e3;
}

void nfs_report_table(const struct nfs_bench *b)
{
	const struct nfs_options *o = b->opt;

	printf("nfs: %s, %ju connection%s with %ju record%s each, a file of "
	       "%.0f MiB,\n%s %ju-byte records%s%s, %s\n\n",
	       o->name, (uintmax_t)o->connections,
	       o->connections > 1 ? "s" : "", (uintmax_t)o->depth,
	       o->depth > 1 ? "s" : "",
	       (double)b->records * (double)o->record / MIB,
	       o->read ? "reading" : "writing", (uintmax_t)o->record,
	       o->calls == CALLS_ROW	? " as two calls in a row"
	       : o->calls == CALLS_PAIR ? " as two calls at once"
					: "",
	       o->random ? " in random order" : "",
	       o->read	    ? "cached"
	       : o->rewrite ? "rewriting"
			    : "new");
	printf("%-10s %8s %8s %8s %8s %8s %9s %8s %4s\n", "committed", "MiB/s",
	       "p50 us", "p99 us", "p99.9 us", "max us", "commits", "commit s",
	       "data");
	for (unsigned i = 0; i < b->nr_rows; i++) {
		const struct nfs_row *r = &b->rows[i];
		const struct hist *h = &r->result.latency;

		printf("%-10s %8.1f %8.1f %8.1f %8.0f %8.0f %9ju %8.3f %4s\n",
		       committed(r), row_rate(r), percentile_us(h, 0.5),
		       percentile_us(h, 0.99), percentile_us(h, 0.999),
		       (double)h->max_ns / 1e3, (uintmax_t)r->result.commits,
		       r->commit_seconds, r->verified ? "ok" : "BAD");
	}
	if (!o->pid && !o->dir)
		return;
	printf("\n%10s %10s %10s %10s %10s %10s\n", "cpu s/GiB", "RSS MiB",
	       "reads", "reads/call", "wr/data", "host MiB");
	for (unsigned i = 0; i < b->nr_rows; i++) {
		const struct nfs_row *r = &b->rows[i];

		printf("%10.2f %10.1f %10ju %10.5f %10.3f %10.1f\n",
		       cpu_per_gib(r), (double)r->rss / MIB,
		       (uintmax_t)r->device.reads, reads_per_call(r),
		       (double)r->device.write_sectors * 512 /
			       (double)max_of(r->result.bytes, (uint64_t)1),
		       (double)r->host_cache_growth / MIB);
	}
}

static void json_device(struct json *j, const struct nfs_row *r)
{
	json_int(j, "device_reads", (int64_t)r->device.reads);
	json_int(j, "device_reads_4k", (int64_t)r->device.read_sectors / 8);
	json_real(j, "device_reads_per_write", reads_per_call(r), 6);
	json_int(j, "device_writes", (int64_t)r->device.writes);
	json_int(j, "device_write_bytes",
		 (int64_t)r->device.write_sectors * 512);
	json_real(j, "host_cache_growth_mib",
		  (double)r->host_cache_growth / MIB, 1);
}

static void json_process(struct json *j, const struct nfs_row *r)
{
	json_real(j, "cpu_seconds", r->cpu_seconds, 3);
	json_real(j, "cpu_seconds_per_gib", cpu_per_gib(r), 3);
	json_real(j, "rss_mib", (double)r->rss / MIB, 1);
	json_real(j, "rss_growth_mib", (double)r->rss_growth / MIB, 1);
}

static void json_row(struct json *j, const struct nfs_bench *b,
		     const struct nfs_row *r)
{
	const struct nfs_options *o = b->opt;
	const struct hist *h = &r->result.latency;

	json_object_start(j, NULL);
	json_string(j, "side", o->name);
	json_string(j, "stable", nfs_stable_names[o->stable]);
	json_string(j, "committed", committed(r));
	json_string(j, "calls", nfs_calls_names[o->calls]);
	json_int(j, "record", (int64_t)o->record);
	json_int(j, "connections", (int64_t)o->connections);
	json_int(j, "depth", (int64_t)o->depth);
	json_bool(j, "random", o->random);
	json_bool(j, "rewrite", o->rewrite);
	json_bool(j, "read", o->read);
	json_int(j, "passes", o->read ? (int64_t)o->passes : 1);
	json_int(j, "run", r->run);
	json_int(j, "writes", (int64_t)r->result.calls);
	json_int(j, "bytes", (int64_t)r->result.bytes);
	json_real(j, "seconds", r->seconds, 4);
	json_real(j, "mib_per_s", row_rate(r), 1);
	json_int(j, "commits", (int64_t)r->result.commits);
	json_real(j, "commit_seconds", r->commit_seconds, 4);
	json_real(j, "commit_p50_us",
		  percentile_us(&r->result.commit_latency, 0.5), 2);
	json_real(j, "commit_p99_us",
		  percentile_us(&r->result.commit_latency, 0.99), 2);
	json_real(j, "p50_us", percentile_us(h, 0.5), 2);
	json_real(j, "p99_us", percentile_us(h, 0.99), 2);
	json_real(j, "p999_us", percentile_us(h, 0.999), 2);
	json_real(j, "max_us", (double)h->max_ns / 1e3, 2);
	json_real(j, "client_cpu_seconds", r->client_cpu_seconds, 3);
	if (o->pid)
		json_process(j, r);
	if (o->dir)
		json_device(j, r);
	json_bool(j, "verified", r->verified);
	json_object_end(j);
}

void nfs_report_json(const struct nfs_bench *b)
{
	struct json j;

	json_init(&j, stdout);
	json_object_start(&j, NULL);
	json_string(&j, "workload", "nfs");
	if (b->opt->dir) {
		json_string(&j, "device", b->frame.device.name);
		json_int(&j, "block", b->frame.device.block);
	}
	json_array_start(&j, "rows");
	for (unsigned i = 0; i < b->nr_rows; i++)
		json_row(&j, b, &b->rows[i]);
	json_array_end(&j);
	json_object_end(&j);
	putchar('\n');
}

/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * Statistics, from the tables in which each module lists its own.
 *
 * Domains come in the order and by the names that people know from Linux's bdi
 * statistics (mm/backing-dev.c), in kB; then what is ours. A device is named by
 * its numbers, as there.
 */
#include "ctl/stat.h"

#include "base/clock.h"
#include "base/mem.h"
#include "base/trace.h"
#include "cache/cache.h"
#include "fs/exports.h"
#include "fs/file.h"
#include "nfs/nfs.h"

#include <arpa/inet.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>
#include <sys/sysmacros.h>
#include <unistd.h>

/* A domain for each file system and memory group; more are left out. */
#define DOMAINS_MAX 256

static void put(struct text *out, const char *name, uint64_t value,
		const char *unit)
{
	text_printf(out, "%s %" PRIu64 " %s\n", name, value, unit);
}

static void put_section(struct text *out, const char *kind, const char *name)
{
	text_printf(out, "@%s ", kind);
	text_word(out, name);
	text_add(out, "\n", 1);
}

/* ---- the server and the cache ---- */

static void put_server(const struct ctl_env *env,
		       const struct stat_control *control, struct text *out)
{
	uint64_t files, fds;

	file_table_read(env->fs->files, &files, &fds);
	text_printf(out, "@server\nversion %s text\n", env->version);
	put(out, "pid", (uint64_t)getpid(), "number");
	put(out, "uptime_ms", (clock_ns() - control->start_ns) / NS_PER_MS,
	    "ms");
	put(out, "files", files, "count");
	put(out, "file_descriptors", fds, "count");
	put(out, "control_clients", control->clients, "count");
	put(out, "trace_clients", control->trace_clients, "count");
	put(out, "traces_lost", trace_lost(), "count");
}

static void put_cache(const struct ctl_env *env, struct text *out)
{
	struct tr_statistics s;

	tr_cache_statistics(env->fs->options.cache, &s);
	text_printf(out, "@cache\n");
#define ROW_(name, unit, sentence)                                             \
	text_printf(out, "%s %" PRId64 " %s\n", #name, s.name, unit);
	TR_STATISTICS(ROW_)
#undef ROW_
}

static void put_rpc(const struct ctl_env *env, struct text *out)
{
	struct rpc_statistics s;

	rpc_server_statistics(env->rpc, &s);
	text_printf(out, "@rpc\n");
#define ROW_(name, sentence) put(out, #name, s.name, "count");
	RPC_STATISTICS(ROW_)
#undef ROW_
}

/* ---- writeback domains ---- */

static uint64_t kb(int64_t pages)
{
	/* Sums over CPUs may be off below 0 for a moment. */
	return (uint64_t)max_of(pages, (int64_t)0) * 4;
}

static void device_name(struct fs_server *fs, const struct tr_store *store,
			char *buf, size_t len)
{
	int nr = atomic_load(&fs->nr_exports), i;

	snprintf(buf, len, "unknown");
	for (i = 0; i < nr; i++) {
		const struct fs_volume *v = fs->exports[i]->volume;

		if (v->store == store)
			snprintf(buf, len, "%u:%u", major(v->dev),
				 minor(v->dev));
	}
}

static uint64_t limit_kb(const struct ctl_env *env, const char *name)
{
	int64_t bytes = 0;

	(void)!tr_cache_get(env->fs->options.cache, name, &bytes);
	return (uint64_t)bytes / 1024;
}

/* Prefix is Bdi or Wb; the rows that both have. */
static void put_pages(const char *prefix, const struct wb_statistics *s,
		      uint64_t thresh, uint64_t background, struct text *out)
{
	bool bdi = !strcmp(prefix, "Bdi");

	text_printf(out, "%sWriteback %" PRIu64 " kB\n", prefix,
		    kb(s->writeback));
	text_printf(out, "%sReclaimable %" PRIu64 " kB\n", prefix,
		    kb(s->reclaimable));
	text_printf(out, "%sDontcacheDirty %" PRIu64 " kB\n", prefix,
		    kb(s->dontcache_dirty));
	text_printf(out, "%sDirtyThresh %" PRIu64 " kB\n", prefix, thresh);
	if (bdi) {
		put(out, "DirtyThresh", thresh, "kB");
		put(out, "BackgroundThresh", background, "kB");
	}
	text_printf(out, "%sDirtied %" PRIu64 " kB\n", prefix, kb(s->dirtied));
	text_printf(out, "%sWritten %" PRIu64 " kB\n", prefix, kb(s->written));
	text_printf(out, "%sWriteBandwidth %" PRIu64 " kBps\n", prefix,
		    s->bandwidth / 1024);
	put(out, "b_dirty", s->b_dirty, "count");
	put(out, "b_io", s->b_io, "count");
	put(out, "b_more_io", s->b_more_io, "count");
	put(out, "state", s->state, "hex");
}

static void put_passes(const struct wb_statistics *s, struct text *out)
{
	static const char *const names[WB_REASONS] = {
		[WB_REASON_BACKGROUND] = "passes_background",
		[WB_REASON_PERIODIC] = "passes_periodic",
		[WB_REASON_SYNC] = "passes_sync",
		[WB_REASON_RECLAIM] = "passes_reclaim",
		[WB_REASON_DONTCACHE] = "passes_dontcache",
		[WB_REASON_EDGE_AGE] = "passes_edge_age",
	};

	text_printf(out, "EdgeDirty %" PRIu64 " kB\n", kb(s->edge_dirty));
	put(out, "kicks", s->kicks, "count");
	for (int i = 0; i < WB_REASONS; i++)
		put(out, names[i], s->passes[i], "count");
}

static void put_device(const struct wb_statistics *s, struct text *out)
{
	static const char *const names[BDI_TOTALS] = {
		[BDI_READS] = "device_reads",
		[BDI_READ_BYTES] = "device_read_bytes",
		[BDI_WRITES] = "device_writes",
		[BDI_WRITE_BYTES] = "device_write_bytes",
		[BDI_SYNCS] = "device_syncs",
	};

	for (int i = 0; i < BDI_TOTALS; i++)
		put(out, names[i], (uint64_t)max_of(s->device[i], (int64_t)0),
		    i == BDI_READ_BYTES || i == BDI_WRITE_BYTES ? "bytes"
								: "count");
	put(out, "device_reads_4k", (uint64_t)s->device[BDI_READ_BYTES] / 4096,
	    "count");
	put(out, "device_writes_4k",
	    (uint64_t)s->device[BDI_WRITE_BYTES] / 4096, "count");
}

/* Adds a domain's numbers to its device's. */
static void add_domain(struct wb_statistics *sum, const struct wb_statistics *s)
{
	sum->state |= s->state;
	sum->writeback += s->writeback;
	sum->reclaimable += s->reclaimable;
	sum->edge_dirty += s->edge_dirty;
	sum->dontcache_dirty += s->dontcache_dirty;
	sum->dirtied += s->dirtied;
	sum->written += s->written;
	sum->bandwidth += s->bandwidth;
	sum->b_dirty += s->b_dirty;
	sum->b_io += s->b_io;
	sum->b_more_io += s->b_more_io;
	sum->kicks += s->kicks;
	for (int i = 0; i < WB_REASONS; i++)
		sum->passes[i] += s->passes[i];
}

static void put_domains(const struct ctl_env *env, struct text *out)
{
	struct wb_statistics *all = mem_zalloc_array(DOMAINS_MAX, sizeof(*all));
	uint64_t thresh = limit_kb(env, "dirty_limit");
	uint64_t background = limit_kb(env, "dirty_background");
	struct wb_statistics sum;
	unsigned nr, i, j;
	char name[32];

	if (!all) {
		out->full = true;
		return;
	}
	nr = cache_wb_statistics(env->fs->options.cache, all, DOMAINS_MAX);
	for (i = 0; i < nr; i = j) {
		sum = all[i];
		for (j = i + 1; j < nr && all[j].store == sum.store; j++)
			add_domain(&sum, &all[j]);
		device_name(env->fs, sum.store, name, sizeof(name));
		put_section(out, "bdi", name);
		put_pages("Bdi", &sum, thresh, background, out);
		put_passes(&sum, out);
		put_device(&sum, out);
	}
	for (i = 0; i < nr; i++) {
		device_name(env->fs, all[i].store, name, sizeof(name));
		put_section(out, "wb", name);
		put(out, "WbCgIno", all[i].group, "number");
		put_pages("Wb", &all[i], thresh, background, out);
		put_passes(&all[i], out);
	}
	mem_free(all);
}

/* ---- operations ---- */

static void put_ops(struct text *out, const struct opstat_sum *s)
{
	put(out, "operations", s->count, "count");
	put(out, "bytes_in", s->bytes_in, "bytes");
	put(out, "bytes_out", s->bytes_out, "bytes");
	put(out, "mean_us", s->count ? s->ns / s->count / NS_PER_US : 0, "us");
	put(out, "p50_us", opstat_percentile(s, 500), "us");
	put(out, "p99_us", opstat_percentile(s, 990), "us");
	put(out, "p999_us", opstat_percentile(s, 999), "us");
	put(out, "max_us", s->max_ns / NS_PER_US, "us");
}

static void add_ops(struct opstat_sum *to, const struct opstat_sum *s)
{
	to->count += s->count;
	to->bytes_in += s->bytes_in;
	to->bytes_out += s->bytes_out;
	to->ns += s->ns;
	to->max_ns = max_of(to->max_ns, s->max_ns);
	for (int b = 0; b < OPSTAT_BUCKETS; b++)
		to->latency[b] += s->latency[b];
}

/* One section for each procedure that was called. */
static void put_procedures(struct text *out, const struct opstat_sum *ops,
			   unsigned nr)
{
	for (unsigned i = 0; i < nr && i < nfs3_nr_procs; i++) {
		if (!ops[i].count)
			continue;
		put_section(out, "@ops", nfs3_procs[i].name);
		put_ops(out, &ops[i]);
	}
}

static bool is_async(struct fs_export *x)
{
	const struct export_entry *e;
	bool async = false;

	rcu_read_lock();
	e = rcu_dereference(x->entry);
	for (int i = 0; e && i < e->nr_clients; i++)
		async |= !e->clients[i].options.sync;
	rcu_read_unlock();
	return async;
}

static void put_export(struct fs_export *x, struct text *out)
{
	struct opstat_sum ops[FS_OPS_MAX] = { 0 }, sum = { 0 };

	for (int i = 0; i < FS_OPS_MAX; i++) {
		opstat_read(&x->ops[i], &ops[i]);
		add_ops(&sum, &ops[i]);
	}
	put_section(out, "exports", x->path);
	text_printf(out, "async %c bool\n", is_async(x) ? 'Y' : 'N');
	put(out, "bytes_read", atomic_load(&x->bytes_read), "bytes");
	put(out, "bytes_written", atomic_load(&x->bytes_written), "bytes");
	put(out, "verifier", atomic_load(&x->verifier), "hex");
	put_ops(out, &sum);
	put_procedures(out, ops, FS_OPS_MAX);
}

static void put_client(const struct rpc_client_statistics *c, void *arg)
{
	static const uint8_t mapped[12] = { [10] = 0xff, [11] = 0xff };
	static const uint8_t none[16] = { 0 };
	char name[INET6_ADDRSTRLEN] = "other";
	struct opstat_sum sum = { 0 };
	struct text *out = arg;

	if (!memcmp(c->addr, mapped, sizeof(mapped)))
		inet_ntop(AF_INET, c->addr + sizeof(mapped), name,
			  sizeof(name));
	else if (memcmp(c->addr, none, sizeof(none)))
		inet_ntop(AF_INET6, c->addr, name, sizeof(name));
	for (int i = 0; i < RPC_CLIENT_OPS; i++)
		add_ops(&sum, &c->ops[i]);
	put_section(out, "clients", name);
	put(out, "connections", c->conns, "count");
	put(out, "calls", c->calls, "count");
	put(out, "wakeups", c->wakeups, "count");
	put_ops(out, &sum);
	put_procedures(out, c->ops, RPC_CLIENT_OPS);
}

void stat_put(const struct ctl_env *env, const struct stat_control *control,
	      struct text *out)
{
	int nr = atomic_load(&env->fs->nr_exports), i;

	put_server(env, control, out);
	put_cache(env, out);
	put_rpc(env, out);
	put_domains(env, out);
	for (i = 0; i < nr; i++)
		if (env->fs->exports[i]->entry)
			put_export(env->fs->exports[i], out);
	rpc_server_clients(env->rpc, put_client, out);
}

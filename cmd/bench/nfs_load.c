/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * A slot is one record on its way: its one or two calls, then perhaps a
 * COMMIT, then the connection's next record. All of it happens in the
 * callbacks of replies, on the thread that serves the connection.
 *
 * A short reply is continued where it ended. The first error ends the load;
 * calls that are still out are then cancelled with their connection.
 */
#include "cmd/bench/nfs_load.h"

#include <errno.h>
#include <poll.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include <nfsc/libnfs-zdr.h>
#include <nfsc/libnfs.h>
#include <nfsc/libnfs-raw.h>
#include <nfsc/libnfs-raw-nfs.h>

#include "base/compiler.h"

/* Of data that is compared in samples: so many bytes of each so many. */
#define SAMPLE_LEN 64
#define SAMPLE_STEP 4096

/* How soon a stop is seen when no reply comes. */
#define POLL_MS 100

struct slot;

struct part {
	struct slot *slot;
	uint64_t off, start_ns;
	size_t len;
	const char *data; /* what is written, or must be read */
};

struct slot {
	struct connection *conn;
	struct part parts[2];
	unsigned nr_parts, issued, done;
	uint64_t commit_start_ns;
};

struct connection {
	struct worker *worker;
	struct rpc_context *rpc;
	uint64_t next; /* record */
	uint64_t since_commit;
	struct slot *slots;
};

struct worker {
	const struct nfs_load *load;
	struct nfs_run *run;
	pthread_t thread;
	struct connection *conns;
	struct pollfd *fds;
	unsigned nr_conns;
	unsigned active; /* slots with a call out */
	int err;
	struct nfs_result result;
} ALIGNED(CACHE_LINE);

struct nfs_run {
	struct nfs_load load;
	struct nfs_progress *progress;
	struct worker *workers;
	struct connection *conns;
	struct slot *slots;
	struct pollfd *fds;
	unsigned nr_started;
	atomic_uint running;
};

static uint64_t now_ns(void)
{
	struct timespec t;

	clock_gettime(CLOCK_MONOTONIC, &t);
	return (uint64_t)t.tv_sec * 1000000000u + (uint64_t)t.tv_nsec;
}

static void slot_next(struct slot *s);
static void part_send(struct part *p);

static nfs_fh3 wire_file(const struct nfs_load *l)
{
	return (nfs_fh3){ .data = { .data_len = l->file.len,
				    .data_val = (char *)l->file.bytes } };
}

static void worker_fail(struct worker *w, int err)
{
	if (!w->err)
		w->err = err;
	atomic_store(&w->run->progress->stop, true);
}

static void note_verifier(struct nfs_result *r, const char *verifier)
{
	static const char none[NFS_VERIFIER_LEN];

	if (!memcmp(r->verifier, none, NFS_VERIFIER_LEN))
		memcpy(r->verifier, verifier, NFS_VERIFIER_LEN);
	else if (memcmp(r->verifier, verifier, NFS_VERIFIER_LEN))
		r->verifier_changed = true;
}

/* ---- the end of a record ---- */

static void commit_replied(struct rpc_context *rpc, int status, void *data,
			   void *arg)
{
	struct slot *s = arg;
	struct worker *w = s->conn->worker;
	const COMMIT3res *res = data;
	int err = -EIO;

	w->active--;
	if (status == RPC_STATUS_SUCCESS)
		err = nfsstat3_to_errno((int)res->status);
	if (err) {
		worker_fail(w, err);
		return;
	}
	note_verifier(&w->result, res->COMMIT3res_u.resok.verf);
	w->result.commits++;
	hist_add(&w->result.commit_latency, now_ns() - s->commit_start_ns);
	slot_next(s);
}

static void slot_finish(struct slot *s)
{
	struct connection *c = s->conn;
	const struct nfs_load *l = c->worker->load;
	COMMIT3args args = { .file = wire_file(l) };

	c->since_commit++;
	if (!l->commit_every || c->since_commit < l->commit_every) {
		slot_next(s);
		return;
	}
	c->since_commit = 0;
	s->commit_start_ns = now_ns();
	if (rpc_nfs3_commit_async(c->rpc, commit_replied, &args, s))
		worker_fail(c->worker, -EIO);
	else
		c->worker->active++;
}

static void part_finish(struct part *p)
{
	struct slot *s = p->slot;
	struct worker *w = s->conn->worker;

	hist_add(&w->result.latency, now_ns() - p->start_ns);
	w->result.calls++;
	s->done++;
	if (s->issued < s->nr_parts)
		part_send(&s->parts[s->issued++]);
	else if (s->done == s->nr_parts)
		slot_finish(s);
}

/* The server took or gave count of what was asked for. */
static void part_advance(struct part *p, size_t count)
{
	struct worker *w = p->slot->conn->worker;

	if (!count || count > p->len) {
		worker_fail(w, -EBADMSG);
		return;
	}
	w->result.bytes += count;
	atomic_fetch_add_explicit(&w->run->progress->bytes, count,
				  memory_order_relaxed);
	p->off += count;
	p->data += count;
	p->len -= count;
	if (p->len)
		part_send(p);
	else
		part_finish(p);
}

/* ---- calls ---- */

/* A call of the worker is over: false, and the worker has failed, if it did.
 * Without a reply there is no *nfs to look at. */
static bool call_succeeded(struct worker *w, int status, const nfsstat3 *nfs)
{
	int err = -EIO;

	w->active--;
	if (status == RPC_STATUS_SUCCESS)
		err = nfsstat3_to_errno((int)*nfs);
	if (err)
		worker_fail(w, err);
	return !err;
}

static void write_replied(struct rpc_context *rpc, int status, void *data,
			  void *arg)
{
	struct part *p = arg;
	struct worker *w = p->slot->conn->worker;
	const WRITE3res *res = data;
	const WRITE3resok *ok = &res->WRITE3res_u.resok;

	if (!call_succeeded(w, status, &res->status))
		return;
	if ((unsigned)ok->committed < (unsigned)w->load->stable ||
	    (unsigned)ok->committed >= NFS_STABLES) {
		worker_fail(w, -EBADMSG);
		return;
	}
	w->result.committed[ok->committed]++;
	note_verifier(&w->result, ok->verf);
	part_advance(p, ok->count);
}

static bool data_matches(const struct worker *w, const char *got,
			 const char *want, size_t len)
{
	bool same = true;

	if (!w->load->sampled)
		return !memcmp(got, want, len);
	for (size_t i = 0; i < len && same; i += SAMPLE_STEP)
		same = !memcmp(got + i, want + i,
			       min_of(len - i, (size_t)SAMPLE_LEN));
	return same;
}

static void read_replied(struct rpc_context *rpc, int status, void *data,
			 void *arg)
{
	struct part *p = arg;
	struct worker *w = p->slot->conn->worker;
	const READ3res *res = data;
	const READ3resok *ok = &res->READ3res_u.resok;

	if (!call_succeeded(w, status, &res->status))
		return;
	if (ok->count != ok->data.data_len || ok->count > p->len ||
	    !data_matches(w, ok->data.data_val, p->data, ok->count)) {
		worker_fail(w, -EUCLEAN);
		return;
	}
	part_advance(p, ok->count);
}

static void part_send(struct part *p)
{
	struct connection *c = p->slot->conn;
	const struct nfs_load *l = c->worker->load;
	WRITE3args write_args = { .file = wire_file(l),
				  .offset = p->off,
				  .count = (count3)p->len,
				  .stable = (stable_how)l->stable,
				  .data = { .data_len = (u_int)p->len,
					    .data_val = (char *)p->data } };
	READ3args read_args = { .file = wire_file(l),
				.offset = p->off,
				.count = (count3)p->len };
	int err = l->read ? rpc_nfs3_read_async(c->rpc, read_replied,
						&read_args, p)
			  : rpc_nfs3_write_async(c->rpc, write_replied,
						 &write_args, p);

	if (err)
		worker_fail(c->worker, -EIO);
	else
		c->worker->active++;
}

static void slot_next(struct slot *s)
{
	struct connection *c = s->conn;
	const struct nfs_load *l = c->worker->load;
	uint64_t index = c->next, record = l->pattern->record;
	size_t first = l->calls == CALLS_ONE ? record : (record + 1) / 2;
	uint64_t now;

	if (index >= l->records * l->passes ||
	    atomic_load(&c->worker->run->progress->stop))
		return;
	c->next += l->nr_connections;
	index %= l->records;
	if (l->random)
		index = pattern_shuffle(index, l->records);
	now = now_ns();
	s->parts[0] = (struct part){
		.slot = s,
		.off = index * record,
		.len = first,
		.data = pattern_record(l->pattern, l->seed, index),
		.start_ns = now,
	};
	s->parts[1] = s->parts[0];
	s->parts[1].off += first;
	s->parts[1].data += first;
	s->parts[1].len = record - first;
	s->nr_parts = first < record ? 2 : 1;
	s->done = 0;
	s->issued = l->calls == CALLS_PAIR ? s->nr_parts : 1;
	for (unsigned i = 0; i < s->issued; i++)
		part_send(&s->parts[i]);
}

/* ---- threads ---- */

/* Replies first, then what they made to send: a poll less for each. */
static int serve_connection(struct rpc_context *rpc, short revents)
{
	if (rpc_service(rpc, revents) < 0)
		return -EIO;
	if (rpc_which_events(rpc) & POLLOUT && rpc_service(rpc, POLLOUT) < 0)
		return -EIO;
	return 0;
}

static void serve_all(struct worker *w)
{
	int err;

	for (unsigned i = 0; i < w->nr_conns; i++) {
		struct rpc_context *rpc = w->conns[i].rpc;

		w->fds[i] = (struct pollfd){ .fd = rpc_get_fd(rpc),
					     .events = (short)rpc_which_events(
						     rpc) };
	}
	if (poll(w->fds, w->nr_conns, POLL_MS) < 0 && errno != EINTR) {
		worker_fail(w, -errno);
		return;
	}
	for (unsigned i = 0; i < w->nr_conns && !w->err; i++) {
		if (!w->fds[i].revents)
			continue;
		err = serve_connection(w->conns[i].rpc, w->fds[i].revents);
		if (err)
			worker_fail(w, err);
	}
}

static void *worker_main(void *arg)
{
	struct worker *w = arg;
	uint64_t one = 1;

	for (unsigned i = 0; i < w->nr_conns; i++)
		for (unsigned j = 0; j < w->load->depth; j++)
			slot_next(&w->conns[i].slots[j]);
	while (w->active && !w->err)
		serve_all(w);
	if (atomic_fetch_sub(&w->run->running, 1) == 1 &&
	    write(w->run->progress->done_fd, &one, sizeof(one)) < 0)
		w->err = -errno;
	return NULL;
}

static void run_destroy(struct nfs_run *r)
{
	free(r->workers);
	free(r->conns);
	free(r->slots);
	free(r->fds);
	free(r);
}

static void lay_out(struct nfs_run *r)
{
	const struct nfs_load *l = &r->load;
	unsigned first = 0;

	for (unsigned i = 0; i < l->nr_threads; i++) {
		struct worker *w = &r->workers[i];

		w->load = l;
		w->run = r;
		w->conns = r->conns + first;
		w->fds = r->fds + first;
		w->nr_conns = (l->nr_connections - first) / (l->nr_threads - i);
		first += w->nr_conns;
		for (unsigned j = 0; j < w->nr_conns; j++) {
			struct connection *c = &w->conns[j];
			unsigned nr = (unsigned)(c - r->conns);

			c->worker = w;
			c->rpc = l->rpcs[nr];
			c->next = nr;
			c->slots = r->slots + (size_t)nr * l->depth;
			for (unsigned k = 0; k < l->depth; k++)
				c->slots[k].conn = c;
		}
	}
}

int nfs_load_start(const struct nfs_load *load, struct nfs_progress *progress,
		   struct nfs_run **out)
{
	struct nfs_run *r = calloc(1, sizeof(*r));
	size_t n = load->nr_connections;

	if (!r)
		return -ENOMEM;
	r->load = *load;
	r->load.nr_threads = min_of(load->nr_threads, load->nr_connections);
	r->progress = progress;
	r->workers = aligned_alloc(CACHE_LINE,
				   r->load.nr_threads * sizeof(*r->workers));
	r->conns = calloc(n, sizeof(*r->conns));
	r->slots = calloc(n * load->depth, sizeof(*r->slots));
	r->fds = calloc(n, sizeof(*r->fds));
	if (!r->workers || !r->conns || !r->slots || !r->fds) {
		run_destroy(r);
		return -ENOMEM;
	}
	memset(r->workers, 0, r->load.nr_threads * sizeof(*r->workers));
	lay_out(r);
	atomic_store(&r->running, r->load.nr_threads);
	for (unsigned i = 0; i < r->load.nr_threads; i++) {
		struct nfs_result none;

		if (!pthread_create(&r->workers[i].thread, NULL, worker_main,
				    &r->workers[i])) {
			r->nr_started++;
			continue;
		}
		atomic_store(&progress->stop, true);
		nfs_load_finish(r, &none);
		return -EAGAIN;
	}
	*out = r;
	return 0;
}

int nfs_load_finish(struct nfs_run *r, struct nfs_result *out)
{
	int err = 0;

	memset(out, 0, sizeof(*out));
	for (unsigned i = 0; i < r->nr_started; i++) {
		struct worker *w = &r->workers[i];
		const struct nfs_result *from = &w->result;

		pthread_join(w->thread, NULL);
		if (!err)
			err = w->err;
		out->calls += from->calls;
		out->bytes += from->bytes;
		out->commits += from->commits;
		hist_merge(&out->latency, &from->latency);
		hist_merge(&out->commit_latency, &from->commit_latency);
		for (int j = 0; j < NFS_STABLES; j++)
			out->committed[j] += from->committed[j];
		out->verifier_changed |= from->verifier_changed;
		if (from->calls && !r->load.read)
			note_verifier(out, from->verifier);
	}
	if (!err && atomic_load(&r->progress->stop))
		err = -EINTR;
	/* Calls still out come back now, into slots that still are. */
	for (unsigned i = 0; i < r->load.nr_connections && err; i++)
		rpc_disconnect(r->load.rpcs[i], "ended");
	run_destroy(r);
	return err;
}

/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * Transfers: cut into requests, sent on a borrowed queue, waited for.
 */
#include "cache/xfer.h"

#include "base/mem.h"

#include <errno.h>

/* Bytes of one request, and requests in flight of one transfer. */
#define REQUEST_MAX (1u << 20)
#define REQUESTS_MAX 8

/* Vectors of one request: as many as a caller may have, so that a request ends
 * at its last byte or at a multiple of 1 MiB, as the store's alignment wants. */
#define REQUEST_IOV TR_IO_IOV_MAX

struct request {
	struct tr_io io;
	bool busy;
	struct iovec iov[REQUEST_IOV];
};

struct transfer {
	struct mapping *m;
	struct tr_queue *q;
	int64_t off; /* of the whole */
	size_t good; /* bytes from off on that no failure is known before */
	int err;
	unsigned nr; /* requests there are */
	unsigned in_flight;
	struct request *r;
};

static void request_done(struct tr_io *io)
{
	container_of(io, struct request, io)->busy = false;
}

/* The results of those that have ended: the shortest prefix counts. */
static void reap(struct transfer *t, unsigned min)
{
	const struct tr_store_ops *ops = t->m->bdi->store->ops;

	t->in_flight -= ops->wait(t->q, min);
	for (unsigned i = 0; i < t->nr; i++) {
		struct tr_io *io = &t->r[i].io;
		size_t got = io->result > 0 ? io->result : 0;

		if (t->r[i].busy || !io->file)
			continue;
		if (io->result < 0 && !t->err)
			t->err = io->result;
		if (got < io->len)
			t->good = min_of(t->good,
					 (size_t)(io->off - t->off) + got);
		io->file = NULL;
	}
}

static struct request *get_request(struct transfer *t)
{
	for (;;) {
		for (unsigned i = 0; i < t->nr; i++)
			if (!t->r[i].busy && !t->r[i].io.file)
				return &t->r[i];
		reap(t, 1);
	}
}

/* Fills a request's vectors from the iterator; returns the bytes. */
static size_t gather(struct request *r, struct iter *it, size_t len)
{
	size_t total = 0;
	int nr = 0;

	len = min_of(len, (size_t)REQUEST_MAX);
	while (total < len && nr < REQUEST_IOV) {
		void *at = (void *)iter_at(it);
		size_t n = min_of(len - total, it->iov->iov_len - it->skip);

		r->iov[nr++] = (struct iovec){ at, n };
		it->skip += n;
		total += n;
	}
	r->io.nr_iov = nr;
	return total;
}

static void start(struct transfer *t, enum tr_io_op op, struct iter *it,
		  int64_t off, size_t *len)
{
	struct request *r = get_request(t);
	struct counter *totals = t->m->bdi->totals;
	bool read = op == TR_IO_READ;

	*len = gather(r, it, *len);
	r->io.op = op;
	r->io.file = t->m->sf;
	r->io.off = off;
	r->io.iov = r->iov;
	r->io.len = *len;
	r->io.done = request_done;
	r->busy = true;
	counter_add(&totals[read ? BDI_READS : BDI_WRITES], 1);
	counter_add(&totals[read ? BDI_READ_BYTES : BDI_WRITE_BYTES], *len);
	t->in_flight++;
	t->m->bdi->store->ops->start(t->q, &r->io);
}

ssize_t xfer(struct mapping *m, enum tr_io_op op, struct iter *it, int64_t off,
	     size_t len)
{
	struct transfer t = { .m = m, .off = off, .good = len };
	size_t at = 0;
	int err;

	t.nr = min_of(len / REQUEST_MAX + 1, (size_t)REQUESTS_MAX);
	t.r = mem_zalloc_array(t.nr, sizeof(*t.r));
	if (!t.r)
		return -ENOMEM;
	err = bdi_queue_get(m->bdi, &t.q);
	if (err) {
		mem_free(t.r);
		return err;
	}
	while (at < len && t.good == len) {
		size_t n = len - at;

		start(&t, op, it, off + at, &n);
		at += n;
	}
	while (t.in_flight)
		reap(&t, t.in_flight);
	bdi_queue_put(m->bdi, t.q);
	mem_free(t.r);
	t.good = min_of(t.good, at);
	return t.good ? (ssize_t)t.good : t.err;
}

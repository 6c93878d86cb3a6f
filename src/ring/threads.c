/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * The engine for where io_uring is not permitted: a few threads that take
 * requests off one list and do them with preadv and pwritev.
 *
 * Happy path: start puts the request on its queue's list, submit moves the
 * list to the pool's, a thread does it and puts it on the queue's finished
 * ones, wait runs the completion. Failure modes: none but those of the calls.
 *
 * A killed process keeps its descriptors, and so the directory's lock, until
 * its last thread has left the kernel: nothing needs to be done for that.
 */
#include "ring/engine.h"

#include "base/mem.h"
#include "base/task.h"
#include "base/wait.h"

#include <assert.h>
#include <errno.h>

/* Enough to keep a device busy that io_uring would be used for with depth 8,
 * few enough not to matter where there are two processors. */
#define NR_THREADS 8

struct pool {
	struct ring *ring;
	struct cds_list_head submitted GUARDED(ring->lock);
	atomic_uint nr_submitted; /* changed under the lock */
	atomic_bool stop;
	struct waitq wq;
	unsigned nr_tasks;
	struct task *tasks[NR_THREADS];
};

struct thread_queue {
	struct ring_queue base;
	struct cds_list_head started; /* its thread only */
	struct cds_list_head finished GUARDED(ring->lock);
	atomic_uint nr_finished; /* changed under the lock */
	unsigned nr_flight; /* its thread only */
	struct waitq wq;
};

static struct ring_request *take(struct pool *pool)
{
	struct ring_request *r = NULL;

	mutex_lock(&pool->ring->lock);
	if (atomic_load(&pool->nr_submitted)) {
		r = cds_list_first_entry(&pool->submitted, struct ring_request,
					 node);
		cds_list_del(&r->node);
		atomic_fetch_sub(&pool->nr_submitted, 1);
	}
	mutex_unlock(&pool->ring->lock);
	return r;
}

static void worker(void *arg)
{
	struct pool *pool = arg;
	struct thread_queue *q;
	struct ring_request *r;

	for (;;) {
		wait_event(&pool->wq, atomic_load(&pool->nr_submitted) ||
					      atomic_load(&pool->stop));
		r = take(pool);
		if (!r && atomic_load(&pool->stop))
			return;
		if (!r)
			continue;
		ring_io_of(r)->result = ring_transfer(ring_io_of(r), 0);
		q = (struct thread_queue *)r->queue;
		/* Woken under the lock, which the queue's owner takes before
		 * it can end the queue. */
		mutex_lock(&pool->ring->lock);
		cds_list_add_tail(&r->node, &q->finished);
		atomic_fetch_add(&q->nr_finished, 1);
		waitq_wake_all(&q->wq);
		mutex_unlock(&pool->ring->lock);
	}
}

static void threads_destroy(struct ring *ring)
{
	struct pool *pool = ring->private;

	atomic_store(&pool->stop, true);
	waitq_wake_all(&pool->wq);
	while (pool->nr_tasks)
		task_join(pool->tasks[--pool->nr_tasks]);
	mem_free(pool);
}

static int threads_create(struct ring *ring)
{
	struct pool *pool = mem_zalloc(sizeof(*pool));
	int err;

	if (!pool)
		return -ENOMEM;
	pool->ring = ring;
	CDS_INIT_LIST_HEAD(&pool->submitted);
	waitq_init(&pool->wq);
	ring->private = pool;
	ring->description = "threads";
	while (pool->nr_tasks < NR_THREADS) {
		err = task_create(&pool->tasks[pool->nr_tasks], "tr-io", worker,
				  pool);
		if (err) {
			threads_destroy(ring);
			return err;
		}
		pool->nr_tasks++;
	}
	return 0;
}

static int threads_queue_create(struct ring *ring, struct ring_queue **out)
{
	struct thread_queue *q = mem_zalloc(sizeof(*q));

	if (!q)
		return -ENOMEM;
	q->base.ring = ring;
	CDS_INIT_LIST_HEAD(&q->started);
	CDS_INIT_LIST_HEAD(&q->finished);
	waitq_init(&q->wq);
	*out = &q->base;
	return 0;
}

static void threads_queue_destroy(struct ring_queue *base)
{
	struct thread_queue *q = (struct thread_queue *)base;

	assert(q->nr_flight == 0);
	mem_free(q);
}

static void threads_start(struct ring_queue *base, struct tr_io *io)
{
	struct thread_queue *q = (struct thread_queue *)base;

	cds_list_add_tail(&ring_request_of(io)->node, &q->started);
	q->nr_flight++;
}

static void threads_submit(struct ring_queue *base)
{
	struct thread_queue *q = (struct thread_queue *)base;
	struct pool *pool = base->ring->private;
	struct ring_request *r, *tmp;
	unsigned nr = 0;

	if (cds_list_empty(&q->started))
		return;
	mutex_lock(&base->ring->lock);
	cds_list_for_each_entry_safe (r, tmp, &q->started, node) {
		cds_list_del(&r->node);
		cds_list_add_tail(&r->node, &pool->submitted);
		nr++;
	}
	atomic_fetch_add(&pool->nr_submitted, nr);
	mutex_unlock(&base->ring->lock);
	if (nr == 1)
		waitq_wake_one(&pool->wq);
	else
		waitq_wake_all(&pool->wq);
}

static unsigned threads_wait(struct ring_queue *base, unsigned min)
{
	struct thread_queue *q = (struct thread_queue *)base;
	struct ring_request *r;
	unsigned nr = 0;

	threads_submit(base);
	min = min_of(min, q->nr_flight);
	while (nr < min || atomic_load(&q->nr_finished)) {
		wait_event(&q->wq, atomic_load(&q->nr_finished));
		mutex_lock(&base->ring->lock);
		r = cds_list_first_entry(&q->finished, struct ring_request,
					 node);
		cds_list_del(&r->node);
		atomic_fetch_sub(&q->nr_finished, 1);
		mutex_unlock(&base->ring->lock);
		q->nr_flight--;
		nr++;
		ring_io_of(r)->done(ring_io_of(r));
	}
	return nr;
}

const struct ring_engine ring_threads = {
	.create = threads_create,
	.destroy = threads_destroy,
	.queue_create = threads_queue_create,
	.queue_destroy = threads_queue_destroy,
	.start = threads_start,
	.submit = threads_submit,
	.wait = threads_wait,
};

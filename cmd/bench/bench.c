/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Rounds: in each, every contender runs once and so does the ceiling, in an
 * order that turns from round to round, so that neither side always follows
 * the other. The first round is dropped as warm-up if there are more.
 *
 * Signals are blocked and read from a descriptor, so that an interrupt is
 * taken between two records by whoever looks, and everything is undone on the
 * ordinary way out.
 */
#include "cmd/bench/bench.h"

#include <errno.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/signalfd.h>
#include <unistd.h>

#include "base/compiler.h"

static const struct side_ops *const side_table[SIDES] = {
	[SIDE_TAILRACE] = &side_tailrace,
	[SIDE_KERNEL] = &side_kernel,
};

void bench_path(const struct bench *b, unsigned file, char *out)
{
	snprintf(out, BENCH_PATH_MAX, "%s/tailrace-bench.%u", b->load->opt->dir,
		 file);
}

bool bench_interrupted(struct bench *b)
{
	struct pollfd fd = { .fd = b->signal_fd, .events = POLLIN };

	if (!b->interrupted && poll(&fd, 1, 0) == 1)
		b->interrupted = true;
	return b->interrupted;
}

int bench_signals_init(struct bench *b)
{
	sigset_t set;

	sigemptyset(&set);
	sigaddset(&set, SIGINT);
	sigaddset(&set, SIGTERM);
	sigprocmask(SIG_BLOCK, &set, NULL);
	b->signal_fd = signalfd(-1, &set, SFD_CLOEXEC | SFD_NONBLOCK);
	return b->signal_fd < 0 ? -errno : 0;
}

/* Who runs: the side asked for, what it is compared with, and plain cached
 * writes, of the kernel's unless it was asked for the side's own, as the
 * reference. */
static int list_contenders(const struct load *l, struct contender *out)
{
	struct bench_flags buffered = l->flags;
	int side = l->opt->side, against = l->opt->against, nr = 0;

	buffered.mode = MODE_CACHED;
	out[nr++] = (struct contender){ .side = side, .flags = l->flags };
	if (against == AGAINST_KERNEL && side != SIDE_KERNEL)
		out[nr++] = (struct contender){ .side = SIDE_KERNEL,
						.flags = l->flags };
	if (against == AGAINST_KERNEL)
		side = SIDE_KERNEL;
	if (against >= 0 && !l->compete && l->flags.mode != MODE_CACHED)
		out[nr++] = (struct contender){ .side = side,
						.flags = buffered,
						.reference = true };
	for (int i = 0; i < nr; i++)
		out[i].nr = (unsigned)i;
	return nr;
}

static int run_ceiling(struct bench *b, unsigned round)
{
	const struct bench_options *o = b->load->opt;
	uint64_t bytes = load_file_bytes(b->load) * b->load->nr_files;
	bool existing = o->rewrite || o->readahead_first;
	char path[BENCH_PATH_MAX];
	double seconds = 0;
	int err = 0;

	bench_path(b, 0, path);
	unlink(path);
	sync();
	if (existing)
		err = sequential_write(path, bytes, true, &seconds,
				       &b->ceiling_what);
	if (!err)
		err = sequential_write(path, bytes, !existing, &seconds,
				       &b->ceiling_what);
	unlink(path);
	if (err) {
		fprintf(stderr, "tailrace bench: the ceiling: %s: %s\n", path,
			strerror(-err));
		return err;
	}
	b->ceilings[round] = (double)bytes / MIB / seconds;
	return bench_interrupted(b) ? -EINTR : 0;
}

static int run_rounds(struct bench *b)
{
	const struct bench_options *o = b->load->opt;
	struct contender contenders[CONTENDERS_MAX];
	unsigned nr = (unsigned)list_contenders(b->load, contenders);
	unsigned turns = nr + !o->no_ceiling;
	int err = 0, worst = 0;

	b->nr_runs = nr * (unsigned)o->runs;
	/* Two writers of each run have a row where they compete. */
	b->rows = calloc((size_t)b->nr_runs * 2, sizeof(*b->rows));
	b->ceilings = calloc(o->runs + 1, sizeof(*b->ceilings));
	if (!b->rows || !b->ceilings)
		return -ENOMEM;
	for (unsigned round = 1; round <= o->runs; round++) {
		bool keep = round > 1 || o->runs == 1;

		for (unsigned i = 0; i < turns; i++) {
			unsigned turn = (i + round) % turns;

			err = turn == nr ? run_ceiling(b, round)
					 : run_contender(b, &contenders[turn],
							 round, keep);
			/* The other side may still be right: go on. */
			if (err == -EUCLEAN)
				worst = err;
			else if (err)
				return err;
		}
	}
	return worst;
}

static int open_sides(struct bench *b)
{
	const struct bench_options *o = b->load->opt;
	struct side_config config = { .dir = o->dir,
				      .cache = o->cache,
				      .engine = o->engine,
				      .parameters = &o->set };
	int err = 0;

	for (int s = 0; s < SIDES && !err; s++) {
		if (s != o->side &&
		    (s != SIDE_KERNEL || o->against != AGAINST_KERNEL))
			continue;
		err = side_table[s]->open(&config, &b->sides[s]);
		if (err && err != -EINVAL)
			fprintf(stderr, "tailrace bench: %s: %s: %s\n",
				side_table[s]->name, o->dir, strerror(-err));
	}
	return err;
}

static int check_device(const struct bench *b)
{
	const struct bench_options *o = b->load->opt;

	if (!o->block || o->block == b->device.block)
		return -1;
	fprintf(stderr, "tailrace bench: %s has %u-byte blocks, not %ju\n",
		o->dir, b->device.block, (uintmax_t)o->block);
	return EXIT_CANNOT;
}

static int exit_status(const struct bench *b, int err)
{
	switch (err) {
	case 0:
		return EXIT_DONE;
	case -EINTR:
		fprintf(stderr, "tailrace bench: interrupted\n");
		return EXIT_FAILED;
	case -EINVAL:
		return EXIT_USAGE;
	case -EOPNOTSUPP:
	case -ENOSYS:
		return EXIT_CANNOT;
	default:
		return EXIT_FAILED;
	}
}

int bench_main(const struct load *load)
{
	struct bench *b = calloc(1, sizeof(*b));
	int err, status = EXIT_FAILED;

	if (!b)
		return EXIT_FAILED;
	b->load = load;
	b->started_ns = now_ns();
	err = device_init(&b->device, load->opt->dir);
	if (err) {
		fprintf(stderr, "tailrace bench: --dir: %s: %s\n",
			load->opt->dir, strerror(-err));
		goto out;
	}
	status = check_device(b);
	if (status >= 0)
		goto out;
	err = pattern_init(&b->pattern, load->opt->record,
			   load->flags.mode == MODE_DIRECT ? 4096 : 1);
	if (!err)
		err = bench_signals_init(b);
	if (!err)
		err = open_sides(b);
	if (!err) {
		err = run_rounds(b);
		if (!err || err == -EUCLEAN)
			load->opt->json ? report_json(b) : report_table(b);
		for (int s = 0;
		     load->opt->stats && !load->opt->json && s < SIDES; s++)
			if (b->sides[s])
				statistics_print(b->sides[s]);
	}
	status = exit_status(b, err);
	for (int s = 0; s < SIDES; s++)
		if (b->sides[s])
			b->sides[s]->ops->close(b->sides[s]);
	close(b->signal_fd);
	pattern_fini(&b->pattern);
out:
	free(b->rows);
	free(b->ceilings);
	free(b);
	return status;
}

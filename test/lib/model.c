/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * The model file.
 *
 * Invariant: bytes from size to size_max are zero, so that growing needs no
 * work and what a truncation cut off can never come back.
 */
#include "lib/model.h"

#include <assert.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/compiler.h"

/* Bytes that an offset may lie beside a unit's edge. */
#define NEAR 8

/* Longest piece of a step, in units: enough for several folios. */
#define UNITS_MAX 24

int model_init(struct model *m, int64_t size_max, struct rng *rng)
{
	*m = (struct model){ .size_max = size_max, .rng = rng };
	m->bytes = calloc(1, (size_t)size_max);
	return m->bytes ? 0 : -ENOMEM;
}

void model_fini(struct model *m)
{
	free(m->bytes);
	m->bytes = NULL;
}

void model_write(struct model *m, const void *buf, size_t len, int64_t off)
{
	assert(off >= 0);
	assert(off + (int64_t)len <= m->size_max);
	memcpy(m->bytes + off, buf, len);
	m->size = max_of(m->size, off + (int64_t)len);
}

void model_truncate(struct model *m, int64_t size)
{
	assert(size >= 0);
	assert(size <= m->size_max);
	if (size < m->size)
		memset(m->bytes + size, 0, (size_t)(m->size - size));
	m->size = size;
}

void model_punch(struct model *m, int64_t off, int64_t len)
{
	int64_t end = min_of(off + len, m->size);

	if (off < end)
		memset(m->bytes + off, 0, (size_t)(end - off));
}

/* Some number of bytes up to max, often beside a multiple of unit. */
static int64_t draw(struct model *m, uint32_t unit, int64_t max)
{
	int64_t x = (int64_t)rng_below(m->rng, (uint64_t)max + 1);

	if (rng_below(m->rng, 2)) {
		x -= x % unit;
		x += (int64_t)rng_below(m->rng, 2 * NEAR + 1) - NEAR;
	}
	return x < 0 ? 0 : min_of(x, max);
}

void model_range(struct model *m, uint32_t unit, int64_t *off, size_t *len)
{
	int64_t most;

	*off = draw(m, unit, m->size_max - 1);
	most = min_of(m->size_max - *off, (int64_t)unit * UNITS_MAX);
	/* Small and large pieces alike. */
	if (rng_below(m->rng, 3) == 0)
		most = min_of(most, (int64_t)unit);
	*len = (size_t)max_of(draw(m, unit, most), (int64_t)1);
}

void model_fill(struct model *m, void *buf, size_t len)
{
	uint8_t *to = buf;

	while (len) {
		uint64_t word = rng_next(m->rng);
		size_t n = min_of(len, sizeof(word));

		memcpy(to, &word, n);
		to += n;
		len -= n;
	}
}

bool model_same(const struct model *m, const void *buf, size_t len, int64_t off)
{
	const uint8_t *got = buf;

	if (!memcmp(got, m->bytes + off, len))
		return true;
	for (size_t i = 0; i < len; i++) {
		if (got[i] == m->bytes[off + (int64_t)i])
			continue;
		fprintf(stderr, "model: byte %lld is %02x, not %02x\n",
			(long long)off + (long long)i, got[i],
			m->bytes[off + (int64_t)i]);
		break;
	}
	return false;
}

static int step_read(struct model *m, const struct model_ops *ops, void *file,
		     int64_t off, size_t len)
{
	int64_t left = m->size > off ? m->size - off : 0;
	int64_t want = min_of((int64_t)len, left);
	void *buf = malloc(len);
	ssize_t got;
	int ret = 0;

	if (!buf)
		return -ENOMEM;
	got = ops->read(file, buf, len, off);
	if (got < 0) {
		ret = (int)got;
	} else if (got != want) {
		fprintf(stderr, "model: read %zd bytes, not %lld\n", got,
			(long long)want);
		ret = -EIO;
	} else if (!model_same(m, buf, (size_t)got, off)) {
		ret = -EIO;
	}
	free(buf);
	return ret;
}

static int step_write(struct model *m, const struct model_ops *ops, void *file,
		      int64_t off, size_t len)
{
	void *buf = malloc(len);
	ssize_t got;

	if (!buf)
		return -ENOMEM;
	model_fill(m, buf, len);
	got = ops->write(file, buf, len, off);
	if (got == (ssize_t)len)
		model_write(m, buf, len, off);
	free(buf);
	if (got < 0)
		return (int)got;
	return got == (ssize_t)len ? 0 : -EIO;
}

int model_step(struct model *m, const struct model_ops *ops, void *file,
	       uint32_t unit)
{
	const char *what = "write";
	uint64_t dice = rng_below(m->rng, 16);
	int64_t off;
	size_t len;
	int ret;

	model_range(m, unit, &off, &len);
	if (dice == 0 && ops->truncate) {
		what = "truncate";
		ret = ops->truncate(file, off);
		if (!ret)
			model_truncate(m, off);
	} else if (dice == 1 && ops->punch) {
		what = "punch";
		ret = ops->punch(file, off, (int64_t)len);
		if (!ret)
			model_punch(m, off, (int64_t)len);
	} else if (dice < 7) {
		what = "read";
		ret = step_read(m, ops, file, off, len);
	} else {
		ret = step_write(m, ops, file, off, len);
	}
	snprintf(m->step, sizeof(m->step), "%s off %lld len %zu, size %lld",
		 what, (long long)off, len, (long long)m->size);
	if (ret)
		fprintf(stderr, "model: %s: %s\n", m->step, strerror(-ret));
	return ret;
}

int model_compare(struct model *m, const struct model_ops *ops, void *file)
{
	/* A byte more, to see that the file ends where it should. */
	return step_read(m, ops, file, 0, (size_t)m->size + 1);
}

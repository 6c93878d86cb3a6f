/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * The model file: what a file must read as, kept as plain bytes. A random step
 * is done to the model and to the file under test alike; then the two are
 * compared. Not thread-safe.
 */
#ifndef TR_TEST_MODEL_H
#define TR_TEST_MODEL_H

#include "base/rng.h"

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

struct model {
	uint8_t *bytes; /* size_max of them; zero from size on */
	int64_t size;
	int64_t size_max; /* no step makes the file longer */
	struct rng *rng;
	/* The last step, for a failure's message. */
	char step[96];
};

/*
 * The file under test. Each returns what the call of the same name in
 * tailrace/cache.h does; truncate and punch may be NULL: never drawn then.
 */
struct model_ops {
	ssize_t (*read)(void *file, void *buf, size_t len, int64_t off);
	ssize_t (*write)(void *file, const void *buf, size_t len, int64_t off);
	int (*truncate)(void *file, int64_t size);
	int (*punch)(void *file, int64_t off, int64_t len);
};

/* -ENOMEM. The rng stays the caller's. */
int model_init(struct model *m, int64_t size_max, struct rng *rng);
void model_fini(struct model *m);

/* Changes the model only. Ranges lie within size_max. */
void model_write(struct model *m, const void *buf, size_t len, int64_t off);
void model_truncate(struct model *m, int64_t size);
void model_punch(struct model *m, int64_t off, int64_t len);

/*
 * A range in [0, size_max) that likes the edges of units: half of the offsets
 * and lengths lie within a few bytes of a multiple of unit. *len > 0.
 */
void model_range(struct model *m, uint32_t unit, int64_t *off, size_t *len);

/* Fills buf from the generator. */
void model_fill(struct model *m, void *buf, size_t len);

/*
 * One random step on both. 0; or, after a line on stderr that names the step,
 * -EIO when the file's answer differs from the model's, or the file's error.
 */
int model_step(struct model *m, const struct model_ops *ops, void *file,
	       uint32_t unit);

/* Reads all of the file and compares; 0, or as model_step(). */
int model_compare(struct model *m, const struct model_ops *ops, void *file);

/* Compares bytes got from elsewhere, which should be those at off. */
bool model_same(const struct model *m, const void *buf, size_t len,
		int64_t off);

#endif

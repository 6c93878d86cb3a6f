/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * Per-block state: two bitmaps behind each other, valid and dirty, in a slab
 * object whose size fits the number of blocks.
 */
#include "folio/blocks.h"

#include "folio/state.h"

#include <assert.h>
#include <string.h>

#define BITS_LONG 64u

struct blocks {
	uint16_t nr; /* blocks, at least 2 */
	uint16_t nr_valid;
	uint8_t slab;
	uint64_t bits[]; /* valid, then dirty; words(nr) each */
};

static unsigned words(unsigned nr)
{
	return (nr + BITS_LONG - 1) / BITS_LONG;
}

static uint64_t *dirty_bits(const struct blocks *b)
{
	return (uint64_t *)b->bits + words(b->nr);
}

/* Objects by the blocks they have room for, the last for a 2 MiB folio of
 * 512-byte blocks. */
static const unsigned slab_blocks[BLOCKS_SLABS] = { 64,	  256,	1024,
						    2048, 3072, 4096 };

static size_t object_size(unsigned nr)
{
	return sizeof(struct blocks) + 2 * words(nr) * sizeof(uint64_t);
}

int blocks_init(struct tr_cache *c)
{
	int err = 0;

	for (unsigned i = 0; i < BLOCKS_SLABS && !err; i++)
		err = slab_init(&c->blocks[i], c->arena,
				object_size(slab_blocks[i]), "blocks");
	return err;
}

void blocks_fini(struct tr_cache *c)
{
	for (unsigned i = 0; i < BLOCKS_SLABS; i++)
		slab_fini(&c->blocks[i]);
}

static void set_range(uint64_t *bits, unsigned first, unsigned end)
{
	for (unsigned i = first; i < end; i++)
		bits[i / BITS_LONG] |= 1ull << i % BITS_LONG;
}

static bool get_bit(const uint64_t *bits, unsigned i)
{
	return bits[i / BITS_LONG] >> i % BITS_LONG & 1;
}

/* The first bit at or after i that is val, or nr. */
static unsigned find_bit(const uint64_t *bits, unsigned i, unsigned nr,
			 bool val)
{
	while (i < nr) {
		uint64_t w = bits[i / BITS_LONG];

		w = (val ? w : ~w) >> i % BITS_LONG;
		if (w) {
			i += __builtin_ctzll(w);
			break;
		}
		i = (i / BITS_LONG + 1) * BITS_LONG;
	}
	return i < nr ? i : nr;
}

static struct blocks *make(struct tr_cache *c, unsigned nr)
{
	struct blocks *b;
	unsigned i = 0;

	while (slab_blocks[i] < nr)
		i++;
	b = slab_alloc(&c->blocks[i]);
	if (b) {
		b->nr = nr;
		b->slab = i;
	}
	return b;
}

bool blocks_make(struct mapping *m, struct folio *f)
{
	unsigned nr = blocks_nr(m, f);

	if (f->blocks || nr < 2)
		return f->blocks;
	f->blocks = make(m->cache, nr);
	if (!f->blocks)
		return false;
	if (folio_test(f, FOLIO_UPTODATE)) {
		set_range(f->blocks->bits, 0, nr);
		f->blocks->nr_valid = nr;
	}
	if (folio_test(f, FOLIO_DIRTY))
		set_range(dirty_bits(f->blocks), 0, nr);
	return true;
}

void blocks_drop(struct tr_cache *c, struct blocks *b)
{
	if (b)
		slab_free(&c->blocks[b->slab], b);
}

void blocks_free(struct tr_cache *c, struct folio *f)
{
	blocks_drop(c, f->blocks);
	f->blocks = NULL;
}

void blocks_set_uptodate(struct mapping *m, struct folio *f, size_t from,
			 size_t to)
{
	struct blocks *b = f->blocks;
	unsigned end = (to + m->attr.block - 1) / m->attr.block;

	if (folio_test(f, FOLIO_UPTODATE))
		return;
	if (!b) {
		assert(!from && to == folio_len(f));
		state_or(&f->state, FOLIO_UPTODATE);
		return;
	}
	for (unsigned i = from / m->attr.block; i < end; i++)
		if (!get_bit(b->bits, i)) {
			set_range(b->bits, i, i + 1);
			b->nr_valid++;
		}
	if (b->nr_valid == b->nr)
		state_or(&f->state, FOLIO_UPTODATE);
}

void blocks_set_dirty(struct mapping *m, struct folio *f, size_t from,
		      size_t to)
{
	if (f->blocks)
		set_range(dirty_bits(f->blocks), from / m->attr.block,
			  (to + m->attr.block - 1) / m->attr.block);
}

void blocks_all_dirty(struct folio *f)
{
	if (f->blocks)
		memcpy(dirty_bits(f->blocks), f->blocks->bits,
		       words(f->blocks->nr) * sizeof(uint64_t));
}

bool blocks_next_dirty(const struct mapping *m, const struct folio *f,
		       size_t *from, size_t *to)
{
	unsigned i;

	if (*from >= folio_len(f))
		return false;
	if (!f->blocks) {
		*to = folio_len(f);
		return !*from;
	}
	i = find_bit(dirty_bits(f->blocks), *from / m->attr.block,
		     f->blocks->nr, true);
	if (i == f->blocks->nr)
		return false;
	*from = (size_t)i * m->attr.block;
	*to = (size_t)find_bit(dirty_bits(f->blocks), i, f->blocks->nr, false) *
	      m->attr.block;
	return true;
}

void blocks_clean(struct mapping *m, struct folio *f)
{
	struct blocks *b = f->blocks;

	if (!b)
		return;
	if (b->nr_valid == b->nr)
		blocks_free(m->cache, f);
	else
		memset(dirty_bits(b), 0, words(b->nr) * sizeof(uint64_t));
}

bool blocks_next_missing(const struct mapping *m, const struct folio *f,
			 size_t *from, size_t *to)
{
	unsigned end = (*to + m->attr.block - 1) / m->attr.block;
	unsigned i = *from / m->attr.block, j = end;

	if (*from >= *to || folio_test(f, FOLIO_UPTODATE))
		return false;
	if (f->blocks) {
		i = find_bit(f->blocks->bits, i, end, false);
		j = find_bit(f->blocks->bits, i, end, true);
	}
	if (i >= end)
		return false;
	*from = (size_t)i * m->attr.block;
	*to = (size_t)j * m->attr.block;
	return true;
}

unsigned blocks_split(struct mapping *m, const struct blocks *w,
		      struct folio *part, unsigned i, unsigned nr)
{
	unsigned each = w->nr / nr, valid = 0, dirty = 0;
	struct blocks *b = each > 1 ? make(m->cache, each) : NULL;

	for (unsigned k = 0; k < each; k++) {
		if (get_bit(w->bits, i * each + k)) {
			valid++;
			if (b)
				set_range(b->bits, k, k + 1);
		}
		if (get_bit(dirty_bits(w), i * each + k)) {
			dirty++;
			if (b)
				set_range(dirty_bits(b), k, k + 1);
		}
	}
	if (b)
		b->nr_valid = valid;
	part->blocks = b;
	return (valid == each ? FOLIO_UPTODATE : 0) | (dirty ? FOLIO_DIRTY : 0);
}

/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * The table of trace points: the only place where one is declared.
 *
 * P(name, fields, nr, probe): fields(F) lists F(type, name, format) in the
 * order they are printed; formats are DEC, HEX (0x%08x) and STR (a string that
 * lives for ever). probe(F, V) lists the nr arguments of the USDT probe of that
 * name: fields or, by V(expression), what is made of the fields a or values v.
 *
 * bpftrace reads arg0 to arg5. nfsd_write_dio_split has 13 fields, so after
 * its first four come the disposition and the address of all 13, each a
 * uint64_t: prefix, field 7, is *(uint64 *)(arg5 + 56).
 */
#ifndef TR_BASE_TRACE_POINTS_H
#define TR_BASE_TRACE_POINTS_H

/* Most fields of any point. */
#define TRACE_FIELDS_MAX 13

/* clang-format off */
#define TRACE_REQUEST(F)                                                       \
	F(uint32_t, xid, HEX)                                                  \
	F(uint32_t, fh_hash, HEX)                                              \
	F(uint64_t, offset, DEC)                                               \
	F(uint64_t, len, DEC)
#define TRACE_REQUEST_PROBE(F, V) TRACE_REQUEST(F)

#define TRACE_SPLIT(F)                                                         \
	TRACE_REQUEST(F)                                                       \
	F(uint32_t, offset_align, DEC)                                         \
	F(uint32_t, mem_align, DEC)                                            \
	F(uint32_t, mem_offset, DEC)                                           \
	F(uint64_t, prefix, DEC)                                               \
	F(uint64_t, middle, DEC)                                               \
	F(uint64_t, suffix, DEC)                                               \
	F(uint32_t, nsegs, DEC)                                                \
	F(const char *, disposition, STR)                                      \
	F(uint32_t, dontcache, DEC)
#define TRACE_SPLIT_PROBE(F, V)                                                \
	TRACE_REQUEST(F)                                                       \
	V(a->disposition)                                                      \
	V(v)

#define TRACE_INVALIDATE(F)                                                    \
	F(uint64_t, ino, DEC)                                                  \
	F(uint64_t, offset, DEC)                                               \
	F(uint64_t, len, DEC)
#define TRACE_INVALIDATE_PROBE(F, V) TRACE_INVALIDATE(F)

#define TRACE_PLACE(F)                                                         \
	F(uint64_t, ino, DEC)                                                  \
	F(uint64_t, offset, DEC)
#define TRACE_PLACE_PROBE(F, V) TRACE_PLACE(F)

#define TRACE_PASS(F)                                                          \
	F(const char *, reason, STR)                                           \
	F(uint64_t, wb, DEC)                                                   \
	F(uint64_t, pages, DEC)
#define TRACE_PASS_PROBE(F, V) TRACE_PASS(F)

#define TRACE_POINTS(P)                                                        \
	P(nfsd_read_start, TRACE_REQUEST, 4, TRACE_REQUEST_PROBE)              \
	P(nfsd_read_opened, TRACE_REQUEST, 4, TRACE_REQUEST_PROBE)             \
	P(nfsd_read_direct, TRACE_REQUEST, 4, TRACE_REQUEST_PROBE)             \
	P(nfsd_read_dontcache, TRACE_REQUEST, 4, TRACE_REQUEST_PROBE)          \
	P(nfsd_read_vector, TRACE_REQUEST, 4, TRACE_REQUEST_PROBE)             \
	P(nfsd_read_splice, TRACE_REQUEST, 4, TRACE_REQUEST_PROBE)             \
	P(nfsd_read_io_done, TRACE_REQUEST, 4, TRACE_REQUEST_PROBE)            \
	P(nfsd_read_done, TRACE_REQUEST, 4, TRACE_REQUEST_PROBE)               \
	P(nfsd_write_start, TRACE_REQUEST, 4, TRACE_REQUEST_PROBE)             \
	P(nfsd_write_opened, TRACE_REQUEST, 4, TRACE_REQUEST_PROBE)            \
	P(nfsd_write_dio_split, TRACE_SPLIT, 6, TRACE_SPLIT_PROBE)             \
	P(nfsd_write_direct, TRACE_REQUEST, 4, TRACE_REQUEST_PROBE)            \
	P(nfsd_write_dontcache, TRACE_REQUEST, 4, TRACE_REQUEST_PROBE)         \
	P(nfsd_write_vector, TRACE_REQUEST, 4, TRACE_REQUEST_PROBE)            \
	P(nfsd_write_io_done, TRACE_REQUEST, 4, TRACE_REQUEST_PROBE)           \
	P(nfsd_write_done, TRACE_REQUEST, 4, TRACE_REQUEST_PROBE)              \
	P(nfsd_commit_start, TRACE_REQUEST, 4, TRACE_REQUEST_PROBE)            \
	P(nfsd_commit_done, TRACE_REQUEST, 4, TRACE_REQUEST_PROBE)             \
	P(iomap_dio_invalidate_fail, TRACE_INVALIDATE, 3,                      \
	  TRACE_INVALIDATE_PROBE)                                              \
	P(flush_pass, TRACE_PASS, 3, TRACE_PASS_PROBE)                         \
	P(edge_held, TRACE_PLACE, 2, TRACE_PLACE_PROBE)                        \
	P(edge_completed, TRACE_PLACE, 2, TRACE_PLACE_PROBE)                   \
	P(edge_aged, TRACE_PLACE, 2, TRACE_PLACE_PROBE)                        \
	P(drop_behind, TRACE_PLACE, 2, TRACE_PLACE_PROBE)
/* clang-format on */

#endif

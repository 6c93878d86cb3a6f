/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * The export list in exports(5) syntax: which directories, for whom, how.
 *
 * A struct exports is built by one thread and constant afterwards, so any
 * thread may match against it. exports_fini() frees it.
 *
 * Beyond exports(5), the knobs of fs/iomode.h are options (io_cache_read=2);
 * they hold for the whole export.
 */
#ifndef TR_FS_EXPORTS_H
#define TR_FS_EXPORTS_H

#include "fs/iomode.h"

#include <netinet/in.h>
#include <stdbool.h>
#include <sys/socket.h>

/* Longest message that a parse may give. */
#define EXPORTS_ERROR_MAX 512

/* A line of a thousand clients is a mistake; memory has to have a limit. */
#define EXPORTS_CLIENTS_MAX 1024
#define EXPORTS_MAX 1024

struct export_options {
	bool writable;
	bool sync; /* metadata and stable data durable before the reply */
	bool secure; /* only from ports below 1024 */
	bool root_squash; /* ids 0 become anonymous */
	bool all_squash;
	uint32_t anon_uid, anon_gid;
};

/* In the order in which they win over each other. */
enum export_client_kind {
	EXPORT_HOST, /* an address, or a name and its addresses */
	EXPORT_NETWORK,
	EXPORT_WILDCARD, /* a pattern on the client's name */
	EXPORT_ANYBODY,
};

struct export_client {
	enum export_client_kind kind;
	char *name; /* as it was written */
	struct in6_addr *addrs; /* host: all; network: the first */
	int nr_addrs;
	int prefix; /* network: bits of the 128 */
	struct export_options options;
};

struct export_entry {
	char *path; /* absolute, no slash at the end but for "/" */
	uint64_t fsid; /* 0: none given */
	int io[IO_NR_KNOBS]; /* IO_INHERIT where not given */
	struct export_client *clients;
	int nr_clients;
	int line;
};

struct exports {
	struct export_entry *entries;
	int nr;
};

/*
 * Parses text; file is named in messages. On failure (-EINVAL, -ENOMEM) out
 * holds nothing and error a line that says where, what, and what is allowed.
 * Host names are looked up here, which may block.
 */
int exports_parse(const char *text, const char *file, struct exports *out,
		  char error[EXPORTS_ERROR_MAX]);

/* Reads and parses a file of at most 1 MiB. */
int exports_load(const char *file, struct exports *out,
		 char error[EXPORTS_ERROR_MAX]);

/*
 * Adds DIR[:OPTIONS] of the command line: options as in exports(5) separated
 * by commas, and client=NAME for whom (may repeat). Without a client it is
 * this machine; the defaults are rw and, as only reserved ports are then
 * listened to, no_root_squash. insecure says whether any port does.
 */
int exports_add(struct exports *e, const char *word, bool insecure,
		char error[EXPORTS_ERROR_MAX]);

void exports_fini(struct exports *e);

/* addr as IPv6, IPv4 as a mapped address; false for other families. */
bool exports_addr(const struct sockaddr *sa, struct in6_addr *out,
		  uint16_t *port);

/* Whether a match can depend on the client's name: see exports_match(). */
bool export_wants_name(const struct export_entry *e);

/*
 * The options for a client, or NULL. name is the client's host name, NULL
 * where it has none or nobody wants it.
 */
const struct export_options *export_match(const struct export_entry *e,
					  const struct in6_addr *addr,
					  const char *name);

#endif

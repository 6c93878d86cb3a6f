/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * Parsing exports(5) and matching clients.
 *
 * Happy path: the text becomes logical lines, a line words; the first word is
 * the path, "-options" sets the line's defaults, every other word a client
 * with options in parentheses.
 *
 * Failure modes: every mistake ends the parse with one message that names file,
 * line, the word, and what would be right; nothing is kept then.
 *
 * Invariants: paths are absolute and unique; an export has a client; options
 * that belong to the whole export do not differ between its clients.
 */
#include "fs/exports.h"

#include "base/log.h"
#include "base/mem.h"
#include "fs/exportopt.h"

#include <arpa/inet.h>
#include <ctype.h>
#include <errno.h>
#include <fcntl.h>
#include <fnmatch.h>
#include <netdb.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#define EXPORTS_FILE_MAX (1u << 20)

struct parser {
	const char *file;
	const char *at; /* next character */
	int line; /* of at */
	int word_line;
	char *error;
	bool insecure; /* default of the command line */
};

static PRINTF(2, 3) int fail(struct parser *p, const char *fmt, ...)
{
	va_list ap;
	int n;

	if (p->word_line)
		n = snprintf(p->error, EXPORTS_ERROR_MAX, "%s:%d: ", p->file,
			     p->word_line);
	else
		n = snprintf(p->error, EXPORTS_ERROR_MAX, "%s: ", p->file);
	if (n >= EXPORTS_ERROR_MAX)
		return -EINVAL;
	va_start(ap, fmt);
	vsnprintf(p->error + n, EXPORTS_ERROR_MAX - (size_t)n, fmt, ap);
	va_end(ap);
	return -EINVAL;
}

static void client_fini(struct export_client *c)
{
	mem_free(c->name);
	mem_free(c->addrs);
}

static void entry_fini(struct export_entry *e)
{
	int i;

	for (i = 0; i < e->nr_clients; i++)
		client_fini(&e->clients[i]);
	mem_free(e->clients);
	mem_free(e->path);
}

void exports_fini(struct exports *e)
{
	int i;

	for (i = 0; i < e->nr; i++)
		entry_fini(&e->entries[i]);
	mem_free(e->entries);
	*e = (struct exports){ 0 };
}

/* ---- words ---- */

/* Past blanks, comments and continued lines; false at the end of the line. */
static bool skip_blanks(struct parser *p)
{
	for (;;) {
		if (*p->at == ' ' || *p->at == '\t' || *p->at == '\r') {
			p->at++;
		} else if (p->at[0] == '\\' && p->at[1] == '\n') {
			p->at += 2;
			p->line++;
		} else if (*p->at == '#') {
			p->at += strcspn(p->at, "\n");
		} else {
			return *p->at && *p->at != '\n';
		}
	}
}

static bool is_octal(const char *s)
{
	return s[0] >= '0' && s[0] <= '3' && s[1] >= '0' && s[1] <= '7' &&
	       s[2] >= '0' && s[2] <= '7';
}

/* A word into buf, quotes and \ooo resolved. */
static int read_word(struct parser *p, char *buf, size_t size)
{
	bool quoted = false;
	size_t n = 0;
	char c;

	p->word_line = p->line;
	for (;; p->at++) {
		c = *p->at;
		if (!c || c == '\n' || (!quoted && isspace((unsigned char)c)))
			break;
		if (c == '"') {
			quoted = !quoted;
			continue;
		}
		if (c == '\\' && p->at[1] == '\n')
			break;
		if (c == '\\' && is_octal(p->at + 1)) {
			c = (char)((p->at[1] - '0') << 6 |
				   (p->at[2] - '0') << 3 | (p->at[3] - '0'));
			p->at += 3;
			if (!c)
				return fail(p, "\\000 in a name");
		}
		if (n + 1 == size)
			return fail(p, "a word is longer than %zu bytes",
				    size - 1);
		buf[n++] = c;
	}
	buf[n] = 0;
	return quoted ? fail(p, "a quote (\") is not closed on its line") : 0;
}

/* ---- clients ---- */

static void map_v4(struct in_addr v4, struct in6_addr *out)
{
	memset(out, 0, sizeof(*out));
	out->s6_addr[10] = out->s6_addr[11] = 0xff;
	memcpy(&out->s6_addr[12], &v4, 4);
}

bool exports_addr(const struct sockaddr *sa, struct in6_addr *out,
		  uint16_t *port)
{
	const struct sockaddr_in6 *in6 = (const void *)sa;
	const struct sockaddr_in *in = (const void *)sa;

	switch (sa->sa_family) {
	case AF_INET:
		map_v4(in->sin_addr, out);
		*port = ntohs(in->sin_port);
		return true;
	case AF_INET6:
		*out = in6->sin6_addr;
		*port = ntohs(in6->sin6_port);
		return true;
	default:
		return false;
	}
}

/* An address as text; *bits is how long its own prefix is. */
static bool parse_addr(const char *text, struct in6_addr *out, int *bits)
{
	struct in_addr v4;

	if (inet_pton(AF_INET, text, &v4) == 1) {
		map_v4(v4, out);
		*bits = 32;
		return true;
	}
	*bits = 128;
	return inet_pton(AF_INET6, text, out) == 1;
}

/* "24" or "255.255.255.0" to bits; -1 if it is neither. */
static int parse_prefix(const char *text, int bits)
{
	struct in_addr mask;
	uint32_t m;
	char *end;
	long v;

	if (bits == 32 && strchr(text, '.')) {
		if (inet_pton(AF_INET, text, &mask) != 1)
			return -1;
		m = ntohl(mask.s_addr);
		if (~m & (~m + 1))
			return -1;
		return __builtin_popcount(m);
	}
	if (!isdigit((unsigned char)text[0]))
		return -1;
	v = strtol(text, &end, 10);
	return *end || v > bits ? -1 : (int)v;
}

static int one_addr(struct export_client *c, const struct in6_addr *addr)
{
	c->addrs = mem_zalloc(sizeof(*addr));
	if (!c->addrs)
		return -ENOMEM;
	c->addrs[0] = *addr;
	c->nr_addrs = 1;
	return 0;
}

/* A name that does not resolve now matches nobody, as with exportfs. */
static int resolve(struct export_client *c)
{
	struct addrinfo hints = { .ai_socktype = SOCK_STREAM }, *list, *ai;
	uint16_t port;
	int nr = 0;

	if (getaddrinfo(c->name, NULL, &hints, &list))
		return 0;
	for (ai = list; ai; ai = ai->ai_next)
		nr++;
	c->addrs = mem_zalloc_array((size_t)nr, sizeof(*c->addrs));
	for (ai = list; ai && c->addrs; ai = ai->ai_next)
		if (exports_addr(ai->ai_addr, &c->addrs[c->nr_addrs], &port))
			c->nr_addrs++;
	freeaddrinfo(list);
	return c->addrs ? 0 : -ENOMEM;
}

static int parse_network(struct parser *p, struct export_client *c, char *slash)
{
	struct in6_addr addr;
	int bits, prefix;

	*slash = 0;
	if (!parse_addr(c->name, &addr, &bits)) {
		*slash = '/';
		return fail(p,
			    "'%s' is not a network: ADDRESS/BITS or "
			    "ADDRESS/MASK is",
			    c->name);
	}
	*slash = '/';
	prefix = parse_prefix(slash + 1, bits);
	if (prefix < 0)
		return fail(p, "'%s': the prefix is 0 to %d bits or a netmask",
			    c->name, bits);
	c->kind = EXPORT_NETWORK;
	c->prefix = prefix + 128 - bits;
	return one_addr(c, &addr);
}

static int parse_client(struct parser *p, struct export_client *c)
{
	struct in6_addr addr;
	char *slash;
	int bits;

	if (!c->name[0] || !strcmp(c->name, "*")) {
		c->kind = EXPORT_ANYBODY;
		return 0;
	}
	if (c->name[0] == '@')
		return fail(p,
			    "netgroup '%s' is not supported: a host, "
			    "a network, a pattern or * is",
			    c->name);
	slash = strchr(c->name, '/');
	if (slash)
		return parse_network(p, c, slash);
	if (parse_addr(c->name, &addr, &bits)) {
		c->kind = EXPORT_HOST;
		return one_addr(c, &addr);
	}
	if (strpbrk(c->name, "*?[")) {
		c->kind = EXPORT_WILDCARD;
		return 0;
	}
	if (strspn(c->name, "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUV"
			    "WXYZ0123456789.-_") != strlen(c->name))
		return fail(p,
			    "'%s' is not a client: a host, a network, "
			    "a pattern or * is",
			    c->name);
	c->kind = EXPORT_HOST;
	return resolve(c);
}

/* Makes room for one more element; the array grows by one, they are few. */
static void *grow(void *array, int nr, size_t size)
{
	void *bigger = mem_zalloc_array((size_t)nr + 1, size);

	if (!bigger)
		return NULL;
	if (nr)
		memcpy(bigger, array, (size_t)nr * size);
	mem_free(array);
	return bigger;
}

static int add_client(struct parser *p, struct export_entry *e,
		      const char *name, const struct export_options *options)
{
	struct export_client *c;
	void *bigger;

	if (e->nr_clients == EXPORTS_CLIENTS_MAX)
		return fail(p, "more than %d clients", EXPORTS_CLIENTS_MAX);
	bigger = grow(e->clients, e->nr_clients, sizeof(*c));
	if (!bigger)
		return -ENOMEM;
	e->clients = bigger;
	c = &e->clients[e->nr_clients++];
	c->options = *options;
	c->name = mem_strdup(name);
	if (!c->name)
		return -ENOMEM;
	return parse_client(p, c);
}

/* ---- lines ---- */

static int options_of(struct parser *p, char *text, struct export_entry *e,
		      struct export_options *options)
{
	char why[EXPORTS_ERROR_MAX];
	char *word, *save = NULL;

	for (word = strtok_r(text, ",", &save); word;
	     word = strtok_r(NULL, ",", &save))
		if (export_option_set(options, e, word, why, sizeof(why)))
			return fail(p, "%s", why);
	return 0;
}

/* One word after the path: CLIENT, CLIENT(OPTIONS) or -OPTIONS. */
static int client_word(struct parser *p, char *word, struct export_entry *e,
		       struct export_options *defaults)
{
	struct export_options options = *defaults;
	char *open = strchr(word, '('), *close;
	int ret;

	if (word[0] == '-')
		return options_of(p, word + 1, e, defaults);
	if (open == word)
		log_line(LOG_WARNING,
			 "%s:%d: options after a blank are everybody's: "
			 "'CLIENT%s' without it, or '*%s' if so",
			 p->file, p->word_line, word, word);
	if (open) {
		close = strchr(open, ')');
		if (!close || close[1])
			return fail(p,
				    "'%s': options are written "
				    "CLIENT(OPTION,OPTION)",
				    word);
		*open = *close = 0;
		ret = options_of(p, open + 1, e, &options);
		if (ret)
			return ret;
	}
	return add_client(p, e, word, &options);
}

static int set_path(struct parser *p, struct export_entry *e, const char *path)
{
	size_t len = strlen(path);

	if (path[0] != '/')
		return fail(p, "'%s' is not an absolute path", path);
	e->path = mem_strdup(path);
	if (!e->path)
		return -ENOMEM;
	while (len > 1 && e->path[len - 1] == '/')
		e->path[--len] = 0;
	return 0;
}

static int parse_line(struct parser *p, struct export_entry *e)
{
	struct export_options defaults = export_options_default;
	char word[4096];
	int ret;

	ret = read_word(p, word, sizeof(word));
	if (!ret)
		ret = set_path(p, e, word);
	e->line = p->word_line;
	while (!ret && skip_blanks(p)) {
		ret = read_word(p, word, sizeof(word));
		if (!ret)
			ret = client_word(p, word, e, &defaults);
	}
	if (!ret && !e->nr_clients)
		ret = fail(p, "%s is exported to nobody: name a client or *",
			   e->path);
	return ret;
}

static int add_entry(struct parser *p, struct exports *x,
		     struct export_entry *e)
{
	void *bigger;
	int i;

	for (i = 0; i < x->nr; i++)
		if (!strcmp(x->entries[i].path, e->path))
			return fail(p, "%s is exported already%s", e->path,
				    p->word_line ? " above: list all "
						   "clients on one line"
						 : "");
	if (x->nr == EXPORTS_MAX)
		return fail(p, "more than %d exports", EXPORTS_MAX);
	bigger = grow(x->entries, x->nr, sizeof(*e));
	if (!bigger)
		return -ENOMEM;
	x->entries = bigger;
	x->entries[x->nr++] = *e;
	return 0;
}

static void entry_init(struct export_entry *e)
{
	int i;

	*e = (struct export_entry){ 0 };
	for (i = 0; i < IO_NR_KNOBS; i++)
		e->io[i] = IO_INHERIT;
}

int exports_parse(const char *text, const char *file, struct exports *out,
		  char error[EXPORTS_ERROR_MAX])
{
	struct parser p = {
		.file = file, .at = text, .line = 1, .error = error
	};
	struct exports x = { 0 };
	struct export_entry e;
	int ret = 0;

	for (; !ret && *p.at; p.at++, p.line++) {
		if (skip_blanks(&p)) {
			entry_init(&e);
			ret = parse_line(&p, &e);
			if (!ret)
				ret = add_entry(&p, &x, &e);
			if (ret)
				entry_fini(&e);
		}
		if (!*p.at)
			break;
	}
	if (ret == -ENOMEM)
		snprintf(error, EXPORTS_ERROR_MAX, "%s: out of memory", file);
	if (ret)
		exports_fini(&x);
	else
		*out = x;
	return ret;
}

int exports_load(const char *file, struct exports *out,
		 char error[EXPORTS_ERROR_MAX])
{
	char *text = mem_alloc(EXPORTS_FILE_MAX);
	ssize_t n = 0;
	size_t len = 0;
	int fd, ret = -ENOMEM;

	if (!text) {
		snprintf(error, EXPORTS_ERROR_MAX, "%s: out of memory", file);
		return ret;
	}
	fd = open(file, O_RDONLY | O_CLOEXEC);
	ret = fd < 0 ? -errno : 0;
	while (!ret && len < EXPORTS_FILE_MAX) {
		n = read(fd, text + len, EXPORTS_FILE_MAX - len);
		if (n <= 0)
			break;
		len += (size_t)n;
	}
	if (n < 0)
		ret = -errno;
	else if (!ret && len == EXPORTS_FILE_MAX)
		ret = -EFBIG;
	if (!ret && memchr(text, 0, len))
		ret = -EILSEQ;
	if (fd >= 0)
		close(fd);
	if (ret) {
		snprintf(error, EXPORTS_ERROR_MAX, "%s: %s", file,
			 strerror(-ret));
	} else {
		text[len] = 0;
		ret = exports_parse(text, file, out, error);
	}
	mem_free(text);
	return ret;
}

/* ---- the command line ---- */

static int add_local(struct parser *p, struct export_entry *e,
		     const struct export_options *options)
{
	int ret = add_client(p, e, "127.0.0.0/8", options);

	return ret ? ret : add_client(p, e, "::1", options);
}

/* The words behind DIR: clients are noted first, as options hold for all. */
static int add_options(struct parser *p, struct export_entry *e, char *text)
{
	struct export_options options = export_options_default;
	const char *clients[64];
	char *word, *save = NULL, why[EXPORTS_ERROR_MAX];
	int nr = 0, ret = 0, i;

	options.writable = true;
	options.root_squash = false;
	options.secure = !p->insecure;
	for (word = strtok_r(text, ",", &save); word;
	     word = strtok_r(NULL, ",", &save)) {
		if (!strncmp(word, "client=", 7)) {
			if (nr == (int)ARRAY_SIZE(clients))
				return fail(p, "more than %d clients", nr);
			if (!word[7])
				return fail(p, "client= without a name");
			clients[nr++] = word + 7;
		} else if (export_option_set(&options, e, word, why,
					     sizeof(why))) {
			return fail(p, "%s, client=NAME", why);
		}
	}
	for (i = 0; i < nr && !ret; i++)
		ret = add_client(p, e, clients[i], &options);
	return ret || nr ? ret : add_local(p, e, &options);
}

int exports_add(struct exports *x, const char *word, bool insecure,
		char error[EXPORTS_ERROR_MAX])
{
	struct parser p = { .file = word,
			    .error = error,
			    .insecure = insecure };
	char *copy = mem_strdup(word), *colon, *real = NULL;
	struct export_entry e;
	struct stat st;
	int ret = -ENOMEM;

	entry_init(&e);
	if (!copy)
		goto out;
	/* A directory may have a colon in its name. */
	colon = stat(word, &st) ? strrchr(copy, ':') : NULL;
	if (colon)
		*colon++ = 0;
	real = realpath(copy, NULL);
	if (!real) {
		ret = fail(&p, "%s", strerror(errno));
		goto out;
	}
	ret = set_path(&p, &e, real);
	if (!ret)
		ret = add_options(&p, &e, colon ? colon : copy + strlen(copy));
	if (!ret)
		ret = add_entry(&p, x, &e);
out:
	if (ret)
		entry_fini(&e);
	if (ret == -ENOMEM)
		snprintf(error, EXPORTS_ERROR_MAX, "%s: out of memory", word);
	free(real);
	mem_free(copy);
	return ret;
}

/* ---- matching ---- */

bool export_wants_name(const struct export_entry *e)
{
	int i;

	for (i = 0; i < e->nr_clients; i++)
		if (e->clients[i].kind == EXPORT_WILDCARD)
			return true;
	return false;
}

static bool same_prefix(const struct in6_addr *a, const struct in6_addr *b,
			int bits)
{
	int whole = bits / 8, rest = bits % 8;

	if (memcmp(a->s6_addr, b->s6_addr, (size_t)whole))
		return false;
	return !rest ||
	       !((a->s6_addr[whole] ^ b->s6_addr[whole]) >> (8 - rest));
}

static bool client_is(const struct export_client *c,
		      const struct in6_addr *addr, const char *name)
{
	int i;

	switch (c->kind) {
	case EXPORT_HOST:
		for (i = 0; i < c->nr_addrs; i++)
			if (same_prefix(&c->addrs[i], addr, 128))
				return true;
		return false;
	case EXPORT_NETWORK:
		return same_prefix(&c->addrs[0], addr, c->prefix);
	case EXPORT_WILDCARD:
		return name && !fnmatch(c->name, name, FNM_CASEFOLD);
	default:
		return true;
	}
}

const struct export_options *export_match(const struct export_entry *e,
					  const struct in6_addr *addr,
					  const char *name)
{
	const struct export_client *best = NULL;
	int i;

	for (i = 0; i < e->nr_clients; i++)
		if (client_is(&e->clients[i], addr, name) &&
		    (!best || e->clients[i].kind < best->kind))
			best = &e->clients[i];
	return best ? &best->options : NULL;
}

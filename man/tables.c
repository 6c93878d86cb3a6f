/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Writes tailrace-parameters(7) and tailrace-statistics(7) from the tables in
 * tailrace/cache.h, so that they cannot say anything else than the program.
 * Run by the build.
 *
 *	tables parameters|statistics >PAGE
 */
#include <tailrace/cache.h>

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

struct parameter {
	const char *name, *unit;
	int64_t value, least, most;
	const char *sentence;
};

static const struct parameter parameters[] = {
#define ROW(name, unit, value, least, most, sentence)                          \
	{ #name, unit, value, least, most, sentence },
	TR_PARAMETERS(ROW)
#undef ROW
};

struct statistic {
	const char *name, *unit, *sentence;
};

static const struct statistic statistics[] = {
#define ROW(name, unit, sentence) { #name, unit, sentence },
	TR_STATISTICS(ROW)
#undef ROW
};

/* A sentence on a line of its own, with capital and full stop. */
static void print_sentence(const char *sentence)
{
	char first = sentence[0];

	if (first >= 'a' && first <= 'z')
		first += 'A' - 'a';
	printf("%c%s.\n", first, sentence + 1);
}

static void print_head(const char *title, const char *name, const char *what)
{
	printf(".\\\" SPDX-License-Identifier: GPL-2.0-or-later\n"
	       ".Dd November 30, 2026\n.Dt %s 7\n.Os\n"
	       ".Sh NAME\n.Nm %s\n.Nd %s\n.Sh DESCRIPTION\n",
	       title, name, what);
}

static void print_parameters(void)
{
	print_head("TAILRACE-PARAMETERS", "tailrace-parameters",
		   "what can be set in a cache");
	printf("These are set and read by name with\n"
	       ".Xr tr_cache_set 3\nand\n.Xr tr_cache_get 3 ,\n"
	       "of a running server with\n.Xr tailrace-set 1\n"
	       "and\n.Xr tailrace-get 1 .\n"
	       "A change takes effect at once.\n"
	       ".Bl -tag -width Ds\n");
	for (size_t i = 0; i < sizeof(parameters) / sizeof(*parameters); i++) {
		const struct parameter *p = &parameters[i];

		printf(".It Va %s Pq %s\n", p->name, p->unit);
		print_sentence(p->sentence);
		/* 0 is a default of its own only where it is allowed. */
		if (p->value || !p->least)
			printf("Default %" PRId64 ", at least %" PRId64,
			       p->value, p->least);
		else
			printf("At least %" PRId64, p->least);
		if (p->most == INT64_MAX)
			printf(".\n");
		else
			printf(", at most %" PRId64 ".\n", p->most);
	}
	printf(".El\n.Sh SEE ALSO\n.Xr tailrace-get 1 ,\n"
	       ".Xr tailrace-set 1 ,\n.Xr libtailrace 3 ,\n"
	       ".Xr tr_cache_create 3 ,\n.Xr tailrace-statistics 7\n");
}

static void print_statistics(void)
{
	print_head("TAILRACE-STATISTICS", "tailrace-statistics",
		   "what a cache counts");
	printf("These are the members of\n.Vt struct tr_statistics ,\n"
	       "which\n.Xr tr_cache_statistics 3\nfills in and\n"
	       ".Xr tailrace-stat 1\nprints below\n.Cm cache .\n"
	       "Totals only grow; the others say how it is now.\n"
	       "A page is 4096 bytes; a unit is what a file is cached in at\n"
	       "the least, a page or a larger block.\n"
	       ".Bl -tag -width Ds\n");
	for (size_t i = 0; i < sizeof(statistics) / sizeof(*statistics); i++) {
		const struct statistic *s = &statistics[i];

		printf(".It Va %s Pq %s\n", s->name, s->unit);
		print_sentence(s->sentence);
	}
	printf(".El\n.Sh SEE ALSO\n.Xr tailrace-stat 1 ,\n"
	       ".Xr libtailrace 3 ,\n"
	       ".Xr tr_cache_create 3 ,\n.Xr tailrace-parameters 7\n");
}

int main(int argc, char **argv)
{
	if (argc == 2 && !strcmp(argv[1], "parameters"))
		print_parameters();
	else if (argc == 2 && !strcmp(argv[1], "statistics"))
		print_statistics();
	else
		return 2;
	return fflush(stdout) ? 1 : 0;
}

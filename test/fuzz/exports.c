/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Goal: any text is parsed as exports(5) or refused with a message; a table that
 * was accepted can be matched against and is freed whole.
 *
 * Method: libFuzzer. Host names are not looked up: getaddrinfo() is replaced.
 */
#include "fs/exports.h"

#include <netdb.h>
#include <stdlib.h>
#include <string.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t len);

int getaddrinfo(const char *restrict node, const char *restrict service,
		const struct addrinfo *restrict hints,
		struct addrinfo **restrict out)
{
	(void)node;
	(void)service;
	(void)hints;
	(void)out;
	return EAI_NONAME;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t len)
{
	static const struct in6_addr addr = IN6ADDR_LOOPBACK_INIT;
	char error[EXPORTS_ERROR_MAX] = "";
	char *text = malloc(len + 1);
	struct exports x;
	int i;

	memcpy(text, data, len);
	text[len] = 0;
	if (exports_parse(text, "f", &x, error)) {
		if (!error[0])
			abort();
	} else {
		for (i = 0; i < x.nr; i++) {
			if (x.entries[i].path[0] != '/' ||
			    !x.entries[i].nr_clients)
				abort();
			(void)export_match(&x.entries[i], &addr, "a.b");
		}
		exports_fini(&x);
	}
	free(text);
	return 0;
}

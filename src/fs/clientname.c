/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * A small cache in front of the resolver.
 *
 * Happy path: the address's slot holds it, not too old. Otherwise the resolver
 * is asked, the name is asked back (who owns an address's reverse zone could
 * otherwise claim any name), and the slot is overwritten. No name is an answer
 * that is kept as well.
 *
 * The table is one of the few globals: a cache of what the network says, the
 * same for every server in the process.
 */
#include "fs/clientname.h"

#include "base/clock.h"
#include "base/lock.h"
#include "fs/exports.h"

#include <netdb.h>
#include <pthread.h>
#include <string.h>

/* A rack of clients; more than this only costs more look-ups. */
#define NAME_SLOTS 256

/* As long as Linux's export cache keeps an answer without being told. */
#define NAME_AGE_NS (600 * NS_PER_S)

static struct name_slot {
	struct in6_addr addr;
	uint64_t until_ns;
	char name[CLIENT_NAME_MAX]; /* "": none */
} slots[NAME_SLOTS];
static struct mutex slots_lock;
static pthread_once_t slots_once = PTHREAD_ONCE_INIT;

static void slots_init(void)
{
	mutex_init(&slots_lock, LOCK_LEAF);
}

static struct name_slot *slot_of(const struct in6_addr *addr)
{
	uint32_t word;

	memcpy(&word, &addr->s6_addr[12], sizeof(word));
	return &slots[(word * 0x9e3779b1u) >> 24];
}

static bool leads_back(const char *name, const struct in6_addr *addr)
{
	struct addrinfo hints = { .ai_socktype = SOCK_STREAM }, *list, *ai;
	struct in6_addr a;
	bool found = false;
	uint16_t port;

	if (getaddrinfo(name, NULL, &hints, &list))
		return false;
	for (ai = list; ai && !found; ai = ai->ai_next)
		found = exports_addr(ai->ai_addr, &a, &port) &&
			!memcmp(&a, addr, sizeof(a));
	freeaddrinfo(list);
	return found;
}

bool client_name(const struct sockaddr *peer, char name[CLIENT_NAME_MAX])
{
	struct name_slot *slot;
	struct in6_addr addr;
	uint16_t port;
	bool known;

	if (!exports_addr(peer, &addr, &port))
		return false;
	pthread_once(&slots_once, slots_init);
	slot = slot_of(&addr);
	mutex_lock(&slots_lock);
	known = slot->until_ns > clock_ns() &&
		!memcmp(&slot->addr, &addr, sizeof(addr));
	if (known)
		memcpy(name, slot->name, CLIENT_NAME_MAX);
	mutex_unlock(&slots_lock);
	if (known)
		return name[0];

	if (getnameinfo(peer,
			peer->sa_family == AF_INET
				? sizeof(struct sockaddr_in)
				: sizeof(struct sockaddr_in6),
			name, CLIENT_NAME_MAX, NULL, 0, NI_NAMEREQD) ||
	    !leads_back(name, &addr))
		name[0] = 0;
	mutex_lock(&slots_lock);
	slot->addr = addr;
	slot->until_ns = clock_ns() + NAME_AGE_NS;
	memcpy(slot->name, name, CLIENT_NAME_MAX);
	mutex_unlock(&slots_lock);
	return name[0];
}

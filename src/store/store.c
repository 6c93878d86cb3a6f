/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * What all stores share: their end.
 *
 * Happy path: the last user closes its files and queues and calls
 * tr_store_destroy(), which hands over to the store. There is no failure: a
 * store that still has files or queues open is a bug of the caller, which the
 * stores that count them assert.
 */
#include <tailrace/store.h>

void tr_store_destroy(struct tr_store *store)
{
	if (store)
		store->ops->destroy(store);
}

/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * The device of a scene: one file in memory. See scene.h.
 */
#ifndef TR_TEST_RACE_DEVICE_H
#define TR_TEST_RACE_DEVICE_H

#include <tailrace/store.h>

/* Its file has size bytes 'o'. */
struct tr_store *device_create(uint32_t block, int64_t size);

/* The file as the device has it. */
const char *device_data(struct tr_store *store);
int64_t device_size(struct tr_store *store);
/* Whether the last sync covered everything. */
bool device_all_durable(struct tr_store *store);
/* The file as it would be after power loss. */
const char *device_durable(struct tr_store *store);

#endif

/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * The block device behind a directory, and what the host says about a file's
 * pages and this process's memory. Everything here asks the kernel; nothing is
 * kept but names.
 */
#ifndef TAILRACE_DEVICE_H
#define TAILRACE_DEVICE_H

#include <stdbool.h>
#include <stdint.h>

struct device {
	char name[32]; /* "loop0"; "?" where no device can be told */
	char stat_path[64]; /* empty where there is none */
	uint32_t block; /* the file system's block, bytes */
};

/* As in Documentation/block/stat.rst; sectors are 512 bytes. */
struct device_counters {
	uint64_t reads, read_sectors, writes, write_sectors;
};

/* 0, or -errno of asking for the directory. */
int device_init(struct device *d, const char *dir);

/* Zeros where the device cannot be told. */
void device_read_counters(const struct device *d, struct device_counters *out);

/* Bytes of the file in the host's page cache; 0 if there is no such file. */
int64_t host_cache_bytes(const char *path);

/* Bytes of this process in memory. */
int64_t process_rss_bytes(void);

/* Of another process: its processor time so far and its memory. 0 or -errno. */
int other_process(uint64_t pid, double *cpu_seconds, int64_t *rss_bytes);

/* Dirty and under writeback on the whole host, bytes. */
int64_t host_dirty_bytes(void);

/* Syncs the file and drops its pages from the host's cache. 0 or -errno. */
int host_cache_drop(const char *path);

/* All of the host's page cache, as root. 0 or -errno. */
int host_cache_drop_all(void);

/* Extents of the file by FIEMAP, or -errno. */
int64_t file_extents(const char *path);

#endif

/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Questions to the host kernel. A file system without a device of its own
 * (overlay, tmpfs) has no counters: they read as zeros and the name is "?".
 */
#include "cmd/bench/device.h"

#include <errno.h>
#include <fcntl.h>
#include <libgen.h>
#include <limits.h>
#include <linux/fiemap.h>
#include <linux/fs.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/statvfs.h>
#include <sys/sysmacros.h>
#include <unistd.h>

int device_init(struct device *d, const char *dir)
{
	char link[48], target[PATH_MAX];
	struct statvfs vfs;
	struct stat st;
	ssize_t n;

	if (stat(dir, &st) || statvfs(dir, &vfs))
		return -errno;
	if (!S_ISDIR(st.st_mode))
		return -ENOTDIR;
	*d = (struct device){ .name = "?", .block = (uint32_t)vfs.f_bsize };
	snprintf(link, sizeof(link), "/sys/dev/block/%u:%u", major(st.st_dev),
		 minor(st.st_dev));
	n = readlink(link, target, sizeof(target) - 1);
	if (n < 0)
		return 0;
	target[n] = '\0';
	snprintf(d->name, sizeof(d->name), "%s", basename(target));
	snprintf(d->stat_path, sizeof(d->stat_path), "%s/stat", link);
	return 0;
}

void device_read_counters(const struct device *d, struct device_counters *out)
{
	unsigned long v[7];
	FILE *f;

	memset(out, 0, sizeof(*out));
	f = d->stat_path[0] ? fopen(d->stat_path, "re") : NULL;
	if (!f)
		return;
	if (fscanf(f, "%lu %lu %lu %lu %lu %lu %lu", &v[0], &v[1], &v[2], &v[3],
		   &v[4], &v[5], &v[6]) == 7)
		*out = (struct device_counters){ .reads = v[0],
						 .read_sectors = v[2],
						 .writes = v[4],
						 .write_sectors = v[6] };
	fclose(f);
}

int64_t host_cache_bytes(const char *path)
{
	unsigned char *pages = NULL;
	int64_t resident = 0;
	void *map = MAP_FAILED;
	size_t nr = 0;
	struct stat st;
	int fd = open(path, O_RDONLY | O_CLOEXEC);

	if (fd < 0)
		return 0;
	if (fstat(fd, &st) || !st.st_size)
		goto out;
	map = mmap(NULL, (size_t)st.st_size, PROT_READ, MAP_SHARED, fd, 0);
	nr = ((size_t)st.st_size + 4095) / 4096;
	pages = malloc(nr);
	if (map == MAP_FAILED || !pages ||
	    mincore(map, (size_t)st.st_size, pages))
		goto out;
	for (size_t i = 0; i < nr; i++)
		resident += pages[i] & 1;
out:
	if (map != MAP_FAILED)
		munmap(map, (size_t)st.st_size);
	free(pages);
	close(fd);
	return resident * 4096;
}

int64_t process_rss_bytes(void)
{
	long total, resident = 0;
	FILE *f = fopen("/proc/self/statm", "re");

	if (!f)
		return 0;
	if (fscanf(f, "%ld %ld", &total, &resident) != 2)
		resident = 0;
	fclose(f);
	return resident * sysconf(_SC_PAGESIZE);
}

int other_process(uint64_t pid, double *cpu_seconds, int64_t *rss_bytes)
{
	unsigned long user, system;
	char path[48], line[1024], *name_end;
	long rss;
	FILE *f;
	int err = -EBADMSG;

	snprintf(path, sizeof(path), "/proc/%ju/stat", (uintmax_t)pid);
	f = fopen(path, "re");
	if (!f)
		return -errno;
	/* The name in brackets may hold anything: fields 3, 14, 15 and 24 of
	 * proc(5) are counted from its end. */
	name_end = fgets(line, sizeof(line), f) ? strrchr(line, ')') : NULL;
	if (name_end &&
	    sscanf(name_end + 2,
		   "%*s %*s %*s %*s %*s %*s %*s %*s %*s %*s %*s %lu %lu %*s "
		   "%*s %*s %*s %*s %*s %*s %*s %ld",
		   &user, &system, &rss) == 3) {
		*cpu_seconds =
			(double)(user + system) / (double)sysconf(_SC_CLK_TCK);
		*rss_bytes = rss * sysconf(_SC_PAGESIZE);
		err = 0;
	}
	fclose(f);
	return err;
}

int64_t host_dirty_bytes(void)
{
	int64_t sum = 0;
	char line[128];
	long kb;
	FILE *f = fopen("/proc/meminfo", "re");

	if (!f)
		return 0;
	while (fgets(line, sizeof(line), f)) {
		if (sscanf(line, "Dirty: %ld kB", &kb) == 1 ||
		    sscanf(line, "Writeback: %ld kB", &kb) == 1)
			sum += kb * 1024;
	}
	fclose(f);
	return sum;
}

int host_cache_drop(const char *path)
{
	int err = 0, fd = open(path, O_RDWR | O_CLOEXEC);

	if (fd < 0)
		return -errno;
	if (fsync(fd))
		err = -errno;
	else
		err = -posix_fadvise(fd, 0, 0, POSIX_FADV_DONTNEED);
	close(fd);
	return err;
}

int host_cache_drop_all(void)
{
	int err = 0, fd;

	sync();
	fd = open("/proc/sys/vm/drop_caches", O_WRONLY | O_CLOEXEC);
	if (fd < 0)
		return -errno;
	if (write(fd, "3", 1) != 1)
		err = -errno;
	close(fd);
	return err;
}

int64_t file_extents(const char *path)
{
	/* fm_extent_count 0: count only. */
	struct fiemap map = { .fm_length = FIEMAP_MAX_OFFSET };
	int64_t result;
	int fd = open(path, O_RDONLY | O_CLOEXEC);

	if (fd < 0)
		return -errno;
	result = ioctl(fd, FS_IOC_FIEMAP, &map)
			 ? -errno
			 : (int64_t)map.fm_mapped_extents;
	close(fd);
	return result;
}

/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * Making, checking and opening file handles.
 *
 * Happy path: decode compares the checksum before it believes a byte of what
 * it covers. Failure modes: anything wrong with the wire form is -EBADFD; what
 * is right but names no file any more is -ESTALE at handle_open().
 *
 * Invariant: encode then decode is the identity; a wire form has one meaning.
 */
#include "fs/handle.h"

#include "base/rng.h"

#include <assert.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#define HANDLE_VERSION 1

struct wire {
	uint8_t version;
	uint8_t kind;
	uint8_t len;
	uint8_t zero;
	int32_t type;
	uint64_t export_id;
	uint64_t check; /* of all else */
	uint8_t bytes[HANDLE_BYTES_MAX];
};

_Static_assert(sizeof(struct wire) == HANDLE_WIRE_MAX, "a handle's size");

static uint64_t checksum(const struct siphash_key *key, const struct wire *w)
{
	struct wire copy = *w;

	copy.check = 0;
	return siphash(key, &copy, offsetof(struct wire, bytes) + w->len);
}

size_t handle_encode(const struct siphash_key *key, const struct fs_handle *h,
		     uint8_t wire[HANDLE_WIRE_MAX])
{
	struct wire w = { .version = HANDLE_VERSION,
			  .kind = h->kind,
			  .len = h->len,
			  .type = h->type,
			  .export_id = h->export_id };

	memcpy(w.bytes, h->bytes, h->len);
	w.check = checksum(key, &w);
	memcpy(wire, &w, sizeof(w));
	return offsetof(struct wire, bytes) + h->len;
}

int handle_decode(const struct siphash_key *key, const void *wire, size_t len,
		  struct fs_handle *out)
{
	struct wire w = { 0 };

	if (len < offsetof(struct wire, bytes) || len > sizeof(w))
		return -EBADFD;
	memcpy(&w, wire, len);
	if (w.version != HANDLE_VERSION ||
	    len != offsetof(struct wire, bytes) + w.len ||
	    w.check != checksum(key, &w))
		return -EBADFD;
	*out = (struct fs_handle){ .export_id = w.export_id,
				   .type = w.type,
				   .kind = w.kind,
				   .len = w.len };
	memcpy(out->bytes, w.bytes, w.len);
	return 0;
}

uint64_t handle_hash(const struct fs_handle *h)
{
	static const struct siphash_key any = { { 1, 2 } };

	return siphash(&any, h->bytes, h->len);
}

bool handle_same(const struct fs_handle *a, const struct fs_handle *b)
{
	return a->type == b->type && a->kind == b->kind && a->len == b->len &&
	       !memcmp(a->bytes, b->bytes, a->len);
}

int handle_at(int dirfd, const char *name, struct fs_handle *out, int *mount_id)
{
	union {
		struct file_handle h;
		char room[sizeof(struct file_handle) + MAX_HANDLE_SZ];
	} u;
	int mount;

	u.h.handle_bytes = MAX_HANDLE_SZ;
	if (name_to_handle_at(dirfd, name, &u.h, &mount,
			      name[0] ? 0 : AT_EMPTY_PATH))
		return -errno;
	if (u.h.handle_bytes > HANDLE_BYTES_MAX)
		return -EOVERFLOW;
	*out = (struct fs_handle){ .type = u.h.handle_type,
				   .kind = HANDLE_KERNEL,
				   .len = (uint8_t)u.h.handle_bytes };
	memcpy(out->bytes, u.h.f_handle, u.h.handle_bytes);
	*mount_id = mount;
	return 0;
}

int handle_open(int mount_fd, const struct fs_handle *h, int flags)
{
	union {
		struct file_handle h;
		char room[sizeof(struct file_handle) + MAX_HANDLE_SZ];
	} u;
	int fd;

	u.h.handle_bytes = h->len;
	u.h.handle_type = h->type;
	memcpy(u.h.f_handle, h->bytes, h->len);
	fd = open_by_handle_at(mount_fd, &u.h, flags | O_CLOEXEC);
	if (fd >= 0)
		return fd;
	/* A handle that passed the checksum is well formed: whatever the file
	 * system says of it, the file is gone. */
	return errno == EINVAL || errno == ENOENT ? -ESTALE : -errno;
}

static int key_read(int fd, struct siphash_key *out)
{
	struct siphash_key key;
	struct stat st;

	if (fstat(fd, &st))
		return -errno;
	if (!S_ISREG(st.st_mode) || st.st_mode & 077 || st.st_uid != geteuid())
		return -EPERM;
	if (pread(fd, &key, sizeof(key), 0) != sizeof(key) ||
	    st.st_size != sizeof(key))
		return -EINVAL;
	*out = key;
	return 0;
}

static int sync_parent(const char *path)
{
	char *dir = strdup(path), *slash;
	int fd, ret;

	if (!dir)
		return -ENOMEM;
	slash = strrchr(dir, '/');
	if (slash)
		slash[slash == dir] = 0;
	fd = open(slash ? dir : ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	ret = fd < 0 || fsync(fd) ? -errno : 0;
	if (fd >= 0)
		close(fd);
	free(dir);
	return ret;
}

/* Written beside and linked into place: nobody ever sees half a key. */
static int key_make(const char *path)
{
	char temp[4096];
	uint8_t key[sizeof(struct siphash_key)];
	int fd, ret = 0;

	if (snprintf(temp, sizeof(temp), "%s.%d", path, getpid()) >=
	    (int)sizeof(temp))
		return -ENAMETOOLONG;
	fd = open(temp, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0600);
	if (fd < 0)
		return -errno;
	rng_secure(key, sizeof(key));
	if (write(fd, key, sizeof(key)) != sizeof(key))
		ret = -EIO;
	else if (fsync(fd))
		ret = -errno;
	if (!ret && link(temp, path) && errno != EEXIST)
		ret = -errno;
	unlink(temp);
	close(fd);
	return ret ? ret : sync_parent(path);
}

int handle_key_load(const char *path, struct siphash_key *out)
{
	int fd, ret;

	fd = open(path, O_RDONLY | O_CLOEXEC | O_NOFOLLOW);
	if (fd < 0 && errno == ENOENT) {
		ret = key_make(path);
		if (ret)
			return ret;
		fd = open(path, O_RDONLY | O_CLOEXEC | O_NOFOLLOW);
	}
	if (fd < 0)
		return -errno;
	ret = key_read(fd, out);
	close(fd);
	return ret;
}

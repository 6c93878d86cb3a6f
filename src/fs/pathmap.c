/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * From inode numbers to paths.
 *
 * Happy path: the map's rows from the file up to the root make a path, which is
 * opened beneath the root without following links, and what is found there has
 * the number and birth time of the handle.
 *
 * Failure modes: a row is missing, or leads to another file: the tree is
 * searched once, all that is met on the way is remembered, and the path tried
 * again. One searches at a time and the others wait for what it finds. Searches
 * have a least distance in time, so that stale handles cost little.
 *
 * Invariant: rows are hints; nothing is believed that the host does not confirm.
 */
#include "fs/pathmap.h"

#include "base/clock.h"
#include "base/lock.h"
#include "base/mem.h"
#include "base/wait.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <linux/openat2.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <urcu/list.h>

#define PATHMAP_BUCKETS 16384

/* Rows kept: 100 bytes each; later files are searched for when needed. */
#define PATHMAP_ROWS_MAX 1000000u

/* Directories below each other, and the length of a path, that are followed. */
#define PATHMAP_DEPTH_MAX 256
#define PATHMAP_PATH_MAX 4096

/* Between searches: a client that holds stale handles asks again and again. */
#define PATHMAP_SEARCH_NS (5 * NS_PER_S)

struct row {
	struct cds_list_head node;
	uint64_t ino, parent;
	char name[];
};

struct pathmap {
	int root_fd; /* (C) */
	uint64_t root_ino; /* (C) */
	uint32_t dev_major, dev_minor; /* (C) */
	struct mutex lock; /* LOCK_LEAF */
	struct cds_list_head buckets[PATHMAP_BUCKETS] GUARDED(lock);
	unsigned nr_rows GUARDED(lock);
	uint64_t searched_ns GUARDED(lock); /* when a search last ended */
	bool searching GUARDED(lock);
	struct waitq searched; /* a search ended */
};

/* What a handle holds. */
struct identity {
	uint64_t ino;
	uint64_t birth; /* ns; 0 where the host has none */
};

/* ---- identities ---- */

static int look_at(const struct pathmap *p, int dirfd, const char *name,
		   struct identity *id, mode_t *mode)
{
	struct statx st;

	if (statx(dirfd, name, AT_EMPTY_PATH | AT_SYMLINK_NOFOLLOW,
		  STATX_INO | STATX_TYPE | STATX_BTIME, &st))
		return -errno;
	if (st.stx_dev_major != p->dev_major ||
	    st.stx_dev_minor != p->dev_minor)
		return -EACCES;
	*id = (struct identity){ .ino = st.stx_ino };
	if (st.stx_mask & STATX_BTIME)
		id->birth = (uint64_t)st.stx_btime.tv_sec * NS_PER_S +
			    st.stx_btime.tv_nsec;
	*mode = st.stx_mode;
	return 0;
}

/* ---- rows ---- */

static struct cds_list_head *bucket_of(struct pathmap *p, uint64_t ino)
{
	return &p->buckets[ino * 0x9e3779b97f4a7c15ull >> 50];
}

static struct row *find_row(struct pathmap *p, uint64_t ino) REQUIRES(p->lock)
{
	struct row *r;

	cds_list_for_each_entry (r, bucket_of(p, ino), node)
		if (r->ino == ino)
			return r;
	return NULL;
}

/* A hint that cannot be kept is not kept. */
static void remember(struct pathmap *p, uint64_t ino, uint64_t parent,
		     const char *name)
{
	struct row *r, *old;
	size_t len = strlen(name) + 1;

	mutex_lock(&p->lock);
	old = find_row(p, ino);
	if (old && old->parent == parent && !strcmp(old->name, name)) {
		mutex_unlock(&p->lock);
		return;
	}
	r = p->nr_rows < PATHMAP_ROWS_MAX ? mem_alloc(sizeof(*r) + len) : NULL;
	if (old) {
		cds_list_del(&old->node);
		p->nr_rows--;
	}
	if (r) {
		r->ino = ino;
		r->parent = parent;
		memcpy(r->name, name, len);
		cds_list_add(&r->node, bucket_of(p, ino));
		p->nr_rows++;
	}
	mutex_unlock(&p->lock);
	mem_free(old);
}

/* The path from the root, written from the end of buf; NULL: not known. */
static char *path_of(struct pathmap *p, uint64_t ino,
		     char buf[PATHMAP_PATH_MAX])
{
	char *at = buf + PATHMAP_PATH_MAX - 1;
	struct row *r = NULL;
	size_t len;
	int depth;

	*at = 0;
	mutex_lock(&p->lock);
	for (depth = 0; ino != p->root_ino && at; depth++) {
		r = depth < PATHMAP_DEPTH_MAX ? find_row(p, ino) : NULL;
		len = r ? strlen(r->name) : 0;
		if (!r || (size_t)(at - buf) < len + 1) {
			at = NULL;
			break;
		}
		if (depth)
			*--at = '/';
		at -= len;
		memcpy(at, r->name, len);
		ino = r->parent;
	}
	mutex_unlock(&p->lock);
	return at;
}

static int open_path(struct pathmap *p, const struct identity *want)
{
	struct open_how how = {
		.flags = O_PATH | O_NOFOLLOW | O_CLOEXEC,
		.resolve =
			RESOLVE_BENEATH | RESOLVE_NO_SYMLINKS | RESOLVE_NO_XDEV,
	};
	char buf[PATHMAP_PATH_MAX], *path = path_of(p, want->ino, buf);
	struct identity id = { 0 };
	mode_t mode;
	long fd;

	if (!path)
		return -ESTALE;
	fd = syscall(SYS_openat2, p->root_fd, *path ? path : ".", &how,
		     sizeof(how));
	if (fd < 0)
		return errno == EMFILE || errno == ENFILE ? -errno : -ESTALE;
	if (look_at(p, (int)fd, "", &id, &mode) || id.ino != want->ino ||
	    id.birth != want->birth) {
		close((int)fd);
		return -ESTALE;
	}
	return (int)fd;
}

/* ---- searching ---- */

/* A directory that waits to be listed. */
struct waiting {
	struct cds_list_head node;
	struct identity id;
};

static void add_waiting(struct cds_list_head *list, const struct identity *id)
{
	struct waiting *w = mem_alloc(sizeof(*w));

	if (!w)
		return;
	w->id = *id;
	cds_list_add(&w->node, list);
}

static DIR *open_waiting(struct pathmap *p, const struct waiting *w)
{
	int path_fd = open_path(p, &w->id), fd;
	DIR *d = NULL;

	if (path_fd < 0)
		return NULL;
	fd = openat(path_fd, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	close(path_fd);
	if (fd >= 0)
		d = fdopendir(fd);
	if (fd >= 0 && !d)
		close(fd);
	return d;
}

/* Remembers what a directory holds. */
static void list_one(struct pathmap *p, struct cds_list_head *list,
		     const struct waiting *w)
{
	DIR *d = open_waiting(p, w);
	const struct dirent *e;
	struct identity id = { 0 };
	mode_t mode;

	if (!d)
		return;
	while ((e = readdir(d))) {
		if (!strcmp(e->d_name, ".") || !strcmp(e->d_name, "..") ||
		    look_at(p, dirfd(d), e->d_name, &id, &mode))
			continue;
		remember(p, id.ino, w->id.ino, e->d_name);
		if (S_ISDIR(mode))
			add_waiting(list, &id);
	}
	closedir(d);
}

static void search(struct pathmap *p)
{
	CDS_LIST_HEAD(list);
	struct identity root;
	struct waiting *w;
	mode_t mode;

	if (!look_at(p, p->root_fd, "", &root, &mode))
		add_waiting(&list, &root);
	while (!cds_list_empty(&list)) {
		w = cds_list_first_entry(&list, struct waiting, node);
		cds_list_del(&w->node);
		list_one(p, &list, w);
		mem_free(w);
	}
}

/* False while another searches. *mine: the caller is to search, none ended
 * lately. */
static bool try_search(struct pathmap *p, bool *mine)
{
	bool free;

	mutex_lock(&p->lock);
	free = !p->searching;
	*mine = free && (!p->searched_ns ||
			 clock_ns() - p->searched_ns > PATHMAP_SEARCH_NS);
	if (*mine)
		p->searching = true;
	mutex_unlock(&p->lock);
	return free;
}

static void search_end(struct pathmap *p)
{
	mutex_lock(&p->lock);
	p->searching = false;
	p->searched_ns = clock_ns();
	mutex_unlock(&p->lock);
	waitq_wake_all(&p->searched);
}

/* ---- the interface ---- */

int pathmap_create(int root_fd, struct pathmap **out)
{
	struct pathmap *p = mem_zalloc(sizeof(*p));
	struct statx st;
	int i;

	if (!p)
		return -ENOMEM;
	if (statx(root_fd, "", AT_EMPTY_PATH, STATX_INO, &st)) {
		mem_free(p);
		return -errno;
	}
	p->root_fd = root_fd;
	p->root_ino = st.stx_ino;
	p->dev_major = st.stx_dev_major;
	p->dev_minor = st.stx_dev_minor;
	mutex_init(&p->lock, LOCK_LEAF);
	waitq_init(&p->searched);
	for (i = 0; i < PATHMAP_BUCKETS; i++)
		CDS_INIT_LIST_HEAD(&p->buckets[i]);
	*out = p;
	return 0;
}

void pathmap_destroy(struct pathmap *p)
{
	struct row *r, *next;
	int i;

	for (i = 0; i < PATHMAP_BUCKETS; i++)
		cds_list_for_each_entry_safe (r, next, &p->buckets[i], node)
			mem_free(r);
	mutex_fini(&p->lock);
	mem_free(p);
}

int pathmap_handle(struct pathmap *p, int dirfd, const char *name,
		   uint64_t seen_in, const char *seen_as, struct fs_handle *out)
{
	struct identity id = { 0 };
	mode_t mode;
	int ret;

	ret = look_at(p, dirfd, name, &id, &mode);
	if (ret)
		return ret;
	*out = (struct fs_handle){ .kind = HANDLE_PATH, .len = sizeof(id) };
	memcpy(out->bytes, &id, sizeof(id));
	if (seen_in)
		remember(p, id.ino, seen_in, seen_as);
	return 0;
}

int pathmap_open(struct pathmap *p, const struct fs_handle *h)
{
	struct identity id = { 0 };
	bool mine;
	int fd;

	if (h->kind != HANDLE_PATH || h->len != sizeof(id))
		return -ESTALE;
	memcpy(&id, h->bytes, sizeof(id));
	fd = open_path(p, &id);
	if (fd != -ESTALE)
		return fd;
	wait_event(&p->searched, try_search(p, &mine));
	if (mine) {
		search(p);
		search_end(p);
	}
	return open_path(p, &id);
}

/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * Exports as they are served.
 *
 * Happy path: each entry of the list finds its running export by path or
 * becomes one: the directory is opened, its store made (which takes the
 * directory's lock) or shared with an export on the same file system, and its
 * handles tried. Then the entries are switched, and the old list is freed when
 * no request looks at it any more.
 *
 * Failure modes: all new exports are opened before any entry is switched, so a
 * list with one wrong directory changes nothing.
 *
 * Invariants: ids are unique; exports[0..nr_exports) never move.
 */
#include "fs/server.h"

#include "base/mem.h"
#include "base/rng.h"
#include "fs/clientname.h"
#include "fs/dir.h"
#include "fs/file.h"
#include "fs/pathmap.h"

#include <assert.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

/* ---- opening an export ---- */

static struct fs_volume *find_volume(struct fs_server *fs, uint64_t dev)
{
	struct fs_volume *v;

	cds_list_for_each_entry (v, &fs->volumes, node)
		if (v->dev == dev)
			return v;
	return NULL;
}

/* The store takes the directory's lock, also where it is not used for I/O. */
static int attach_volume(struct fs_server *fs, struct fs_export *x,
			 uint64_t dev)
{
	struct tr_store *store;
	struct fs_volume *v;
	int ret;

	ret = tr_store_host_open(x->path, &fs->options.host, &store);
	if (ret)
		return ret;
	v = find_volume(fs, dev);
	if (v) {
		x->lock_store = store;
		x->volume = v;
		return 0;
	}
	v = mem_zalloc(sizeof(*v));
	if (!v) {
		tr_store_destroy(store);
		return -ENOMEM;
	}
	v->dev = dev;
	v->store = store;
	cds_list_add_tail(&v->node, &fs->volumes);
	x->volume = v;
	return 0;
}

static void export_free(struct fs_export *x)
{
	if (x->paths)
		pathmap_destroy(x->paths);
	if (x->lock_store)
		tr_store_destroy(x->lock_store);
	if (x->fd >= 0)
		close(x->fd);
	mem_free(x->path);
	mem_free(x);
}

/* Finds out whether handles of the kernel may be opened here; the server's own
 * are used otherwise. */
static int try_handles(struct fs_export *x)
{
	struct fs_handle h;
	int fd, ret;

	ret = handle_at(x->fd, "", &h, &x->mount_id);
	fd = ret ? ret : handle_open(x->fd, &h, O_PATH);
	if (fd >= 0)
		close(fd);
	else
		ret = pathmap_create(x->fd, &x->paths);
	if (fd < 0 && !x->paths)
		return ret;
	return fs_export_handle(x, x->fd, "", 0, NULL, &x->root);
}

int fs_export_handle(const struct fs_export *x, int dirfd, const char *name,
		     uint64_t seen_in, const char *seen_as,
		     struct fs_handle *out)
{
	int mount, ret;

	if (x->paths) {
		ret = pathmap_handle(x->paths, dirfd, name, seen_in, seen_as,
				     out);
	} else {
		ret = handle_at(dirfd, name, out, &mount);
		if (!ret && mount != x->mount_id)
			ret = -EACCES;
	}
	if (!ret)
		out->export_id = x->id;
	return ret;
}

int fs_export_open(const struct fs_export *x, const struct fs_handle *h)
{
	if (x->paths)
		return pathmap_open(x->paths, h);
	return h->kind == HANDLE_KERNEL
		       ? handle_open(x->fd, h, O_PATH | O_NOFOLLOW)
		       : -ESTALE;
}

static uint64_t export_id(struct fs_server *fs, const struct export_entry *e)
{
	if (e->fsid)
		return e->fsid;
	return siphash(&fs->options.key, e->path, strlen(e->path));
}

/* What went wrong with an entry, in its words. */
static int entry_error(const struct export_entry *e, const char *what, int ret,
		       char error[EXPORTS_ERROR_MAX])
{
	snprintf(error, EXPORTS_ERROR_MAX, "export %s: %s: %s", e->path, what,
		 strerror(-ret));
	return ret;
}

static int export_open(struct fs_server *fs, const struct export_entry *e,
		       struct fs_export **out, char error[EXPORTS_ERROR_MAX])
{
	struct fs_export *x = mem_zalloc(sizeof(*x));
	const char *what = "opening it";
	struct stat st;
	int ret = -ENOMEM;

	if (!x)
		return entry_error(e, what, ret, error);
	x->fd = -1;
	x->path = mem_strdup(e->path);
	if (!x->path)
		goto out;
	x->id = export_id(fs, e);
	io_knobs_init(&x->knobs, true);
	rng_secure(&x->verifier, sizeof(x->verifier));
	x->fd = open(x->path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	if (x->fd < 0 || fstat(x->fd, &st)) {
		ret = -errno;
		goto out;
	}
	x->root_ino = st.st_ino;
	what = "its file system's handles cannot be used";
	ret = try_handles(x);
	if (ret)
		goto out;
	what = "its directories cannot be listed in parts";
	ret = dir_check_cookies(x->fd);
	if (ret)
		goto out;
	what = "using its directory";
	ret = attach_volume(fs, x, st.st_dev);
	if (ret == -EBUSY)
		what = "another process, perhaps a tailrace, has its lock";
out:
	if (ret) {
		export_free(x);
		return entry_error(e, what, ret, error);
	}
	*out = x;
	return 0;
}

/* ---- switching lists ---- */

static struct fs_export *find_path(struct fs_server *fs, const char *path)
{
	int nr = atomic_load(&fs->nr_exports), i;

	for (i = 0; i < nr; i++)
		if (!strcmp(fs->exports[i]->path, path))
			return fs->exports[i];
	return NULL;
}

static int add_missing(struct fs_server *fs, const struct exports *list,
		       char error[EXPORTS_ERROR_MAX])
{
	int i, j, nr, ret;

	for (i = 0; i < list->nr; i++) {
		const struct export_entry *e = &list->entries[i];

		if (find_path(fs, e->path))
			continue;
		nr = atomic_load(&fs->nr_exports);
		if (nr == EXPORTS_MAX)
			return entry_error(e, "too many exports since start",
					   -ENOSPC, error);
		for (j = 0; j < nr; j++)
			if (fs->exports[j]->id == export_id(fs, e))
				return entry_error(e, "fsid is in use", -EEXIST,
						   error);
		ret = export_open(fs, e, &fs->exports[nr], error);
		if (ret)
			return ret;
		atomic_store(&fs->nr_exports, nr + 1);
	}
	return 0;
}

static void set_entry(struct fs_export *x, struct export_entry *e)
{
	int i;

	rcu_assign_pointer(x->entry, e);
	for (i = 0; e && i < IO_NR_KNOBS; i++)
		if (e->io[i] != IO_INHERIT)
			atomic_store(&x->knobs.value[i], e->io[i]);
}

static bool try_change(struct fs_server *fs)
{
	bool mine;

	mutex_lock(&fs->lock);
	mine = !fs->changing;
	fs->changing = true;
	mutex_unlock(&fs->lock);
	return mine;
}

static void change_done(struct fs_server *fs)
{
	mutex_lock(&fs->lock);
	fs->changing = false;
	mutex_unlock(&fs->lock);
	waitq_wake_all(&fs->changed);
}

int fs_server_export(struct fs_server *fs, struct exports *exports,
		     char error[EXPORTS_ERROR_MAX])
{
	struct exports *list = mem_zalloc(sizeof(*list)), *old = NULL;
	int i, j, ret = -ENOMEM;

	if (!list) {
		snprintf(error, EXPORTS_ERROR_MAX, "exports: out of memory");
		return ret;
	}
	wait_event(&fs->changed, try_change(fs));
	ret = add_missing(fs, exports, error);
	if (ret)
		goto out;
	*list = *exports;
	for (i = 0; i < atomic_load(&fs->nr_exports); i++) {
		struct fs_export *x = fs->exports[i];
		struct export_entry *e = NULL;

		for (j = 0; j < list->nr && !e; j++)
			if (!strcmp(list->entries[j].path, x->path))
				e = &list->entries[j];
		set_entry(x, e);
	}
	old = fs->current;
	fs->current = list;
	list = NULL;
	*exports = (struct exports){ 0 };
out:
	change_done(fs);
	mem_free(list);
	if (old) {
		synchronize_rcu();
		exports_fini(old);
		mem_free(old);
	}
	return ret;
}

/* ---- finding ---- */

struct fs_export *fs_export_find(struct fs_server *fs, uint64_t id)
{
	int nr = atomic_load(&fs->nr_exports), i;

	for (i = 0; i < nr; i++)
		if (fs->exports[i]->id == id)
			return fs->exports[i]->entry ? fs->exports[i] : NULL;
	return NULL;
}

static struct fs_export *only_export(struct fs_server *fs)
{
	int nr = atomic_load(&fs->nr_exports), i;
	struct fs_export *only = NULL;

	for (i = 0; i < nr; i++) {
		if (!fs->exports[i]->entry)
			continue;
		if (only)
			return NULL;
		only = fs->exports[i];
	}
	return only;
}

/* The rest of path behind prefix, NULL if it does not lie there. */
static const char *behind(const char *path, const char *prefix)
{
	size_t len = strlen(prefix);

	if (!strcmp(prefix, "/"))
		len = 0;
	if (strncmp(path, prefix, len) || (path[len] && path[len] != '/'))
		return NULL;
	path += len;
	return path + strspn(path, "/");
}

struct fs_export *fs_export_by_path(struct fs_server *fs, const char *path,
				    const char **rest)
{
	int nr = atomic_load(&fs->nr_exports), i;
	struct fs_export *best = NULL;
	const char *r;

	if (path[0] != '/')
		return NULL;
	for (i = 0; i < nr; i++) {
		struct fs_export *x = fs->exports[i];

		r = x->entry ? behind(path, x->path) : NULL;
		if (r && (!best || strlen(x->path) > strlen(best->path))) {
			best = x;
			*rest = r;
		}
	}
	if (best)
		return best;
	best = only_export(fs);
	if (!best)
		return NULL;
	r = behind(path, "/export");
	*rest = r ? r : behind(path, "/");
	return best;
}

void fs_export_loss(struct fs_export *x)
{
	atomic_fetch_add(&x->verifier, 1);
}

/* ---- requests ---- */

int fs_request_init(struct fs_request *r, struct fs_server *fs,
		    struct fs_export *export, const struct sockaddr *peer,
		    const struct fs_cred *cred)
{
	const struct export_options *o = NULL;
	const struct export_entry *e;
	char name[CLIENT_NAME_MAX];
	struct in6_addr addr = IN6ADDR_LOOPBACK_INIT;
	uint16_t port = 0; /* a local socket: whoever may connect is trusted */
	bool named = false, gone;

	(void)exports_addr(peer, &addr, &port);
	rcu_read_lock();
	e = rcu_dereference(export->entry);
	if (e && export_wants_name(e) && peer->sa_family != AF_UNIX) {
		/* Asking for a name blocks: not inside the read section. */
		rcu_read_unlock();
		named = client_name(peer, name);
		rcu_read_lock();
		e = rcu_dereference(export->entry);
	}
	gone = !e;
	if (e)
		o = export_match(e, &addr, named ? name : NULL);
	if (o)
		r->options = *o;
	rcu_read_unlock();
	if (gone)
		return -ESTALE;
	if (!o)
		return -EACCES;
	if (r->options.secure && port >= IPPORT_RESERVED)
		return -EPERM;
	r->fs = fs;
	r->export = export;
	r->cred = *cred;
	identity_squash(&r->cred, &r->options);
	memcpy(r->client, &addr, sizeof(r->client));
	return 0;
}

/* ---- the whole ---- */

int fs_server_create(const struct fs_server_options *options,
		     struct fs_server **out)
{
	struct fs_server *fs = mem_zalloc(sizeof(*fs));
	int ret;

	if (!fs)
		return -ENOMEM;
	fs->options = *options;
	io_knobs_init(&fs->knobs, false);
	mutex_init(&fs->lock, LOCK_EXPORTS);
	waitq_init(&fs->changed);
	CDS_INIT_LIST_HEAD(&fs->volumes);
	atomic_init(&fs->nr_exports, 0);
	ret = file_table_create(options->fds_max, options->file_age_ns,
				options->cache, &fs->files);
	if (ret) {
		mutex_fini(&fs->lock);
		mem_free(fs);
		return ret;
	}
	*out = fs;
	return 0;
}

int fs_server_destroy(struct fs_server *fs)
{
	struct fs_volume *v, *next;
	int i, ret;

	file_table_destroy(fs->files);
	ret = tr_cache_destroy(fs->options.cache);
	/* Every opening was in the table. */
	assert(ret != -EBUSY);
	for (i = 0; i < atomic_load(&fs->nr_exports); i++)
		export_free(fs->exports[i]);
	cds_list_for_each_entry_safe (v, next, &fs->volumes, node) {
		tr_store_destroy(v->store);
		mem_free(v);
	}
	if (fs->current)
		exports_fini(fs->current);
	mem_free(fs->current);
	mutex_fini(&fs->lock);
	mem_free(fs);
	return ret;
}

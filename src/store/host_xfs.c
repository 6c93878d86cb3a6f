/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * Descriptors of XFS that leave a file's times alone.
 *
 * XFS opens a file by handle for backup programs: reads and writes through
 * such a descriptor change no times, so a writeback is invisible to whoever
 * looks at mtime (ftruncate and fallocate are not). Needs CAP_SYS_ADMIN.
 *
 * Failure modes: not XFS, or not permitted: host_xfs_usable() says so once, at
 * start. The definitions are the kernel's interface, so that nothing needs
 * the headers of XFS.
 */
#include "store/host.h"

#include <errno.h>
#include <fcntl.h>
#include <sys/ioctl.h>
#include <sys/statfs.h>
#include <unistd.h>

#define XFS_MAGIC 0x58465342
#define HANDLE_MAX 64 /* a struct xfs_handle is 24 bytes */

struct xfs_handle_request {
	uint32_t fd;
	void *path;
	uint32_t oflags;
	void *ihandle;
	uint32_t ihandlen;
	void *ohandle;
	uint32_t *ohandlen;
};
#define XFS_FD_TO_HANDLE _IOWR('X', 106, struct xfs_handle_request)
#define XFS_OPEN_BY_HANDLE _IOWR('X', 107, struct xfs_handle_request)

int host_xfs_reopen(int dir_fd, int fd, int flags)
{
	unsigned char handle[HANDLE_MAX];
	uint32_t len = sizeof(handle);
	struct xfs_handle_request request = {
		.fd = fd,
		.ohandle = handle,
		.ohandlen = &len,
	};
	int new;

	if (ioctl(dir_fd, XFS_FD_TO_HANDLE, &request))
		return -errno;
	request = (struct xfs_handle_request){
		.oflags = flags | O_LARGEFILE,
		.ihandle = handle,
		.ihandlen = len,
	};
	new = ioctl(dir_fd, XFS_OPEN_BY_HANDLE, &request);
	if (new < 0)
		return -errno;
	(void)fcntl(new, F_SETFD, FD_CLOEXEC);
	return new;
}

bool host_xfs_usable(int dir_fd)
{
	struct statfs fs;
	int fd;

	if (fstatfs(dir_fd, &fs) || fs.f_type != XFS_MAGIC)
		return false;
	fd = host_xfs_reopen(dir_fd, dir_fd, O_RDONLY | O_DIRECTORY);
	if (fd < 0)
		return false;
	close(fd);
	return true;
}

/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * errno to NFSv3 status, one row each. It cannot fail: an errno without a row
 * is NFS3ERR_IO, which every procedure may return.
 */
#include "nfs/status.h"

#include "base/compiler.h"

#include <errno.h>

static const struct {
	int error;
	enum nfs3_status status;
} rows[] = {
	{ EPERM, NFS3ERR_PERM },
	{ ENOENT, NFS3ERR_NOENT },
	{ EIO, NFS3ERR_IO },
	{ ENXIO, NFS3ERR_NXIO },
	{ EACCES, NFS3ERR_ACCES },
	{ ETXTBSY, NFS3ERR_ACCES },
	{ EEXIST, NFS3ERR_EXIST },
	{ EXDEV, NFS3ERR_XDEV },
	{ ENODEV, NFS3ERR_NODEV },
	{ ENOTDIR, NFS3ERR_NOTDIR },
	{ EISDIR, NFS3ERR_ISDIR },
	{ EINVAL, NFS3ERR_INVAL },
	{ ELOOP, NFS3ERR_INVAL },
	{ EFBIG, NFS3ERR_FBIG },
	{ EOVERFLOW, NFS3ERR_FBIG },
	{ ENOSPC, NFS3ERR_NOSPC },
	{ EROFS, NFS3ERR_ROFS },
	{ EMLINK, NFS3ERR_MLINK },
	{ ENAMETOOLONG, NFS3ERR_NAMETOOLONG },
	{ ENOTEMPTY, NFS3ERR_NOTEMPTY },
	{ EDQUOT, NFS3ERR_DQUOT },
	{ ESTALE, NFS3ERR_STALE },
	{ EBADFD, NFS3ERR_BADHANDLE }, /* handle_decode() */
	{ ECANCELED, NFS3ERR_NOT_SYNC }, /* setattr_change()'s guard */
	{ EILSEQ, NFS3ERR_BAD_COOKIE }, /* dir_start() */
	{ EOPNOTSUPP, NFS3ERR_NOTSUPP },
	{ ENOSYS, NFS3ERR_NOTSUPP },
	{ EMSGSIZE, NFS3ERR_TOOSMALL }, /* a listing without room */
	{ EPROTOTYPE, NFS3ERR_BADTYPE }, /* MKNOD of what it does not make */
	/* For want of something that will be there again: ask later. */
	{ EAGAIN, NFS3ERR_JUKEBOX },
	{ ENOMEM, NFS3ERR_JUKEBOX },
	{ EMFILE, NFS3ERR_JUKEBOX },
	{ ENFILE, NFS3ERR_JUKEBOX },
	{ EBUSY, NFS3ERR_JUKEBOX },
	{ EINTR, NFS3ERR_JUKEBOX },
};

enum nfs3_status nfs3_status(int error)
{
	size_t i;

	if (!error)
		return NFS3_OK;
	for (i = 0; i < ARRAY_SIZE(rows); i++)
		if (rows[i].error == -error)
			return rows[i].status;
	return NFS3ERR_IO;
}

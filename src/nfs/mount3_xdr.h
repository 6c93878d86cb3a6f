/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * Arguments of MOUNT version 3 (RFC 1813, section 5.2).
 */
#ifndef TR_NFS_MOUNT3_XDR_H
#define TR_NFS_MOUNT3_XDR_H

#include "xdr/fields.h"

/* RFC 1813, section 5.1.2: MNTPATHLEN. */
#define MOUNT3_PATH_MAX 1024

XDR_OPAQUE(mount3_path, MOUNT3_PATH_MAX)

#define MOUNT3_PATH_ARGS(F) F(mount3_path, path)
XDR_STRUCT(mount3_path_args, MOUNT3_PATH_ARGS)

#endif

#!/bin/bash
# SPDX-License-Identifier: GPL-2.0-or-later
# Goal: programs work on the mount of a Linux kernel client as on a disk: make,
# git, SQLite, fio, direct I/O in records of 47008 bytes; two clients see each
# other's files; a client keeps what it has over the server's flushes; the
# host's files are what the clients wrote.
# Method: nfs-apps-job.sh in a Linux kernel in User-Mode Linux that mounts the
# server twice, as two clients, with direct writes and uncached reads; then the
# sums of both sides.
#
# usage: nfs-apps.sh TAILRACE
here=$(dirname "$0")
. "$here/server.sh"
[ "$(id -u)" = 0 ] || { echo "not root"; exit 77; }
command -v linux.uml >/dev/null || { echo "no linux.uml"; exit 77; }
[ -e /dev/net/tun ] || { echo "no /dev/net/tun"; exit 77; }

port='' mount_port=''
server_start "$1" --set io_cache_write=2 --set io_cache_read=1
mkdir "$work/scratch"
"$here/kernelclient.sh" -q -2 -v 3 -p "$port" -m "$mount_port" -t 200 -o actimeo=0 \
	-s "$work/scratch" "$here/nfs-apps-job.sh"
status=$?
[ $status != 125 ] || { echo "the guest does not work here"; exit 77; }
[ $status = 0 ] || { echo "the clients failed: $status"; exit 1; }
server_stop
(cd "$dir" && find . -type f | sort | xargs sha256sum) >"$work/host-sums"
diff "$work/scratch/client-sums" "$work/host-sums" || { echo "sums differ"; exit 1; }

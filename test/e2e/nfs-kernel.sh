#!/bin/bash
# SPDX-License-Identifier: GPL-2.0-or-later
# Goal: a Linux kernel client works on the server as on a local directory: files,
# names, links, attributes and times, listings, large trees; another run sees
# what the first wrote after the server was started again; the host's files are
# what the client wrote. Told that all it wrote is stable, as in I/O mode 4, it
# sends no COMMIT.
# Method: the script nfs-kernel-job.sh in a Linux kernel in User-Mode Linux,
# checksums of both sides, and the server's count of calls.
#
# usage: nfs-kernel.sh TAILRACE
here=$(dirname "$0")
. "$here/server.sh"
[ "$(id -u)" = 0 ] || { echo "not root"; exit 77; }
command -v linux.uml >/dev/null || { echo "no linux.uml"; exit 77; }
[ -e /dev/net/tun ] || { echo "no /dev/net/tun"; exit 77; }

client() # SCRIPT [ARG]...
{
	"$here/kernelclient.sh" -q -v 3 -p "$port" -m "$mount_port" -t 200 -s "$work" "$@"
	status=$?
	[ $status != 125 ] || { echo "the guest does not work here"; exit 77; }
	[ $status = 0 ] || { echo "the client failed: $status"; exit 1; }
}

compare() # what the client saw, what the host has
{
	(cd "$dir" && find . -type f | sort | xargs sha256sum) >"$work/host-sums"
	diff "$work/client-sums" "$work/host-sums" || { echo "sums differ"; exit 1; }
}

calls() # TAILRACE PROCEDURE: of it, since the server started
{
	"$1" stat --control "$work/control" | awk -v p="$2" '
		/^client / { exit }
		$1 == p { n += $2 }
		END { print n + 0 }'
}

port='' mount_port=''
server_start "$1" --control "$work/control"
client "$here/nfs-kernel-job.sh" first
[ "$(calls "$1" COMMIT)" -gt 0 ] || { echo "no COMMIT was counted"; exit 1; }
server_stop
compare
server_start "$1" --set io_cache_write=2 --set io_cache_read=2
client "$here/nfs-kernel-job.sh" again
server_stop
compare
server_start "$1" --set io_cache_write=4 --control "$work/control"
client "$here/nfs-kernel-job.sh" again
[ "$(calls "$1" WRITE)" -gt 0 ] || { echo "no WRITE was counted"; exit 1; }
[ "$(calls "$1" COMMIT)" = 0 ] || { echo "COMMITs in mode 4"; exit 1; }
server_stop
compare

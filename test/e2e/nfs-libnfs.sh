#!/bin/bash
# SPDX-License-Identifier: GPL-2.0-or-later
# Goal: libnfs's tools list, write and read files through the server, in every
# I/O mode, and the host's files are the same after it ended.
# Method: nfs-ls, nfs-cp, nfs-cat on a new server for each pair of modes.
#
# usage: nfs-libnfs.sh TAILRACE
. "$(dirname "$0")/server.sh"
for tool in nfs-ls nfs-cp nfs-cat; do
	command -v $tool >/dev/null || { echo "no $tool"; exit 77; }
done
head -c 3000017 /dev/urandom >"$work/big"
echo hello >"$work/small"

modes() # READ WRITE
{
	server_start "$tailrace_path" --set "io_cache_read=$1" --set "io_cache_write=$2"
	base=nfs://127.0.0.1/export
	args="?version=3&nfsport=$port&mountport=$mount_port"
	nfs-cp "$work/small" "$base/small$args" >/dev/null || exit 1
	nfs-cp "$work/big" "$base/big$args" >/dev/null || exit 1
	nfs-ls "$base$args" | awk '{ print $5, $6 }' | sort >"$work/list"
	printf '%s\n' '3000017 big' '6 small' | sort | diff - "$work/list" || exit 1
	nfs-cat "$base/big$args" >"$work/back" || exit 1
	same "$work/big" "$work/back"
	nfs-cat "$base/none$args" 2>/dev/null && { echo "a file that is not there was read"; exit 1; }
	echo changed on the host >"$dir/small"
	[ "$(nfs-cat "$base/small$args")" = "changed on the host" ] || {
		echo "a change on the host was not seen, modes $1 $2"; exit 1; }
	cp "$work/small" "$dir/small"
	cp -p /bin/true "$dir/true"
	nfs-cat "$base/true$args" >/dev/null || exit 1
	"$dir/true" || { echo "what was read cannot be executed"; exit 1; }
	server_stop
	same "$work/big" "$dir/big"
	same "$work/small" "$dir/small"
	rm "$dir"/*
	port='' mount_port=''
}

tailrace_path=$1
port='' mount_port=''
for read in 0 1 2; do
	for write in 0 1 2 3 4; do
		modes $read $write
	done
done

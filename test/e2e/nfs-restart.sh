#!/bin/bash
# SPDX-License-Identifier: GPL-2.0-or-later
# Goal: nothing that a client was told is stable is lost when the server is
# killed, and what is not yet stable the client sends again because the verifier
# changed; handles stay good; no file is ever longer than what was written.
# Method: a Linux kernel client copies files and syncs each, while the server is
# killed and started again. Then the host's files are compared with the source.
# With "user" the server is not started by root: handles are of its own making
# then, and found again by a search.
#
# usage: nfs-restart.sh TAILRACE [user]
here=$(dirname "$0")
. "$here/server.sh"
[ "$(id -u)" = 0 ] || { echo "not root"; exit 77; }
command -v linux.uml >/dev/null || { echo "no linux.uml"; exit 77; }
[ -e /dev/net/tun ] || { echo "no /dev/net/tun"; exit 77; }

if [ "${2-}" = user ]; then
	as='setpriv --reuid 1234 --regid 1234 --clear-groups'
	chown 1234:1234 "$work" "$dir"
fi
mkdir "$work/source"
for i in 1 2 3 4 5 6 7 8; do
	head -c $((i * 1000003)) /dev/urandom >"$work/source/$i"
done
: >"$work/at"
port='' mount_port=''
server_start "$1"
"$here/kernelclient.sh" -q -v 3 -p "$port" -m "$mount_port" -t 200 -s "$work" \
	-o wsize=65536,timeo=20 "$here/nfs-restart-job.sh" >"$work/job" 2>&1 &
job=$!
kills=0
# The client says which file it has begun.
while read -r _; do
	[ $kills -lt 5 ] || continue
	kill -KILL "$server"
	wait "$server" 2>/dev/null
	kills=$((kills + 1))
	server_start "$1"
done < <(tail -n +1 -s 0.02 -f --pid=$job "$work/at")
wait $job
status=$?
[ $status != 125 ] || { echo "the guest does not work here"; exit 77; }
[ $status = 0 ] || { cat "$work/job"; echo "the client failed: $status"; exit 1; }
[ $kills = 5 ] || { echo "the client was done after $kills kills"; exit 1; }
server_stop
for i in 1 2 3 4 5 6 7 8; do
	same "$work/source/$i" "$dir/$i"
done

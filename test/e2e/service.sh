#!/bin/bash
# SPDX-License-Identifier: GPL-2.0-or-later
# Goal: the service manager takes the unit, and the server tells it when it is
# ready, not before, and when it ends. Method: systemd-analyze on the unit with
# this program in it; a socket in the manager's place.
#
# usage: service.sh TAILRACE UNIT
. "$(dirname "$0")/server.sh"
tailrace_path=$(realpath "$1")
command -v python3 >/dev/null || { echo "no python3"; exit 77; }
if command -v systemd-analyze >/dev/null; then
	sed "s|^ExecStart=[^ ]*|ExecStart=$tailrace_path|; /^Documentation/d" "$2" \
		>"$work/tailrace.service"
	systemd-analyze verify "$work/tailrace.service" >"$work/verify" 2>&1 ||
		{ cat "$work/verify"; exit 1; }
	grep -q tailrace "$work/verify" && { cat "$work/verify"; exit 1; }
fi

# Prints each datagram as a line, after one that says that it listens.
python3 -c 'import socket, sys
s = socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM)
s.bind(sys.argv[1])
print("listening", flush=True)
for i in range(2):
    print(s.recv(100).decode(), flush=True)' "$work/notify" >"$work/told" &
manager=$!
until grep -qs listening "$work/told"; do kill -0 $manager || exit 1; done
NOTIFY_SOCKET=$work/notify server_start "$tailrace_path" --control "$work/control"
until grep -q READY=1 "$work/told"; do kill -0 $manager || exit 1; done
grep -q STOPPING "$work/told" && { echo "stopping, at start"; exit 1; }
"$tailrace_path" get --control "$work/control" io_depth >/dev/null || exit 1
server_stop
wait $manager || exit 1
[ "$(tail -n 1 "$work/told")" = STOPPING=1 ] || { cat "$work/told"; exit 1; }

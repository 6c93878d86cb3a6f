#!/bin/bash
# SPDX-License-Identifier: GPL-2.0-or-later
# Goal: the events of `tailrace trace` are USDT probes too: each is in the
# program with a semaphore, and bpftrace, where the kernel lets it, sees a
# WRITE's xid, length and disposition there. Method: readelf; bpftrace on a
# server while nfs-cp writes.
#
# usage: probes.sh TAILRACE
. "$(dirname "$0")/server.sh"
tailrace_path=$1
command -v readelf >/dev/null || { echo "no readelf"; exit 77; }
readelf -n "$tailrace_path" >"$work/notes" 2>/dev/null
grep -q 'Provider: tailrace' "$work/notes" || { echo "built without probes"; exit 77; }
"$tailrace_path" trace --list | while read -r name; do
	grep -A1 "Name: $name\$" "$work/notes" | grep -q 'Semaphore: 0x0*[1-9a-f]' || {
		echo "no probe with a semaphore: $name"; exit 1; }
done || exit 1

for tool in bpftrace nfs-cp; do
	command -v $tool >/dev/null || { echo "no $tool"; exit 77; }
done
timeout 20 bpftrace -e 'BEGIN { printf("works\n"); exit(); }' 2>/dev/null | grep -q works || {
	echo "bpftrace does not work on this kernel"; exit 77; }
server_start "$tailrace_path" --set io_cache_write=2
timeout 60 bpftrace -p "$server" -e '
	BEGIN { printf("attached\n"); }
	usdt:'"$(realpath "$tailrace_path")"':tailrace:nfsd_write_dio_split {
		printf("split xid=%x len=%llu %s prefix=%llu\n", arg0, arg3, str(arg4),
			*(uint64 *)(arg5 + 56));
		exit();
	}' >"$work/seen" 2>"$work/bpftrace" &
tracer=$!
until grep -qs attached "$work/seen"; do
	kill -0 $tracer 2>/dev/null || {
		echo "bpftrace cannot attach here: $(cat "$work/bpftrace")"; exit 77; }
	sleep 0.05
done
head -c 100000 /dev/urandom >"$work/in"
nfs-cp "$work/in" "nfs://127.0.0.1/export/out?version=3&nfsport=$port&mountport=$mount_port" \
	>/dev/null || exit 1
wait $tracer
grep -qE '^split xid=[0-9a-f]+ len=100000 [a-z_]+ prefix=0$' "$work/seen" || {
	cat "$work/seen" "$work/bpftrace"; exit 1; }
server_stop

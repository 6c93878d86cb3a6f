#!/bin/bash
# SPDX-License-Identifier: GPL-2.0-or-later
# Goal: `tailrace bench nfs` writes and reads all it says and verifies it, says
# what a server promised, and removes its file or keeps it; a server that is not
# there is one clear line.
# Method: small files through a new server in all ways of sending, the rows as
# JSON.
#
# usage: bench-nfs.sh TAILRACE
. "$(dirname "$0")/server.sh"

# bench WORD=VALUE... -- OPTION...: runs it; what its row has to say.
bench()
{
	local wanted=()

	while [ "$1" != -- ]; do
		wanted+=("$1")
		shift
	done
	shift
	"$tailrace" bench nfs -p "$port" --mount-port "$mount_port" --json \
		--size 4M --dir "$dir" --pid "$server" "$@" >"$work/json" 2>>"$work/err" || {
		echo "bench nfs $* failed"; exit 1; }
	for word in '"verified":true' "${wanted[@]}"; do
		grep -qF "$word" "$work/json" || {
			echo "bench nfs $*: no $word in"; cat "$work/json"; exit 1; }
	done
}

server_start "$1" --set io_cache_write=1
bench '"committed":"UNSTABLE"' '"commits":1' -- --stable unstable
bench '"committed":"DATA_SYNC"' '"commits":0' -- --stable data --calls row
bench '"committed":"FILE_SYNC"' '"writes":178' -- --stable file --calls pair
bench '"rewrite":true' -- --rewrite --depth 3 --random
bench '"read":true' '"committed":"-"' -- --read --record 4K --connections 3
bench '"passes":3' '"writes":267' '"bytes":12551136' -- --read --passes 3
"$tailrace" bench nfs --passes 3 2>"$work/said" && { echo "passes of writes"; exit 1; }
grep -q -- --read "$work/said" || { echo "not told why:"; cat "$work/said"; exit 1; }
bench '"commits":45' -- --record 100000 --connections 1 --commit-every 1 --size 4400000
[ ! -e "$dir/tailrace-bench.nfs" ] || { echo "the file is still there"; exit 1; }
bench '"connections":1' -- --keep --connections 1
[ -e "$dir/tailrace-bench.nfs" ] || { echo "the file was not kept"; exit 1; }
server_stop
"$tailrace" bench nfs -p "$port" --mount-port "$mount_port" 2>"$work/said" && {
	echo "no server, and no failure"; exit 1; }
[ "$(wc -l <"$work/said")" = 1 ] || { echo "not one line:"; cat "$work/said"; exit 1; }

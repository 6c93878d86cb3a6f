#!/bin/bash
# SPDX-License-Identifier: GPL-2.0-or-later
# Goal: stat, get, set, trace and top say what a running server does, and WRITEs
# of a real client are seen in all of them, the split of a direct one with its
# fields by name and in order. Method: a server, nfs-cp, and the commands; jq
# reads what they print.
#
# usage: control.sh TAILRACE
. "$(dirname "$0")/server.sh"
for tool in nfs-cp nfs-cat jq; do
	command -v $tool >/dev/null || { echo "no $tool"; exit 77; }
done
tailrace_path=$(realpath "$1")
socket=$work/control

fail()
{
	echo "$*"
	exit 1
}

# ask COMMAND [WORD]...
ask()
{
	local command=$1
	shift
	"$tailrace_path" "$command" --control "$socket" "$@"
}

# expect WANTED COMMAND [WORD]...: what it prints, blanks as one
expect()
{
	local want=$1 got
	shift
	got=$(ask "$@" | tr -s ' ') || fail "$*: failed"
	[ "$got" = "$want" ] || fail "$*: wanted '$want', got '$got'"
}

# refused STATUS COMMAND [WORD]...: that exit status and one line
refused()
{
	local want=$1 got=0
	shift
	ask "$@" >"$work/answer" 2>&1 || got=$?
	[ $got = "$want" ] || fail "$*: status $got, wanted $want"
	[ "$(wc -l <"$work/answer")" = 1 ] || fail "$*: not one line"
}

# stat_is EXPRESSION: true of the statistics
stat_is()
{
	ask stat --json >"$work/stat" || fail "stat failed"
	jq -e "$1" "$work/stat" >/dev/null || {
		jq . "$work/stat"; fail "not so: $1"; }
}

# trace_start FILE [WORD]...: sets tracer, when it is being served
trace_start()
{
	local file=$1
	shift
	"$tailrace_path" trace --control "$socket" "$@" >"$file" &
	tracer=$!
	until ask stat --json | jq -e '.server.trace_clients == 1' >/dev/null; do
		kill -0 $tracer 2>/dev/null || fail "trace $* ended"
	done
}

refused 1 stat
refused 1 get
refused 1 trace
server_start "$tailrace_path" --control "$socket"
grep -q "^ready: nfs .* mount [0-9]* control $socket\$" "$work/out" ||
	fail "no control socket in: $(cat "$work/out")"
[ "$(stat -c %a "$socket")" = 600 ] || fail "the socket is open to others"

# ---- parameters ----
expect N get io_interlock
expect Y get direct_misaligned_dontcache
expect 'io_interlock Y' set io_interlock y
expect $'io_cache_read 2\nio_cache_write 3\ndisable_splice_read Y' set io_cache_write 3
expect '' set io_cache_write 3
expect $'io_cache_read 0\nio_cache_write 0' set io_cache_read 0
expect Y get disable_splice_read
refused 2 set io_cache_read 3
refused 2 set io_cache_write -- 5
refused 2 set io_cache_read inherit
refused 2 set no_such_name 1
refused 2 set edge_max_age 2d
refused 2 set edge_max_age
refused 2 set --export /nowhere io_cache_read 1
refused 2 set --export "$dir" edge_max_age 1
refused 2 get no_such_name
expect 0 get io_cache_read
expect 'edge_max_age 2000 ms' set edge_max_age 2s
expect 'dirty_limit 8388608 bytes' set dirty_limit 8M
expect '{"dirty_limit":8388608}' get dirty_limit --json
expect 'io_interlock N' set io_interlock N
expect 'io_cache_write 2' set --export "$dir" io_cache_write 2
expect 2 get --export /export io_cache_write
expect 0 get io_cache_write
expect '{"io_cache_read":"inherit"}' get --export "$dir" io_cache_read --json
expect 'io_cache_write inherit (0)' set --export "$dir" io_cache_write inherit
ask get --json | jq -e '.io_interlock == false and .io_depth == 8' >/dev/null ||
	fail "get --json"

# ---- traces and statistics of WRITEs ----
expect 'io_cache_write 2' set io_cache_write 2
head -c 3000017 /dev/urandom >"$work/big"
trace_start "$work/split" nfsd_write_dio_split --count 1
args="?version=3&nfsport=$port&mountport=$mount_port"
nfs-cp "$work/big" "nfs://127.0.0.1/export/big$args" >/dev/null || exit 1
wait $tracer || fail "trace ended with $?"
hex='0x[0-9a-f]{8}'
grep -qE "^[0-9]+\.[0-9]{9} [0-9]+ nfsd_write_dio_split xid=$hex fh_hash=$hex \
offset=[0-9]+ len=[0-9]+ offset_align=[0-9]+ mem_align=[0-9]+ mem_offset=[0-9]+ \
prefix=[0-9]+ middle=[0-9]+ suffix=[0-9]+ nsegs=[1-3] \
disposition=(direct|mem_misaligned|no_alignment|too_small|no_middle) dontcache=1\$" \
	"$work/split" || fail "not a split: $(cat "$work/split")"

trace_start "$work/events" 'nfsd_w*' nfsd_read_start --json
nfs-cp "$work/big" "nfs://127.0.0.1/export/again$args" >/dev/null || exit 1
nfs-cat "nfs://127.0.0.1/export/again$args" >"$work/back" || exit 1
same "$work/big" "$work/back"
until grep -q nfsd_read_start "$work/events"; do
	kill -0 $tracer || fail "trace ended"
done
kill $tracer
wait $tracer 2>/dev/null
# What one WRITE of it said, in order; all of its segments are the WRITE.
jq -es '[.[] | select(.event | startswith("nfsd_write"))] as $w
	| ([$w[] | select(.event == "nfsd_write_dio_split")] | .[0]) as $s
	| [$w[] | select(.xid == $s.xid)] as $one
	| ($one | map(.event) | index("nfsd_write_opened") < index("nfsd_write_dio_split"))
	and ($one[-1].event == "nfsd_write_done")
	and ($one | map(.event) | map(select(test("_(start|opened|io_done|done)$"))) | length == 4)
	and ([$one[] | select(.event | test("_(direct|dontcache|vector)$")) | .len] | add == $s.len)
	and ($s.nsegs == ([$one[] | select(.event | test("_(direct|dontcache|vector)$"))] | length))' \
	"$work/events" >/dev/null || { cat "$work/events"; fail "events are not as they should be"; }
until ask stat --json | jq -e '.server.trace_clients == 0' >/dev/null; do
	kill -0 $server || fail "the server ended"
done
stat_is '.exports | length == 1 and .[0].name == "'"$dir"'"
	and .[0].bytes_written == 6000034 and .[0].bytes_read == 3000017'
stat_is '.exports[0].ops[] | select(.name == "WRITE")
	| .operations >= 2 and .bytes_in > 6000034 and .p50_us <= .p99_us and .p99_us <= .max_us'
stat_is '.clients | length == 1 and .[0].name == "127.0.0.1"'
stat_is '.clients[0].ops[] | select(.name == "WRITE") | .bytes_in > 6000034'
stat_is '.bdi | length == 1 and .[0].BdiWritten >= 0 and .[0].device_write_bytes > 5900000'
stat_is '[.bdi[0] | to_entries[].key][1:13] == ["BdiWriteback", "BdiReclaimable",
	"BdiDontcacheDirty", "BdiDirtyThresh", "DirtyThresh", "BackgroundThresh", "BdiDirtied",
	"BdiWritten", "BdiWriteBandwidth", "b_dirty", "b_io", "b_more_io"]'
stat_is '.wb[0] | .WbCgIno == 0 and (.state | startswith("0x")) and .WbDirtyThresh == 8192'
stat_is '.cache.device_writes > 0 and .rpc.calls > 0'
ask stat >"$work/table"
awk 'length > 80 { exit 1 }' "$work/table" || fail "stat is wider than 80 columns"
[ "$(ask stat --json -i 1 --count 2 | wc -l)" = 2 ] || fail "stat -i"

# ---- top, on a terminal of its own ----
if command -v script >/dev/null; then
	TERM=xterm script -qec "'$tailrace_path' top --control '$socket' --count 2" /dev/null \
		</dev/null >"$work/top" || fail "top failed"
	grep -q 127.0.0.1 "$work/top" || fail "top does not show the client"
fi
refused 77 top

# ---- a daemon ----
(cd "$work" && "$tailrace_path" serve "$work/daemon" --state "$work/state" --cache 8M -p 0 \
	--mount-port 0 --control daemon.control --daemon >"$work/daemon.out") && fail "no directory"
mkdir "$work/daemon"
(cd "$work" && "$tailrace_path" serve "$work/daemon" --state "$work/state" --cache 8M -p 0 \
	--mount-port 0 --control daemon.control --daemon >"$work/daemon.out") || fail "no daemon"
pid=$("$tailrace_path" stat --json --control "$work/daemon.control" | jq .server.pid)
kill "$pid"
tail -s 0.05 --pid="$pid" -f /dev/null
[ ! -e "$work/daemon.control" ] || fail "the daemon left its socket behind"

# ---- several servers, and those that were killed ----
first=$server
XDG_RUNTIME_DIR=$work as='' dir=$work/data2
mkdir "$dir" "$work/tailrace"
export XDG_RUNTIME_DIR
server_start "$tailrace_path" -p 0 --mount-port 0 --control "$socket" >/dev/null &
wait $! && fail "two servers on one control socket"
port='' mount_port=''
server_start "$tailrace_path"
grep -q "control $work/tailrace/control\$" "$work/out" || fail "$(cat "$work/out")"
"$tailrace_path" stat --json | jq -e ".server.pid == $server" >/dev/null || fail "default place"
kill -KILL $server
wait $server 2>/dev/null
[ -e "$work/tailrace/control" ] || fail "nothing was left behind to test with"
ln "$work/tailrace/control" "$work/tailrace/control.$server"
server_start "$tailrace_path"
[ ! -e "$work/tailrace/control."* ] || fail "the second place of one that was killed is left"
grep -q "control $work/tailrace/control\$" "$work/out" || fail "$(cat "$work/out")"
server_stop
[ ! -e "$work/tailrace/control" ] || fail "the socket was left behind"
server=$first
server_stop
[ ! -e "$socket" ] || fail "the socket was left behind"

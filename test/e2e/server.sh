# SPDX-License-Identifier: GPL-2.0-or-later
# Sourced by the tests of this folder: a server on ports of the kernel's choice
# with a directory of its own, ended and checked when the test ends.
#
#   server_start TAILRACE [OPTION]...   sets dir, port, mount_port; serves $dir
#                                       unless serve_dir is set, by $as
#   server_stop                         fails if the server does
set -u
work=$(mktemp -d /var/tmp/tailrace-e2e.XXXXXX)
dir=$work/data
mkdir "$dir"
chmod 755 "$work"
server=

server_start()
{
	tailrace=$1
	shift
	: >"$work/out"
	${as-} "$tailrace" serve ${serve_dir-"$dir"} --state "$work/state" --cache 64M -p "${port:-0}" \
		--mount-port "${mount_port:-0}" "$@" >"$work/out" 2>>"$work/err" &
	server=$!
	# The line that says ready, or the end of the server.
	tail -n +1 -s 0.05 -f --pid="$server" "$work/out" | grep -q -m 1 '^ready:' || {
		echo "the server did not start:"; cat "$work/err"; exit 1; }
	port=$(sed -n 's/^ready: nfs [^ ]*:\([0-9]*\) mount.*/\1/p' "$work/out")
	mount_port=$(sed -n 's/^ready: .* mount \([0-9]*\).*/\1/p' "$work/out")
}

server_stop()
{
	local status

	[ -n "$server" ] || return 0
	kill -TERM "$server"
	wait "$server"
	status=$?
	server=
	[ $status = 0 ] || { echo "the server ended with $status:"; cat "$work/err"; exit 1; }
}

finish()
{
	status=$?
	[ -z "$server" ] || { kill -KILL "$server"; wait "$server"; } 2>/dev/null
	[ $status = 0 ] || [ $status = 77 ] || cat "$work/err"
	rm -rf "$work"
	exit $status
}
trap finish EXIT
trap 'exit 1' INT TERM HUP

same() # FILE FILE
{
	[ "$(sha256sum <"$1")" = "$(sha256sum <"$2")" ] || { echo "$1 and $2 differ"; exit 1; }
}

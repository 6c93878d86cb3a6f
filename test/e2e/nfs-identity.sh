#!/bin/bash
# SPDX-License-Identifier: GPL-2.0-or-later
# Goal: the host's rights hold for callers, ids are squashed as exports say, and
# who is not in the list gets nothing; a wrong list leaves the old one in force.
# Method: libnfs's tools with ids of their own against a directory of root's,
# one of another user's and one of everybody's.
#
# usage: nfs-identity.sh TAILRACE
. "$(dirname "$0")/server.sh"
[ "$(id -u)" = 0 ] || { echo "not root"; exit 77; }
for tool in nfs-ls nfs-cp nfs-cat; do
	command -v $tool >/dev/null || { echo "no $tool"; exit 77; }
done
fail() { echo "$1"; exit 1; }
url() # PATH UID
{
	echo "nfs://127.0.0.1$1?version=3&nfsport=$port&mountport=$mount_port&uid=$2&gid=$2"
}
can_read() { [ "$(nfs-cat "$(url "$1" "$2")" 2>/dev/null)" = "$3" ]; }
can_write() { nfs-cp "$work/note" "$(url "$1" "$2")" >/dev/null 2>&1; }
owner() { stat -c %u,%g "$dir/$1"; }

echo note >"$work/note"
mkdir "$dir/root" "$dir/user" "$dir/all"
chmod 700 "$dir/root"
chown 1234:1234 "$dir/user"
chmod 700 "$dir/user"
chmod 777 "$dir/all"
echo secret >"$dir/root/file"
echo own >"$dir/user/file"
chown 1234:1234 "$dir/user/file"
chmod 600 "$dir/user/file"

exports() { echo "$dir 127.0.0.1($1)" >"$work/exports"; }
reload()
{
	kill -HUP "$server"
	tail -n +1 -s 0.02 -f --pid="$server" "$work/err" | grep -q -m 1 "$1" ||
		fail "no line '$1'"
	: >"$work/err"
}

port='' mount_port='' serve_dir=''
exports rw,no_root_squash

server_start "$1" --exports "$work/exports"
can_read "$dir/root/file" 0 secret || fail "root cannot read"
! can_read "$dir/root/file" 1234 secret || fail "others read root's"
can_read "$dir/user/file" 1234 own || fail "a user cannot read its own"
! can_read "$dir/user/file" 1235 own || fail "others read a user's"
can_write "$dir/all/w1" 1235 || fail "nobody may write to all's"
[ "$(owner all/w1)" = 1235,1235 ] || fail "owner is $(owner all/w1)"
! can_write "$dir/root/w" 1234 || fail "others write to root's"
can_write "$dir/root/w" 0 || fail "root cannot write"

exports rw
reload "read again"
! can_read "$dir/root/file" 0 secret || fail "root was not squashed"
can_write "$dir/all/w2" 0 || fail "nobody cannot write to all's"
[ "$(owner all/w2)" = 65534,65534 ] || fail "owner is $(owner all/w2)"

exports rw,all_squash,anonuid=1234,anongid=77
reload "read again"
can_read "$dir/user/file" 999 own || fail "not all were squashed"
can_write "$dir/all/w3" 0 || fail "1234 cannot write"
[ "$(owner all/w3)" = 1234,77 ] || fail "owner is $(owner all/w3)"

exports ro,no_root_squash
reload "read again"
! can_write "$dir/all/w4" 0 || fail "wrote to what is read-only"
can_read "$dir/root/file" 0 secret || fail "read-only cannot be read"

exports rw,nonsense
reload "not read again: .*exports:1: unknown option 'nonsense'"
can_read "$dir/root/file" 0 secret || fail "the old list is gone"

echo "$dir 10.1.2.3(rw)" >"$work/exports"
reload "read again"
! can_read "$dir/root/file" 0 secret || fail "a stranger read"
server_stop

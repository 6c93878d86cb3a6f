#!/bin/bash
# SPDX-License-Identifier: GPL-2.0-or-later
# What nfs-kernel.sh runs on the client, with the mount as working folder.
# Leaves the sums of all files in $SCRATCH/client-sums.
set -eu
fail() { echo "$1"; exit 1; }
is() { [ "$2" = "$3" ] || fail "$1: is $2, not $3"; }

sums() { find . -type f | sort | xargs sha256sum >"$SCRATCH/client-sums"; sync; }

if [ "$1" = again ]; then
	find . -type f | sort | xargs sha256sum | diff "$SCRATCH/client-sums" - ||
		fail "files changed over a restart"
	is mtime "$(stat -c %Y times)" 1577934245
	# Written after it was only read.
	cat big >/dev/null
	dd if=/dev/urandom of=big bs=10000 count=3 seek=5 conv=notrunc status=none
	dd if=/dev/urandom of=odd bs=47008 count=100 status=none
	dd if=/dev/urandom of=odd bs=47008 count=7 seek=20 conv=notrunc,fsync status=none
	sums
	exit 0
fi

echo one >a
is content "$(cat a)" one
mkdir d
mv a d/b
ln -s d/b link
is link "$(readlink link)" d/b
is "through link" "$(cat link)" one
ln d/b hard
is links "$(stat -c %h hard)" 2
rm d/b
is "links after rm" "$(stat -c %h hard)" 1
mv hard d/b
mkfifo pipe
[ -p pipe ] || fail "no pipe"
mknod dev c 1 3
is device "$(stat -c %t,%T dev)" 1,3
! mkdir d 2>/dev/null || fail "made what is there"
! rmdir d 2>/dev/null || fail "removed what is not empty"
! cat none 2>/dev/null || fail "read what is not there"
! ls d/b/x 2>/dev/null || fail "went through a file"
(set -o noclobber; ! echo x >d/b) 2>/dev/null || fail "created what is there"

dd if=/dev/urandom of=big bs=1M count=8 conv=fsync status=none
cp -p big copy
cmp big copy
is "cp -p" "$(stat -c %y copy)" "$(stat -c %y big)"
truncate -s 5000 copy
is truncated "$(stat -c %s copy)" 5000
truncate -s 1000000 copy
is extended "$(stat -c %s copy)" 1000000
is hole "$(tail -c 995000 copy | tr -d '\0' | wc -c)" 0
for i in 1 2 3 4 5; do echo "line $i" >>log; done
is appended "$(wc -l <log)" 5
echo x >times
touch -d '2020-01-02 03:04:05 UTC' times
sync
is mtime "$(stat -c %Y times)" 1577934245
chmod 640 times
chown 12:13 times
is owner "$(stat -c %a,%u,%g times)" 640,12,13
exec 5<times
rm times
is "open and removed" "$(cat <&5)" x
exec 5<&-
echo x >times
touch -d '2020-01-02 03:04:05 UTC' times

mkdir many
(cd many && touch $(seq 1 2000))
is "many files" "$(ls many | wc -l)" 2000
rm many/*5
is "files left" "$(ls many | wc -l)" 1800
rm -r many
cp -a /usr/include/linux tree
diff -r /usr/include/linux tree || fail "a copied tree differs"
sums

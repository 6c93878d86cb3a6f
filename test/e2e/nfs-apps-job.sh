#!/bin/bash
# SPDX-License-Identifier: GPL-2.0-or-later
# What nfs-apps.sh runs on two clients of one machine: the mount is the working
# folder, the other client's is $NFS_MNT2. Leaves the sums of the files that are
# to be on the host in $SCRATCH/client-sums.
set -eu
fail() { echo "$1"; exit 1; }
is() { [ "$2" = "$3" ] || fail "$1: is $2, not $3"; }
begin() { echo "$1 at $(cut -d' ' -f1 /proc/uptime)"; }
have() { command -v "$1" >/dev/null || { echo "no $1"; return 1; }; }

# Calls of an operation so far, by the first mount.
calls() { awk -v op="$1:" '/mounted on \/mnt\/nfs with/ { on = 1 } on && $1 == op { print $2; exit }' /proc/self/mountstats; }

begin "dd"
head -c 2350400 /dev/urandom >"$SCRATCH/source"
dd if="$SCRATCH/source" of=direct bs=47008 oflag=direct status=none
cmp "$SCRATCH/source" direct
dd if=direct of="$SCRATCH/back" bs=47008 iflag=direct status=none
cmp "$SCRATCH/source" "$SCRATCH/back"
dd if="$SCRATCH/source" of=direct bs=47008 count=10 seek=3 skip=3 oflag=direct,dsync conv=notrunc status=none
cmp "$SCRATCH/source" direct
dd if="$SCRATCH/source" of=small bs=700 oflag=append conv=notrunc,fsync status=none
cmp "$SCRATCH/source" small

begin "what the client has is not read again"
dd if=/dev/urandom of=kept bs=1M count=4 conv=fsync status=none
before=$(calls READ)
[ "$before" -gt 0 ] || fail "no READs were counted"
for _ in 1 2 3; do
	cat kept >/dev/null
	# The next open asks for the attributes again.
	echo x >other
	sync
done
is "READs of what was written here" "$(($(calls READ) - before))" 0
cp -p kept kept2
is "cp -p" "$(stat -c %y kept2)" "$(stat -c %y kept)"

begin "two clients"
two=$NFS_MNT2
for i in $(seq 1 20); do
	echo "round $i" >shared
	is "what the other client reads" "$(cat "$two/shared")" "round $i"
	echo "back $i" >>"$two/shared"
	is "what this client reads" "$(tail -n 1 shared)" "back $i"
done
mkdir both
(cd both && for i in $(seq 1 40); do echo "$i" >"a$i"; done) &
(cd "$two/both" && for i in $(seq 1 40); do echo "$i" >"b$i"; done)
wait $!
is "names of both" "$(ls both | wc -l)" 80
for i in 5 10 15 20; do rm "both/a$i" "$two/both/b$i"; done
is "names left" "$(ls "$two/both" | wc -l)" 72
# Each client its pages of one file.
truncate -s 1M halves
for i in $(seq 0 2 30); do dd if="$SCRATCH/source" of=halves bs=4096 seek="$i" skip="$i" count=1 conv=notrunc,fsync status=none; done &
for i in $(seq 1 2 31); do dd if="$SCRATCH/source" of="$two/halves" bs=4096 seek="$i" skip="$i" count=1 conv=notrunc,fsync status=none; done
wait $!
cmp -n 131072 "$SCRATCH/source" halves
cmp -n 131072 "$SCRATCH/source" "$two/halves"
# Open here, removed there.
echo content >victim
exec 5<victim
rm "$two/victim"
! cat <&5 >/dev/null 2>&1 || is "left of a removed file" "$(cat <&5)" ""
exec 5<&-

begin "make"
if have make && have cc; then
	mkdir build
	for i in 1 2 3; do
		printf '#include <stdio.h>\nint f%s(void) { return printf("%s\\n"); }\n' "$i" "$i" >build/f$i.c
	done
	printf 'int f1(void), f2(void), f3(void);\nint main(void) { return f1() + f2() + f3() - 6; }\n' >build/main.c
	printf 'prog: f1.o f2.o f3.o main.o\n\t$(CC) -o $@ $^\n' >build/Makefile
	make -s -j2 -C build
	is "what the program says" "$(build/prog | tr '\n' ' ')" "1 2 3 "
	make -q -C build || fail "make would build again what was just built"
fi

begin "git"
if have git; then
	export GIT_AUTHOR_NAME=a GIT_AUTHOR_EMAIL=a@b GIT_COMMITTER_NAME=a GIT_COMMITTER_EMAIL=a@b
	export GIT_CONFIG_GLOBAL=/dev/null HOME=$SCRATCH
	git init -q repo
	for i in 1 2 3; do
		seq "$i" 2000 >repo/f$i
		git -C repo add .
		git -C repo commit -qm "$i"
	done
	git clone -q "$PWD/repo" clone 2>/dev/null
	git -C clone fsck --full
	is "commits" "$(git -C clone rev-list --count HEAD)" 3
	git -C clone gc -q
	is "changes" "$(git -C clone status --porcelain)" ""
fi

begin "sqlite"
if have sqlite3; then
	for mode in delete truncate; do
		sqlite3 db "pragma journal_mode=$mode; create table if not exists t(a integer primary key, b text);
			begin; with recursive c(x) as (select 1 union all select x+1 from c where x < 2000)
			insert into t(b) select hex(randomblob(50)) from c; commit;" >/dev/null
		for i in 1 2 3 4 5; do sqlite3 db "update t set b = 'x' || b where a % 7 = $i; delete from t where a % 31 = $i;"; done
	done
	is "integrity" "$(sqlite3 db 'pragma integrity_check')" ok
	is "rows there" "$(sqlite3 "$two/db" 'select count(*) from t')" "$(sqlite3 db 'select count(*) from t')"
fi

begin "fio"
if have fio; then
	for engine in psync mmap; do
		fio --name=v --filename="fio-$engine" --size=4M --rw=randwrite --bs=4k --ioengine=$engine --verify=crc32c \
			--fsync=64 --end_fsync=1 --do_verify=1 --verify_fatal=1 --allow_mounted_write=1 --minimal \
			>"$SCRATCH/fio" 2>&1 || { cat "$SCRATCH/fio"; fail "fio with $engine"; }
	done
fi

begin "sums"
find . -type f | sort | xargs sha256sum >"$SCRATCH/client-sums"
sync
begin "end"

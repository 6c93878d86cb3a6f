#!/bin/sh
# SPDX-License-Identifier: GPL-2.0-or-later
# PID 1, after umlinit, of the guest that kernelclient.sh boots; the root file system is the host's.
# $NFSJOB (from the kernel's command line) is the job's folder, conf in it the settings.
PATH=/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin HOME=/root LC_ALL=C.UTF-8
export PATH HOME LC_ALL
unset mem root uml_dir umid TERM
. "$NFSJOB/conf"
exec </dev/null >>"$NFSJOB/log" 2>&1
[ -z "$C_DEBUG" ] || { PS4="+\$(read -r u _ </proc/uptime; echo \$u) "; set -x; }
off() {
	echo o >/proc/sysrq-trigger
	while :; do sleep 1; done
}
die() { echo "kernelclient: $2" >>"$NFSJOB/out"; echo "$1" >"$NFSJOB/rc.new"; mv "$NFSJOB/rc.new" "$NFSJOB/rc"; off; }

hostname "$C_HOST"

OPTS=vers=$C_VERS,proto=tcp,port=$C_PORT
if [ "$C_VERS" = 3 ]; then
	OPTS=$OPTS,mountproto=tcp,mountport=$C_MPORT
	if [ -n "$C_NLM" ]; then
		mkdir -p /run/rpcbind /run/sm/sm /run/sm/sm.bak
		chown _rpc /run/rpcbind
		chown -R statd /run/sm
		rpcbind || die 125 "rpcbind does not start"
		rpc.statd --no-notify -P /run/sm || die 125 "rpc.statd does not start"
	else
		OPTS=$OPTS,nolock
	fi
fi
[ -z "$C_OPTS" ] || OPTS=$OPTS,$C_OPTS

# attach SERVER FOLDER [COMMAND TO RUN IT WITH...]
attach() {
	srv=$1 at=$2; shift 2
	if [ -n "$C_RAWMOUNT" ] || ! command -v mount.nfs >/dev/null; then
		# without nfs-common: the kernel does all of it
		o=addr=$srv,$OPTS
		[ "$C_VERS" = 3 ] || o=$o,clientaddr=${srv%.*}.2
		"$@" mount -i -t nfs -o "$o" "$srv:$C_EXPORT" "$at"
	else
		"$@" mount -t nfs -o "$OPTS" "$srv:$C_EXPORT" "$at"
	fi 2>>"$NFSJOB/out" || die 32 "mount of $srv:$C_EXPORT failed (options $OPTS)"
}
[ -z "$C_DEBUG" ] || [ ! -x "$C_DEBUG" ] || "$C_DEBUG" >>"$NFSJOB/out" 2>&1
attach "$C_SERVER" /mnt/nfs
if [ -n "$C_SERVER2" ]; then
	# a second client: its own network namespace and host name, so its own client ID, state and connection
	mkdir -p /mnt/nfs2
	unshare --net=/run/net2 true 2>/dev/null || { : >/run/net2; unshare --net=/run/net2 true; } || die 125 "no second network namespace"
	nsenter --net=/run/net2 sleep 3600 & p=$!
	# it is there before it has entered
	until [ "$(readlink /proc/$p/ns/net)" != "$(readlink /proc/$$/ns/net)" ]; do
		[ -d /proc/$p ] || die 125 "nobody in the second network namespace"
	done
	ip link set vec1 netns $p || die 125 "vec1 does not move"
	nsenter --net=/run/net2 sh -c "ip link set lo up; ip addr add $C_GADDR2 dev vec1; ip link set vec1 mtu $C_MTU up"
	attach "$C_SERVER2" /mnt/nfs2 nsenter --net=/run/net2 unshare --uts sh -c "hostname ${C_HOST}2; exec \"\$@\"" sh
	kill $p
fi
read -r up _ </proc/uptime
echo "$up" >"$NFSJOB/up"

NFS_MNT=/mnt/nfs NFS_MNT2=${C_SERVER2:+/mnt/nfs2} NFS_VERS=$C_VERS SCRATCH=$C_SCRATCH NFS_SERVER=$C_SERVER
export NFS_MNT NFS_MNT2 NFS_VERS SCRATCH NFS_SERVER
(cd /mnt/nfs && exec bash "$NFSJOB/run" >>"$NFSJOB/out" 2>&1)
rc=$?
cd /
release() {
	umount "$1" 2>/dev/null && return
	echo "kernelclient: $1 was still in use" >>"$NFSJOB/out"
	kill -9 -1
	sleep .2
	umount "$1" || [ $rc != 0 ] || rc=126
}
[ -z "$C_SERVER2" ] || release /mnt/nfs2
release /mnt/nfs
dmesg >"$NFSJOB/dmesg" 2>/dev/null
echo $rc >"$NFSJOB/rc.new"; mv "$NFSJOB/rc.new" "$NFSJOB/rc"
off

#!/bin/bash
# SPDX-License-Identifier: GPL-2.0-or-later
# Boots a Linux 6.1 kernel as a process (User-Mode Linux), mounts an NFS server of this machine in it, runs a script
# with its working folder on the mount, prints what it prints, shuts down, and exits with the script's status.
#
#   kernelclient.sh [-v 3|4.0|4.1|4.2] [-p PORT] [-m MOUNTPORT] [-e EXPORT] [-o OPTIONS] [-2] [-t SECONDS] [...] SCRIPT [ARG...]
#   (SCRIPT: a file, run by bash unless executable; - for standard input)
#
#   -v VERS     NFS version (4.2)
#   -p PORT     the server's TCP port on 127.0.0.1 (12049)
#   -m PORT     its MOUNT port, version 3 only (as -p)
#   -e EXPORT   what to mount (/export)
#   -o OPTIONS  more mount options, with commas: sync, noac, rsize=65536, nconnect=2 ...
#   -2          mount it a second time as a second client (own network name space, host name, client ID and
#               connection) on $NFS_MNT2
#   -l PORT     version 3: lock through NLM at this port, with rpcbind and rpc.statd in the guest (default: nolock)
#   -n NETNS    the server listens inside this network name space ('ip netns add NETNS'), on all addresses or on
#               192.168.77.1 (and 192.168.78.1 for -2): no relay between it and the guest
#   -r          mount without mount.nfs (the default where nfs-common is missing)
#   -t SECONDS  give up after (300): exit status 124
#   -M SIZE     the guest's memory (1G)
#   -c CPU      the host CPU to run the guest on (the last one); 'any' to leave it to the host, which is much slower
#   -s FOLDER   given to the script as $SCRATCH (the job's own folder)
#   -E NAME=VALUE  into the script's environment (again for more)
#   -k          keep the job's folder and say where it is; -q: no closing line
#
# The guest's root file system is the host's, read-write, as root: programs and files are where they are on the host, and
# what the script removes there is gone. /proc, /sys, /dev, /run and /mnt are the guest's own. It has one CPU.
# Its addresses (192.168.77.0/24) exist only in a network name space made for the run; from there a relay connects to
# 127.0.0.1 from a reserved port. The script gets NFS_MNT (/mnt/nfs), NFS_MNT2, NFS_VERS,
# NFS_SERVER, SCRATCH. Exit status: the script's; 32 mount failed, 124 time over, 125 the guest did not work, 126 umount failed.
# Several may run at once (with -c 0 and -c 1). KERNELCLIENT_DEBUG=1 with -k: a trace in the job's log. Needs root, /dev/net/tun, a C compiler at the first run, and:
#   apt-get install --no-install-recommends user-mode-linux [nfs-common [rpcbind]]
set -u
here=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)/kernelclient
vers=4.2 port=12049 mport='' export=/export opts='' two='' nlm='' netns='' raw='' secs=300 mem=1G scratch='' keep='' quiet='' envs=()
cpu=$(($(nproc --all) - 1))
mtu=${KERNELCLIENT_MTU:-9000}
while getopts v:p:m:e:o:2l:n:rt:M:c:s:E:kq o; do
	case $o in
	v) vers=$OPTARG ;; p) port=$OPTARG ;; m) mport=$OPTARG ;; e) export=$OPTARG ;; o) opts=$OPTARG ;; 2) two=1 ;;
	l) nlm=$OPTARG ;; n) netns=$OPTARG ;; r) raw=1 ;; t) secs=$OPTARG ;; M) mem=$OPTARG ;; c) cpu=$OPTARG ;;
	s) scratch=$(realpath "$OPTARG") ;; E) envs+=("$OPTARG") ;; k) keep=1 ;; q) quiet=1 ;; *) exit 2 ;;
	esac
done
shift $((OPTIND - 1))
[[ $# -ge 1 ]] || { sed -n '2,/^set/{/^set/d;s/^# \{0,1\}//p}' "$0"; exit 2; }
mport=${mport:-$port}
[[ -z $two || -z $nlm ]] || { echo "kernelclient: -l is for one client a guest: run two guests instead of -2" >&2; exit 2; }
uml=$(command -v linux.uml) || { echo "kernelclient: no linux.uml: apt-get install user-mode-linux" >&2; exit 125; }

cache=${KERNELCLIENT_CACHE:-/tmp/kernelclient-$(cat "$here"/*.c | cksum | cut -d' ' -f1)}
if [[ ! -x $cache/umlnet ]]; then
	mkdir -p "$cache"
	${CC:-cc} -O2 -shared -fPIC -o "$cache/fp.$$" "$here/umlfp.c" && mv "$cache/fp.$$" "$cache/umlfp.so" &&
		${CC:-cc} -O2 -o "$cache/init.$$" "$here/umlinit.c" && mv "$cache/init.$$" "$cache/umlinit" &&
		${CC:-cc} -O2 -pthread -o "$cache/net.$$" "$here/umlnet.c" && mv "$cache/net.$$" "$cache/umlnet" || exit 125
fi
if [[ -z $netns ]] && ! (exec 3<>"/dev/tcp/127.0.0.1/$port") 2>/dev/null; then
	echo "kernelclient: nothing listens on 127.0.0.1:$port" >&2; exit 32
fi
job=$(mktemp -d /tmp/nfsjob.XXXXXX)
trap '[[ -n $keep ]] || rm -rf "$job"' EXIT
scratch=${scratch:-$job}
if [[ $1 == - ]]; then
	cat >"$job/script"; set -- "$job/script" "${@:2}"
else
	[[ -e $1 ]] || { echo "kernelclient: no $1" >&2; exit 2; }
	set -- "$(realpath "$1")" "${@:2}"
fi
: >"$job/out"
i=77; [[ -z $netns ]] || i=${KERNELCLIENT_NET:-77}
a=192.168.$i b=192.168.$((i + 1))
tap=uml$i
{
	printf 'C_%s=%q\n' HOST "nfsc$$" VERS "$vers" PORT "$port" MPORT "$mport" EXPORT "$export" OPTS "$opts" NLM "$nlm" \
		RAWMOUNT "$raw" DEBUG "${KERNELCLIENT_DEBUG:-}" SCRATCH "$scratch" MTU "$mtu" SERVER $a.1 \
		SERVER2 "${two:+$b.1}" GADDR2 $b.2/24
} >"$job/conf"
case $(head -c 4 "$1" | tr -d '\0') in
'#!'* | *ELF) [[ ! -x $1 ]] || envs+=("$1") ;;
esac
[[ ${envs[*]: -1} == "$1" ]] || envs+=(bash "$1")
{ printf 'exec env'; printf ' %q' "${envs[@]}" "${@:2}"; echo; } >"$job/run"

net=(-T "$tap=$a.1/24,$mtu")
[[ -z $two ]] || net+=(-T "${tap}b=$b.1/24,$mtu")
if [[ -n $netns ]]; then
	net+=(-n "/run/netns/$netns")
else
	net+=(-f "$port")
	[[ $vers != 3 || $mport == "$port" ]] || net+=(-f "$mport")
	[[ -z $nlm ]] || net+=(-f "$nlm")
fi
[[ -z $nlm ]] || net+=(-P "100021:$nlm" -P "100003:$port" -P "100005:$mport")
pin=(); [[ $cpu == any ]] || pin=(taskset -c "$cpu")
vec="transport=tap,depth=128,gro=1,mtu=$mtu"
blk=raid6_select_algo,calibrate_xor_blocks,init_btrfs_fs	# 0.9 s of benchmarks
mods=net/sunrpc/sunrpc:fs/nfs_common/grace:fs/lockd/lockd:fs/netfs/netfs:fs/fscache/fscache:fs/nfs/nfs
case $vers in
3) mods+=:fs/nfs_common/nfs_acl:fs/nfs/nfsv3 ;;
*) mods+=:net/dns_resolver/dns_resolver:fs/nfs/nfsv4 ;;
esac
start=$EPOCHREALTIME
TMPDIR=/dev/shm timeout -k 5 "$secs" "$cache/umlnet" "${net[@]}" -- "${pin[@]}" \
	env LD_PRELOAD="$cache/umlfp.so" "$uml" mem="$mem" root=/dev/root rootfstype=hostfs rootflags=/ rw \
	init="$cache/umlinit" NFSINIT="$here/init.sh" NFSJOB="$job" NFSMODS=$mods NFSNET=vec0=$a.2/24,$mtu \
	vec0:"$vec,ifname=$tap" ${two:+vec1:"$vec,ifname=${tap}b"} \
	con=null con0=null,fd:1 uml_dir="$job/" umid=uml quiet lpj=39747584 initcall_blacklist=$blk panic=-1 \
	</dev/null >"$job/console" 2>&1 &
pid=$!
trap 'kill $pid 2>/dev/null; wait $pid; exit 143' TERM INT HUP
tail -q -n +1 -s 0.05 -f --pid=$pid "$job/out" &
tailpid=$!
wait $pid; st=$?
wait $tailpid
end=$EPOCHREALTIME
if [[ -s $job/rc ]]; then
	rc=$(cat "$job/rc")
elif [[ $st == 124 || $st == 137 ]]; then
	rc=124; echo "kernelclient: gave up after $secs s" >&2
	[[ -s $job/up ]] || { echo "kernelclient: before the mount was done:" >&2; tail -qn 9 "$job/console" "$job/log" >&2; }
else
	rc=125; echo "kernelclient: the guest ended by itself ($st):" >&2; tail -n 25 "$job/console" "$job/log" >&2
fi
[[ -n $quiet ]] || awk -v s="$start" -v e="$end" -v u="$(cat "$job/up" 2>/dev/null)" -v r="$rc" -v v="$vers" 'BEGIN {
	printf "kernelclient: NFS %s, exit status %d, %.2f s in all, mounted after %s s\n", v, r, e - s, u == "" ? "-" : u }' >&2
[[ -z $keep ]] || echo "kernelclient: $job" >&2
exit "$rc"

#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# What a container runtime does for the tests of the chart: runs a program in a root of its own, with the mounts, the user
# and the capabilities of a pod, and nothing else. To be run in a mount namespace that is nobody else's.
#   kubelet.sh ROOT UID GID CAPABILITIES ENVIRONMENT-FILE MOUNT... -- PROGRAM ARGUMENT...
# A MOUNT is SOURCE:TARGET:ro or SOURCE:TARGET:rw. CAPABILITIES are those that stay, with commas: net_admin.
set -euo pipefail

root=$1 uid=$2 gid=$3 capabilities=$4 environment=$5
shift 5
mount -t tmpfs -o mode=755 tmpfs "$root"
# The image: the programs of this machine stand for those of the image.
for dir in usr lib lib64 bin; do
	if [ -L "/$dir" ]; then
		ln -s "$(readlink "/$dir")" "$root/$dir"
	elif [ -d "/$dir" ]; then
		mkdir "$root/$dir"
		mount --bind "/$dir" "$root/$dir"
		mount -o remount,bind,ro "$root/$dir"
	fi
done
mkdir "$root/proc" "$root/tmp" "$root/dev"
mount -t proc -o ro proc "$root/proc"
: >"$root/dev/null"
mount --bind /dev/null "$root/dev/null"
while [ "$1" != -- ]; do
	IFS=: read -r source target mode <<<"$1"
	if [ -d "$source" ]; then
		mkdir -p "$root$target"
	else
		mkdir -p "$(dirname "$root$target")"
		: >"$root$target"
	fi
	mount --rbind "$source" "$root$target"
	[ "$mode" = rw ] || mount -o remount,bind,ro "$root$target"
	shift
done
shift
mount -o remount,ro "$root"
bounding=-all inheritable=-all
if [ -n "$capabilities" ]; then
	bounding+=,+${capabilities//,/,+}
fi
mapfile -d '' -t variables <"$environment"
exec env -i "${variables[@]}" /usr/sbin/chroot "$root" /usr/bin/setpriv --reuid "$uid" --regid "$gid" --clear-groups \
	--no-new-privs --bounding-set="$bounding" --inh-caps="$inheritable" "$@"

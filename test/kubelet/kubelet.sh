#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# What a container runtime does for the tests of the chart: runs a program in a root of its own, with the mounts, the user
# and the capabilities of a pod, and nothing else. To be run in a mount namespace that is nobody else's.
#   kubelet.sh ROOT UID GID CAPABILITIES ENVIRONMENT-FILE IMAGE MOUNT... -- PROGRAM ARGUMENT...
# A MOUNT is SOURCE:TARGET:ro or SOURCE:TARGET:rw. CAPABILITIES are those that stay, with commas: net_admin. IMAGE is a
# directory with the files of the image; where it is empty, the programs of this machine stand for those of the image.
set -euo pipefail

root=$1 uid=$2 gid=$3 capabilities=$4 environment=$5 image=$6
shift 6
mount -t tmpfs -o mode=755 tmpfs "$root"
# machine TARGET: the programs and libraries of this machine, at a place of the container.
machine() {
	local dir
	for dir in usr lib lib64 bin; do
		if [ -L "/$dir" ]; then
			ln -s "$(readlink "/$dir")" "$1/$dir"
		elif [ -d "/$dir" ]; then
			mkdir "$1/$dir"
			mount --bind "/$dir" "$1/$dir"
			mount -o remount,bind,ro "$1/$dir"
		fi
	done
}
drop=(/usr/bin/setpriv)
if [ -n "$image" ]; then
	cp -a "$image/." "$root"
	# Links such as /var/run would lead out of the container while its mounts are made.
	while IFS= read -r -d '' link; do
		target=$root$(readlink "$link")
		ln -sfnr "$target" "$link"
		[ -e "$target" ] || mkdir -p "$target"
	done < <(find "$root" -maxdepth 2 -type l -lname '/*' -print0)
	# What drops the privileges is of this machine, with its libraries, and nothing finds it by itself.
	mkdir "$root/.machine"
	machine "$root/.machine"
	loader=$(realpath "$(ldd /usr/bin/setpriv | grep -o '/[^ ]*ld-linux[^ ]*')")
	libraries=$(ldd /usr/bin/setpriv | awk '$3 ~ /^\// {print $3; exit}')
	drop=("/.machine$loader" --library-path "/.machine$(dirname "$libraries")" /.machine/usr/bin/setpriv)
else
	machine "$root"
fi
mkdir -p "$root/proc" "$root/tmp" "$root/dev"
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
exec env -i "${variables[@]}" /usr/sbin/chroot "$root" "${drop[@]}" --reuid "$uid" --regid "$gid" --clear-groups \
	--no-new-privs --bounding-set="$bounding" --inh-caps="$inheritable" "$@"

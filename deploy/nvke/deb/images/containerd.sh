#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# Talks to containerd; part of ovn-uplink-images and of the package's postrm, which runs when the former is gone.

# What was imported, a line "name digest" each: what may be removed again. A file for each version, because an older
# package may be purged long after a newer one has taken its place.
records=/var/lib/ovn-uplink-images
record=$records/@VERSION@
socket=${CONTAINERD_ADDRESS:-/run/containerd/containerd.sock}
namespace=${CONTAINERD_NAMESPACE:-k8s.io}

say() { printf 'ovn-uplink-images: %s\n' "$*" >&2; }

# containerd SECONDS ARGUMENTS...: asks containerd, for so long at most.
containerd() {
	seconds=$1
	shift
	timeout "$seconds" ctr -n "$namespace" "$@"
}

# why_absent says why containerd cannot be asked; it fails if it can.
why_absent() {
	if ! command -v ctr >/dev/null 2>&1; then
		echo 'containerd is not installed'
	elif [ ! -S "$socket" ] || ! containerd 10 version >/dev/null 2>&1; then
		echo "containerd does not answer at $socket"
	else
		return 1
	fi
}

# digest_of NAME: of the image that has the name now; nothing if none has.
digest_of() {
	containerd 30 images ls "name==$1" | awk -v name="$1" '$1 == name {print $3}'
}

# remove_image NAME DIGEST removes an image with the names like sha256:... that containerd gives every image for the
# kubelet, shortly after it got its own; with one of them left, all of it would stay on the disk. Names that others gave
# it stay.
remove_image() {
	containerd 60 images rm --sync "$1" >/dev/null || return 1
	for _ in 1 2; do
		sleep 1
		left=$(containerd 30 images ls | awk -v digest="$2" '$3 == digest {print $1}')
		case "$left" in
		*/*) return 0 ;;
		esac
		for alias in $left; do
			containerd 60 images rm --sync "$alias" >/dev/null || return 1
		done
	done
}

# others_have NAME: whether another version of the package imported it too.
others_have() {
	for other in "$records"/*; do
		[ "$other" != "$record" ] && grep -qF "$1 " "$other" && return 0
	done
	return 1
}

# remove_recorded removes the images that were imported, those whose names others have given to another image excepted.
remove_recorded() {
	[ -s "$record" ] || return 0
	if why=$(why_absent); then
		say "$why: these images may be left in it:"
		sed 's/ .*//; s/^/  /' "$record" >&2
		rm -f "$record"
		return 0
	fi
	while read -r name digest; do
		is=$(digest_of "$name")
		if [ -z "$is" ] || others_have "$name"; then
			continue
		elif [ "$is" != "$digest" ]; then
			say "$name is $is now and not the $digest that was imported; it stays"
		elif remove_image "$name" "$digest"; then
			say "removed $name"
		else
			say "could not remove $name; 'ctr -n $namespace images rm $name' does"
		fi
	done <"$record"
	rm -f "$record"
}

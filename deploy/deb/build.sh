#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
#
# Makes the Debian packages. Same input, same bytes: times are those of the
# commit, owners are root, the compressor runs in one thread.
#
# usage: deploy/deb/build.sh [options] [package...]
#
#   package            charts, images, dpu-agent; default: all
#   --out DIR          where the packages go (dist/debs)
#   --version VERSION  of the release (file VERSION)
#   --commit COMMIT    that all of it was built from, 40 hex digits (HEAD)
#   --epoch SECONDS    time of everything in the packages (the commit's)
#   --archs "A B"      architectures (amd64 arm64)
#   --bin DIR          binaries, as linux-<arch>/dpu-agent below it (dist/images/bin)
#   --images DIR       Docker archives, ovn-uplink-<agent>-linux-<arch>.tar (dist/images)
#   --chart DIR        Helm chart with the tag of the images (dist/chart/ovn-uplink)
#   --values FILE      NVKE's values (deploy/nvke/values.yaml)
#
# examples:
#   deploy/deb/build.sh
#   deploy/deb/build.sh --archs arm64 --out /tmp/debs dpu-agent
#
# Packages of another commit in the directory are replaced, and nothing is
# written there unless all could be made.
set -euo pipefail
self=$(realpath "$0") start=$PWD
cd "$(dirname "$self")/../.."
# shellcheck source=deploy/deb/lib.sh
. deploy/deb/lib.sh
# shellcheck source=deploy/deb/payload.sh
. deploy/deb/payload.sh

out=dist/debs version='' commit='' epoch='' archs='amd64 arm64'
bin=dist/images/bin images=dist/images chart=dist/chart/ovn-uplink values=deploy/nvke/values.yaml
packages=()
while [ $# -gt 0 ]; do
	case $1 in
	-h | --help)
		sed -n '4,27s/^# \{0,1\}//p' "$self"
		exit 0
		;;
	--version | --commit | --epoch | --archs)
		[ $# -ge 2 ] || usage_error "$1 needs a value"
		printf -v "${1#--}" %s "$2"
		shift 2
		;;
	--out | --bin | --images | --chart | --values)
		[ $# -ge 2 ] || usage_error "$1 needs a value"
		printf -v "${1#--}" %s "$(cd "$start" && realpath -m -- "$2")"
		shift 2
		;;
	charts | images | dpu-agent)
		packages+=("$1")
		shift
		;;
	*) usage_error "$1 is neither an option nor a package; see --help" ;;
	esac
done
[ ${#packages[@]} -gt 0 ] || packages=(charts images dpu-agent)

version=${version:-$(cat VERSION)}
commit=${commit:-$(git rev-parse HEAD)}
epoch=${epoch:-$(git log -1 --format=%ct "$commit")} || fail "commit $commit is not in this repository; say its time with --epoch"
check_release
export SOURCE_DATE_EPOCH=$epoch

# A number that grows with every commit, for apt compares versions and nothing else.
debversion="$version+git$(date -u -d "@$epoch" +%Y%m%d%H%M%S).${commit:0:12}"

mkdir -p "$out"
out=$(cd "$out" && pwd)
work=$(mktemp -d "$out/.build-XXXXXX")
trap 'rm -rf "$work"' EXIT
mkdir "$work/done"

for package in "${packages[@]}"; do
	case $package in
	charts) build_charts ;;
	images) for arch in $archs; do build_images "$arch"; done ;;
	dpu-agent) for arch in $archs; do build_dpu_agent "$arch"; done ;;
	esac
done

# What is there under a name of ours and for the same architecture is another build.
for deb in "$work"/done/*.deb; do
	name=$(basename "$deb")
	case $name in
	*-charts-*) stem=nvke-cni-ovn-uplink-charts- ;;
	*-images-*) stem=nvke-cni-ovn-uplink-images- ;;
	*) stem=ovn-uplink-dpu-agent_ ;;
	esac
	for old in "$out/$stem"*"_${name##*_}"; do
		[ "$old" = "$out/$name" ] || rm -f "$old"
	done
	mv -f "$deb" "$out/$name"
	printf '%s\n' "$out/$name"
done

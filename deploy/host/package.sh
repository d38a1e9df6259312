#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
#
# Usage: deploy/host/package.sh [--commit REVISION] [--out DIRECTORY]
#
# Writes the Helm chart of a commit (HEAD) into a directory (dist/chart):
#   ovn-uplink/               unpacked
#   ovn-uplink-<VERSION>.tgz  the same, for helm install and for chart repositories
# What is packaged is what the commit has, not what lies in the working tree. The packaged values.yaml has image.tag set to
# the first 12 characters of the commit, which are the tag of the images built from it. The same commit gives the same bytes.
set -euo pipefail

fail() {
	echo "package.sh: $*" >&2
	exit 1
}

commit=HEAD out=dist/chart
while [ $# -gt 0 ]; do
	case "$1" in
	--commit | --out)
		[ $# -ge 2 ] || fail "$1 needs a value"
		declare "${1#--}=$2"
		shift 2
		;;
	--help)
		sed -n '/^# Usage/,/^[^#]/{/^#/s/^# \{0,1\}//p}' "$0"
		exit
		;;
	*) fail "unknown argument $1; see --help" ;;
	esac
done

[[ $out = /* ]] || out=$PWD/$out
cd "$(dirname "$0")/../.."
id=$(git rev-parse --verify --end-of-options "$commit^{commit}") || fail "there is no commit $commit here"
epoch=$(git log -1 --format=%ct "$id")

work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
git archive "$id" VERSION deploy/host/chart | tar -x -C "$work"
chart=$work/deploy/host/chart
version=$(<"$work/VERSION")
for key in version appVersion; do
	grep -qx "$key: $version" "$chart/Chart.yaml" ||
		fail "VERSION says $version, Chart.yaml $(grep "^$key:" "$chart/Chart.yaml"): write the same into both"
done
[ "$(grep -c '^  tag: ""$' "$chart/values.yaml")" = 1 ] || fail 'values.yaml has no line (  tag: ""), or several, to write the tag into'
sed -i "s/^  tag: \"\"\$/  tag: \"${id:0:12}\"/" "$chart/values.yaml"

mkdir -p "$out"
rm -rf "${out:?}/ovn-uplink"
cp -r "$chart" "$work/ovn-uplink"
find "$work/ovn-uplink" -type d -exec chmod 755 {} + -o -type f -exec chmod 644 {} +
find "$work/ovn-uplink" -exec touch -h -d "@$epoch" {} +
archive=$out/ovn-uplink-$version.tgz
tar -C "$work" --format=ustar --sort=name --owner=0 --group=0 --numeric-owner -cf - ovn-uplink | gzip -n -9 >"$archive"
cp -rp "$work/ovn-uplink" "$out/"
echo "$out/ovn-uplink, and $archive: images ${id:0:12}, sha256 $(sha256sum "$archive" | cut -d' ' -f1)"
[ -z "$(git status --porcelain -- deploy/host/chart VERSION)" ] || echo "package.sh: changes of deploy/host/chart that are not committed are not in it" >&2

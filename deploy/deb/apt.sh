#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
#
# Makes a flat, signed apt repository of the packages.
#
# usage: deploy/deb/apt.sh --key KEY [options]
#
#   --key KEY       id of a secret key in gpg's keyring, or a file with one
#   --debs DIR      the packages (dist/debs)
#   --out DIR       the repository (dist/apt)
#   --epoch SECONDS time of the repository (the commit's)
#   --valid DAYS    how long apt may use it (0, which is for ever)
#
# examples:
#   deploy/deb/apt.sh --key releases@example.com
#   deploy/deb/apt.sh --key ./key.asc --out /srv/apt
#
# The public key goes into the repository as ovn-uplink.gpg. On a node:
#   deb [signed-by=/etc/apt/keyrings/ovn-uplink.gpg] file:/srv/apt ./
#
# The directory is replaced as a whole, and only when all is made.
set -euo pipefail
self=$(realpath "$0") start=$PWD
cd "$(dirname "$self")/../.."

fail() {
	printf 'apt: %s\n' "$*" >&2
	exit 1
}

# rfc1123 SECONDS: a time as apt wants it.
rfc1123() { LC_ALL=C date -u -d "@$1" '+%a, %d %b %Y %H:%M:%S UTC'; }

key='' debs=dist/debs out=dist/apt epoch='' valid=0
while [ $# -gt 0 ]; do
	case $1 in
	-h | --help)
		sed -n '4,22s/^# \{0,1\}//p' "$self"
		exit 0
		;;
	--key | --epoch | --valid)
		[ $# -ge 2 ] || fail "$1 needs a value"
		printf -v "${1#--}" %s "$2"
		shift 2
		;;
	--debs | --out)
		[ $# -ge 2 ] || fail "$1 needs a value"
		printf -v "${1#--}" %s "$(cd "$start" && realpath -m -- "$2")"
		shift 2
		;;
	*) fail "$1 is no option; see --help" ;;
	esac
done
[ -n "$key" ] || fail "say by which key to sign: make apt APT_KEY=<key id or file>"
[[ $valid =~ ^[0-9]+$ ]] || fail "--valid $valid is no number of days"
compgen -G "$debs/*.deb" >/dev/null || fail "there are no packages in $debs; make debs"
epoch=${epoch:-$(git log -1 --format=%ct)}
for tool in apt-ftparchive gpg; do
	command -v "$tool" >/dev/null || fail "$tool is missing; make setup installs it"
done

work=$(mktemp -d)
home=
cleanup() {
	[ -z "$home" ] || GNUPGHOME=$home gpgconf --kill all 2>/dev/null || true
	rm -rf "$work" ${made:+"$made"}
}
trap cleanup EXIT

[[ $key = /* ]] || [ ! -f "$start/$key" ] || key=$start/$key
# A key in a file is used from a keyring that ends with this script.
if [ -f "$key" ]; then
	home=$work/gnupg
	mkdir -m 700 "$home"
	export GNUPGHOME=$home
	gpg --batch --quiet --import "$key" 2>"$work/import" || fail "$key is no OpenPGP key: $(cat "$work/import")"
	key=$(gpg --batch --with-colons --list-secret-keys 2>/dev/null | awk -F: '$1 == "fpr" {print $10; exit}')
	[ -n "$key" ] || fail "there is no secret key in the file, only a public one"
fi

# The key's own words on itself, before anything is made.
listing=$(gpg --batch --with-colons --list-secret-keys "$key" 2>/dev/null) || fail "gpg has no secret key $key"
[ "$(grep -c '^sec:' <<<"$listing")" -eq 1 ] || fail "$key is the name of several keys; say the fingerprint of one"
public=$(gpg --batch --with-colons --list-keys "$key" 2>/dev/null)
case $(awk -F: '$1 == "pub" {print $2; exit}' <<<"$public") in
e) fail "the key $key expired on $(date -u -d "@$(awk -F: '$1 == "pub" {print $7; exit}' <<<"$public")" +%F)" ;;
r) fail "the key $key is revoked" ;;
d) fail "the key $key is disabled" ;;
esac
[[ $(awk -F: '$1 == "pub" {print $12; exit}' <<<"$public") == *S* ]] || fail "nothing of the key $key can sign any more"

mkdir -p "$(dirname "$out")"
out=$(cd "$(dirname "$out")" && pwd)/$(basename "$out")
made=$(mktemp -d "$(dirname "$out")/.apt-XXXXXX")
chmod 755 "$made"
cp "$debs"/*.deb "$made/"
(
	cd "$made"
	apt-ftparchive packages . >Packages 2>"$work/log" || fail "apt-ftparchive: $(cat "$work/log")"
	gzip -9 -n -k Packages
	archs=$(awk '$1 == "Architecture:" && $2 != "all" {print $2}' Packages | sort -u | xargs)
	dates="Date: $(rfc1123 "$epoch")"
	[ "$valid" -eq 0 ] || dates+="\\nValid-Until: $(rfc1123 "$((epoch + valid * 86400))")"
	apt-ftparchive -o APT::FTPArchive::Release::Origin=ovn-uplink -o APT::FTPArchive::Release::Label=ovn-uplink \
		-o APT::FTPArchive::Release::Suite=stable -o APT::FTPArchive::Release::Architectures="${archs:-all}" \
		release . >"$work/Release" 2>"$work/log" || fail "apt-ftparchive: $(cat "$work/log")"
	# apt-ftparchive has its own idea of the date.
	sed -i "s/^Date: .*/$dates/" "$work/Release"
	mv "$work/Release" Release
	for how in "--clearsign --output InRelease" "--armor --detach-sign --output Release.gpg"; do
		# shellcheck disable=SC2086 # two options each
		gpg --batch --quiet --yes --local-user "$key" --digest-algo SHA512 $how Release 2>"$work/log" ||
			fail "gpg could not sign with $key: $(cat "$work/log")"
	done
	gpg --batch --quiet --export "$key" >ovn-uplink.gpg
	find . -type f -exec chmod 644 {} +
	find . -exec touch -d "@$epoch" {} +
)
old=
if [ -e "$out" ]; then
	[ -e "$out/InRelease" ] || [ -z "$(ls -A "$out")" ] || fail "$out holds something that is no repository; it stays as it is"
	old=$(mktemp -u "$(dirname "$out")/.apt-old-XXXXXX")
	mv "$out" "$old"
fi
mv "$made" "$out"
made=
[ -z "$old" ] || rm -rf "$old"
printf '%s: %s packages, signed by %s\n' "$out" "$(grep -c '^Package: ' "$out/Packages")" "$key"

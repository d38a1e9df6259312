#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
#
# Writes a bf.cfg that has ovn-uplink-dpu-agent installed while a BFB is being
# installed on a card. The card fetches the package, for bf.cfg is too small
# for it; it takes none but this one, by its SHA-256.
#
# usage: make-bf-cfg.sh --deb FILE --url URL [--bf-cfg FILE] [--out FILE] [--dry-run]
#
#   --deb FILE     the package, for arm64
#   --url URL      where the card fetches it; or the path of the package in the
#                  installer's own file system
#   --bf-cfg FILE  a bf.cfg that is there; a bfb_modify_os in it is kept and
#                  called first
#   --out FILE     (bf.cfg)
#   --dry-run      print it
#
# examples:
#   make-bf-cfg.sh --deb ovn-uplink-dpu-agent_0.1.0_arm64.deb --url http://192.168.100.1:8000/dpu-agent.deb
#   bfb-install --bfb bf-bundle.bfb --config bf.cfg --rshim rshim0
set -euo pipefail

fail() {
	printf 'make-bf-cfg: %s\n' "$*" >&2
	exit "${code:-1}"
}

deb='' url='' existing='' out=bf.cfg dry=''
while [ $# -gt 0 ]; do
	case $1 in
	-h | --help)
		sed -n '4,22s/^# \{0,1\}//p' "$0"
		exit 0
		;;
	--dry-run)
		dry=yes
		shift
		;;
	--deb | --url | --bf-cfg | --out)
		[ $# -ge 2 ] || code=2 fail "$1 needs a value"
		case $1 in
		--deb) deb=$2 ;;
		--url) url=$2 ;;
		--bf-cfg) existing=$2 ;;
		--out) out=$2 ;;
		esac
		shift 2
		;;
	*) code=2 fail "$1 is no option; see --help" ;;
	esac
done
[ -f "$deb" ] || code=2 fail "say the package: --deb FILE"
[[ $url =~ ^(https?://|/)[A-Za-z0-9._~:/?=+%,@-]+$ ]] || code=2 fail "--url '$url' is neither a http URL nor a path"
name=$(dpkg-deb -f "$deb" Package 2>/dev/null) || fail "$deb is no package"
[ "$name" = ovn-uplink-dpu-agent ] || fail "$deb is the package $name, not ovn-uplink-dpu-agent"
arch=$(dpkg-deb -f "$deb" Architecture)
[ "$arch" = arm64 ] || fail "$deb is for $arch; cards are arm64"
[ -z "$existing" ] || [ -f "$existing" ] || fail "there is no $existing"

begin='# ovn-uplink: begin' end='# ovn-uplink: end'
sum=$(sha256sum "$deb" | cut -d' ' -f1)
text=$(
	if [ -n "$existing" ]; then
		sed "/^$begin\$/,/^$end\$/d" "$existing"
	fi
	printf '%s\n' "$begin"
	sed -e "s|@DEB@|'$url'|" -e "s|@SHA256@|$sum|" -e '/^# SPDX/d; /^# shellcheck/d' "$(dirname "$0")/ovn-uplink.bf.cfg"
	cat <<-'HOOK'

		if declare -F bfb_modify_os >/dev/null; then
			eval "ovn_uplink_others() $(declare -f bfb_modify_os | tail -n +2)"
		else
			ovn_uplink_others() { :; }
		fi
		# A card without the agent is a card that can be reached: no failure here fails the installation.
		bfb_modify_os() {
			ovn_uplink_others
			ovn_uplink_install /mnt || true
		}
	HOOK
	printf '%s' "$end"
)
if [ -n "$dry" ]; then
	printf '%s\n' "$text"
	exit 0
fi
tmp=$(mktemp "$out.XXXXXX")
printf '%s\n' "$text" >"$tmp"
chmod 600 "$tmp" # a bf.cfg has passwords
mv -f "$tmp" "$out"
printf 'make-bf-cfg: %s installs %s %s from %s\n' "$out" "$name" "$(dpkg-deb -f "$deb" Version)" "$url"

#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
#
# Installs the Debian packages that the tests and the demo need and that are
# missing, and checks that there is a Go to build with. It does nothing when
# all is there.
#
#   test/setup.sh            install what is missing (root)
#   test/setup.sh --check    only list what is missing; exit 1 if anything is
#   test/setup.sh --go-dir   print the directory of the Go to build with
#
# Services of the packages that it installs are neither started nor left
# enabled: the tests run their own instances. A package that was there before
# is not touched, nor are its services.
set -euo pipefail

# Root's tools are not in everybody's PATH.
export PATH="$PATH:/usr/local/sbin:/usr/sbin:/sbin"

# The oldest Go that go.mod accepts.
GO_MAJOR=1
GO_MINOR=26

# One line per package: its name, what shows that it is there (a command, or a
# file if it starts with /), and the systemd units that it would start.
packages() {
	cat <<-LIST
		apt-utils          apt-ftparchive
		busybox-static     busybox
		ca-certificates    /etc/ssl/certs/ca-certificates.crt
		cpio               cpio
		curl               curl
		debian-archive-keyring /usr/share/keyrings/debian-archive-keyring.gpg
		debootstrap        debootstrap
		ethtool            ethtool
		etcd-server        etcd                 etcd.service
		frr                /usr/lib/frr/bgpd    frr.service
		gcc                gcc
		git                git
		gpg                gpg
		gpg-agent          gpg-agent
		iproute2           ip
		iputils-ping       ping
		kmod               depmod
		libc6-dev          /usr/include/stdlib.h
		make               make
		openssl            openssl
		openvswitch-switch ovs-vswitchd         openvswitch-switch.service
		ovn-central        ovn-northd           ovn-central.service ovn-northd.service ovn-ovsdb-server-nb.service ovn-ovsdb-server-sb.service
		ovn-host           ovn-controller       ovn-host.service ovn-controller.service
		procps             ps
		qemu-system-x86    qemu-system-x86_64
		qemu-user-static   qemu-aarch64-static
		shellcheck         shellcheck
		tcpdump            tcpdump
		xz-utils           xz
	LIST
}

say() { printf 'setup: %s\n' "$*"; }
fail() {
	printf 'setup: %s\n' "$*" >&2
	exit 1
}

# here PROBE: whether the command or the file is there.
here() {
	case $1 in
	/*) [ -e "$1" ] ;;
	*) command -v "$1" >/dev/null 2>&1 ;;
	esac
}

missing_packages() {
	local name probe units
	while read -r name probe units; do
		here "$probe" || printf '%s %s\n' "$name" "$units"
	done < <(packages)
}

# find_go prints the path of a Go that is new enough.
find_go() {
	local candidate version major minor
	for candidate in "$(command -v go || true)" /usr/local/go/bin/go; do
		[ -x "$candidate" ] || continue
		version=$(GOTOOLCHAIN=local "$candidate" env GOVERSION 2>/dev/null) || continue
		version=${version#go}
		major=${version%%.*}
		minor=${version#*.}
		minor=${minor%%[!0-9]*}
		case $major$minor in
		'' | *[!0-9]*) continue ;;
		esac
		if [ "$major" -gt "$GO_MAJOR" ] || { [ "$major" -eq "$GO_MAJOR" ] && [ "$minor" -ge "$GO_MINOR" ]; }; then
			printf '%s\n' "$candidate"
			return 0
		fi
	done
	return 1
}

need_go() {
	printf 'Go %s.%s or newer is neither in PATH nor in /usr/local/go/bin; see https://go.dev/doc/install' "$GO_MAJOR" "$GO_MINOR"
}

# Debian's maintainer scripts ask this program before they start a service; 101
# means "do not". See /usr/share/doc/init-system-helpers/README.policy-rc.d.gz.
POLICY=/usr/sbin/policy-rc.d
made_policy=

forbid_starts() {
	[ -e "$POLICY" ] && return 0 # the machine has a rule of its own
	made_policy=yes
	printf '#!/bin/sh\nexit 101\n' >"$POLICY"
	chmod 755 "$POLICY"
}

allow_starts() {
	[ -n "$made_policy" ] || return 0
	rm -f "$POLICY"
	made_policy=
}

# quietly COMMAND...: runs it and shows what it printed only if it fails.
quietly() {
	local out
	out=$("$@" 2>&1) || {
		printf '%s\n' "$out" >&2
		return 1
	}
}

install_packages() {
	local names=() units=() name rest unit
	while read -r name rest; do
		names+=("$name")
		for unit in $rest; do
			units+=("$unit")
		done
	done <<<"$1"

	command -v apt-get >/dev/null || fail "no apt-get here; install these by hand: ${names[*]}"
	[ "$(id -u)" -eq 0 ] || fail "run as root to install: ${names[*]}"

	local apt=(apt-get -q -o DPkg::Lock::Timeout=300 -o Acquire::Retries=2 -o Acquire::http::Timeout=30)
	export DEBIAN_FRONTEND=noninteractive
	say "installing ${names[*]}, usually 1-2 minutes"
	trap allow_starts EXIT
	forbid_starts
	say "refreshing the package lists"
	quietly "${apt[@]}" update || say "could not refresh the package lists, trying with those that are there"
	quietly "${apt[@]}" install -y --no-install-recommends "${names[@]}" || fail "apt-get could not install ${names[*]}"
	allow_starts

	# Not started now, but they would be at the next boot.
	if [ "${#units[@]}" -gt 0 ] && command -v systemctl >/dev/null; then
		if [ -d /run/systemd/system ]; then
			systemctl --quiet disable --now "${units[@]}" || say "could not disable ${units[*]}"
		else
			systemctl --quiet disable "${units[@]}" >/dev/null 2>&1 || say "could not disable ${units[*]}"
		fi
	fi
	say "installed ${names[*]}"
}

case ${1:-} in
--check)
	status=0
	while read -r name _; do
		[ -n "$name" ] || continue
		say "missing: $name"
		status=1
	done <<<"$(missing_packages)"
	if ! find_go >/dev/null; then
		say "missing: $(need_go)"
		status=1
	fi
	exit "$status"
	;;
--go-dir)
	go=$(find_go) || fail "$(need_go)"
	dirname "$go"
	exit
	;;
'') ;;
*)
	sed -n '4,16s/^# \{0,1\}//p' "$0"
	case $1 in -h | --help) exit 0 ;; esac
	exit 2
	;;
esac

missing=$(missing_packages)
[ -z "$missing" ] || install_packages "$missing"
[ -c /dev/net/tun ] || modprobe tun 2>/dev/null || true
[ -c /dev/net/tun ] || fail "there is no /dev/net/tun, which Open vSwitch's userspace datapath needs"
find_go >/dev/null || fail "$(need_go)"

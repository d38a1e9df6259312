#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
#
# Adds dpu-agent to the file tree of a card's operating system: for who builds
# images of it. Nothing is started.
#
# usage: add-to-rootfs.sh --root DIR --deb FILE [--dry-run]
#        add-to-rootfs.sh --root DIR --image FILE [--dry-run]
#
#   --root DIR    the tree, with dpkg's database in it
#   --deb FILE    ovn-uplink-dpu-agent_<version>_<arch>.deb: the agent as a service
#   --image FILE  ovn-uplink-dpu-agent-linux-<arch>.tar: the agent as a static
#                 pod. The archive is imported into containerd at the first
#                 boot, the manifest is put into /etc/kubelet.d
#   --dry-run     say what would be done
#
# What is there already is not done again. A package or an image of another
# architecture than the tree's is refused. A package needs that programs of the
# tree run here: for a tree of another architecture, by qemu-user and
# binfmt_misc.
#
# examples:
#   add-to-rootfs.sh --root /mnt --deb ovn-uplink-dpu-agent_0.1.0_arm64.deb
#   add-to-rootfs.sh --root ./rootfs --image ovn-uplink-dpu-agent-linux-arm64.tar --dry-run
set -euo pipefail

say() { printf 'add-to-rootfs: %s\n' "$*"; }
fail() {
	printf 'add-to-rootfs: %s\n' "$*" >&2
	exit 1
}
usage_error() {
	printf 'add-to-rootfs: %s\n' "$*" >&2
	exit 2
}

root='' deb='' image='' dry=''
while [ $# -gt 0 ]; do
	case $1 in
	-h | --help)
		sed -n '4,26s/^# \{0,1\}//p' "$0"
		exit 0
		;;
	--dry-run)
		dry=yes
		shift
		;;
	--root | --deb | --image)
		[ $# -ge 2 ] || usage_error "$1 needs a value"
		printf -v "${1#--}" %s "$2"
		shift 2
		;;
	*) usage_error "$1 is no option; see --help" ;;
	esac
done
[ -n "$root" ] || usage_error 'say the tree: --root DIR'
[ -n "$deb$image" ] || usage_error 'say what to add: --deb FILE or --image FILE'
[ -z "$deb" ] || [ -z "$image" ] || usage_error 'either --deb or --image: the agent runs once on a card'
root=$(cd "$root" && pwd) || exit 1
[ "$root" != / ] || fail 'this is the running system; use dpkg --install'
[ -f "$root/var/lib/dpkg/status" ] || fail "$root is no Debian or Ubuntu system: it has no var/lib/dpkg/status"

# architecture of the tree: of its shell, byte 18 of the ELF header.
architecture() {
	local shell=$root/bin/dash
	[ -e "$shell" ] || shell=$root/bin/bash
	case $(od -An -tu2 -j18 -N2 "$shell" | tr -d ' ') in
	62) echo amd64 ;;
	183) echo arm64 ;;
	*) fail "cannot tell the architecture of $root from $shell" ;;
	esac
}
arch=$(architecture)

# same ARCH FILE: the architecture of what is added is the tree's.
same() { [ "$1" = "$arch" ] || fail "$2 is for $1, $root is $arch"; }

add_deb() {
	local name is version there policy=$root/usr/sbin/policy-rc.d made=''
	name=$(dpkg-deb -f "$deb" Package) || fail "$deb is no package"
	[ "$name" = ovn-uplink-dpu-agent ] || fail "$deb is the package $name, not ovn-uplink-dpu-agent"
	is=$(dpkg-deb -f "$deb" Architecture)
	same "$is" "$deb"
	version=$(dpkg-deb -f "$deb" Version)
	there=$(dpkg-query --admindir="$root/var/lib/dpkg" -W -f '${db:Status-Status} ${Version}' "$name" 2>/dev/null) || there=
	if [ "$there" = "installed $version" ]; then
		say "$name $version is in $root already"
		return
	fi
	if [ -n "$dry" ]; then
		say "would install $name $version in $root"
		return
	fi
	chroot "$root" /bin/true 2>/dev/null || fail "programs of $root do not run here; for $arch install qemu-user-static and binfmt-support"
	# Maintainer scripts ask it before they start a service; 101 means "do not".
	if [ ! -e "$policy" ]; then
		made=yes
		printf '#!/bin/sh\nexit 101\n' >"$policy"
		chmod 755 "$policy"
	fi
	cp "$deb" "$root/tmp/ovn-uplink-dpu-agent.deb"
	is=0
	DEBIAN_FRONTEND=noninteractive chroot "$root" dpkg --install /tmp/ovn-uplink-dpu-agent.deb || is=$?
	rm -f "$root/tmp/ovn-uplink-dpu-agent.deb"
	[ -z "$made" ] || rm -f "$policy"
	[ $is -eq 0 ] || fail "dpkg could not install $deb in $root"
	say "$name $version is in $root"
}

# put MODE FILE: standard input as a file of the tree, unless that is what it has.
put() {
	local tmp=$root$2.new
	mkdir -p "$(dirname "$tmp")"
	cat >"$tmp"
	chmod "$1" "$tmp"
	mv -f "$tmp" "$root$2"
}

add_image() {
	local manifest config is name archive=/usr/share/ovn-uplink/preload/ovn-uplink-dpu-agent.tar
	manifest=$(tar -xOf "$image" manifest.json 2>/dev/null) || fail "$image is no Docker archive"
	name=$(grep -oE '"RepoTags": *\["[^"]*"' <<<"$manifest" | cut -d'"' -f4)
	[[ $name =~ ^nvke/ovn-uplink-dpu-agent:[0-9a-f]{12}$ ]] || fail "$image has the image ${name:-without a name}, not nvke/ovn-uplink-dpu-agent"
	config=$(grep -oE '"Config": *"[^"]*"' <<<"$manifest" | cut -d'"' -f4)
	is=$(tar -xOf "$image" "$config" | grep -oE '"architecture": *"[^"]*"' | cut -d'"' -f4)
	same "$is" "$image"
	[ ! -e "$root/lib/systemd/system/ovn-uplink-dpu-agent.service" ] || fail "$root has the package ovn-uplink-dpu-agent; the agent runs once on a card"
	if cmp -s "$image" "$root$archive" && [ -e "$root/etc/kubelet.d/ovn-uplink-dpu-agent.yaml" ]; then
		say "$name is in $root already"
		return
	fi
	if [ -n "$dry" ]; then
		say "would put $name and its manifest into $root"
		return
	fi
	put 644 $archive <"$image"
	sed "s|@TAG@|${name#*:}|" "$(dirname "$0")/../../deploy/dpu/static-pod.yaml" | put 644 /etc/kubelet.d/ovn-uplink-dpu-agent.yaml
	put 644 /etc/systemd/system/ovn-uplink-preload.service <<-UNIT
		# SPDX-License-Identifier: Apache-2.0
		[Unit]
		Description=Import the image of ovn-uplink's dpu-agent into containerd
		After=containerd.service
		Requires=containerd.service
		ConditionPathExists=$archive

		[Service]
		Type=oneshot
		RemainAfterExit=yes
		ExecStart=ctr -n k8s.io images import --platform linux/$arch $archive
		TimeoutStartSec=300
		Restart=on-failure
		RestartSec=10

		[Install]
		WantedBy=multi-user.target
	UNIT
	mkdir -p "$root/etc/systemd/system/multi-user.target.wants"
	ln -sf ../ovn-uplink-preload.service "$root/etc/systemd/system/multi-user.target.wants/ovn-uplink-preload.service"
	mkdir -p "$root/etc/ovn-uplink"
	chmod 700 "$root/etc/ovn-uplink"
	say "$name and its manifest are in $root; it starts once there is /etc/ovn-uplink/kubeconfig"
}

if [ -n "$deb" ]; then
	[ -f "$deb" ] || fail "there is no $deb"
	add_deb
else
	[ -f "$image" ] || fail "there is no $image"
	add_image
fi

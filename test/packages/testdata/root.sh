#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# Process 1 of a scratch root; runs in namespaces of its own. Nothing of it outlives them.
#   root.sh BASE WORK boot|idle DIR
# BASE is the file tree that stays as it is; WORK/mnt becomes the root, WORK/srv is /srv in it. DIR, if not empty, is
# where it is on the machine.
set -euo pipefail
base=$1 work=$2 how=$3 dir=$4

mount --make-rprivate /
mount -t tmpfs -o size=2g,mode=755 scratch "$work/upper"
mkdir "$work/upper/files" "$work/upper/work" "$work/upper/containerd"
root=$work/mnt
mount -t overlay -o "lowerdir=$base,upperdir=$work/upper/files,workdir=$work/upper/work" scratch "$root"
mount --bind "$work/srv" "$root/srv"
if [ -n "$dir" ]; then
	mkdir -p "$root$dir"
	mount --bind "$dir" "$root$dir"
fi
mkdir -p "$root/var/lib/containerd"
mount --bind "$work/upper/containerd" "$root/var/lib/containerd"
mount -t proc proc "$root/proc"
# Settings of the whole machine are not the root's to change.
mount --bind "$root/proc/sys" "$root/proc/sys"
mount -o remount,bind,ro "$root/proc/sys"
mount --bind "$root/proc/sys/net" "$root/proc/sys/net"
mount -o remount,bind,rw "$root/proc/sys/net"
mount -t sysfs sysfs "$root/sys"
mount -t cgroup2 cgroup2 "$root/sys/fs/cgroup"
mount -t tmpfs -o mode=755 run "$root/run"
mount -t tmpfs tmp "$root/tmp"
mount -t tmpfs -o mode=755 dev "$root/dev"
mkdir "$root/dev/net" "$root/dev/pts" "$root/dev/shm"
mount -t devpts -o newinstance,ptmxmode=0666 devpts "$root/dev/pts"
for node in null zero full random urandom tty net/tun; do
	touch "$root/dev/$node"
	mount --bind "/dev/$node" "$root/dev/$node"
done
ln -s /proc/self/fd "$root/dev/fd"
ln -s pts/ptmx "$root/dev/ptmx"
ip link set lo up

if [ "$how" = idle ]; then
	exec chroot "$root" /bin/sleep infinity
fi
# What would reach for the machine, and consoles.
for unit in getty.target console-getty.service systemd-sysctl.service systemd-modules-load.service systemd-binfmt.service \
	proc-sys-fs-binfmt_misc.automount sys-kernel-debug.mount sys-kernel-tracing.mount dev-hugepages.mount \
	systemd-udevd.service apt-daily.timer apt-daily-upgrade.timer e2scrub_all.timer fstrim.timer; do
	mkdir -p "$root/run/systemd/system"
	ln -sf /dev/null "$root/run/systemd/system/$unit"
done
export container=ovn-uplink-test
exec chroot "$root" /lib/systemd/systemd --system --show-status=0 --log-target=journal --unit=multi-user.target

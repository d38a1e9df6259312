#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# The guest's first program: builds a root out of what the machine shares, runs /tests/run in it and ends the guest
# with its exit code. /repository-path holds where the repository is.
export PATH=/bin
mount -t proc proc /proc
mount -t sysfs sys /sys
mount -t devtmpfs dev /dev
for module in /modules/*; do
	insmod "$module" || echo "guest: cannot load $module"
done

repository=$(cat /repository-path)
share() { # TAG DIRECTORY OPTIONS
	mkdir -p "/new$2"
	mount -t 9p -o "trans=virtio,version=9p2000.L,msize=1048576,$3" "$1" "/new$2" || echo "guest: cannot mount $1"
}
mkdir /new
mount -t tmpfs -o mode=755 root /new
cp -a /etc /new/etc
share usr /usr ro,cache=loose
share tests /tests ro,cache=loose
share out /out rw,access=any
for link in bin sbin lib lib32 lib64 libx32; do
	ln -s "usr/$link" "/new/$link"
done
cd /new || exit
mkdir -p dev proc sys run tmp var/lib var/log var/tmp
ln -s ../run var/run
chmod 1777 tmp var/tmp
mount --bind /dev dev
mkdir -p dev/pts dev/shm
mount -t devpts pts dev/pts
mount -t tmpfs shm dev/shm
mount -t proc proc proc
mount -t sysfs sys sys
mount -t debugfs debug sys/kernel/debug
mount -t tmpfs run run
mount -t tmpfs tmp tmp
share repository "$repository" ro,cache=loose # may be below /tmp
ip link set lo up

if [ -n "$(grep -l cache /sys/bus/virtio/drivers/9pnet_virtio/virtio*/mount_tag)" ]; then
	share cache /tmp/.cache/ovn-uplink ro,cache=loose
fi

chroot /new /bin/bash /tests/run
code=$?
echo "guest: exit code $code, up $(cut -d ' ' -f 1 /proc/uptime) s"
sync
# QEMU's isa-debug-exit: the byte that is written to the port becomes QEMU's exit code, doubled, plus one.
printf '%b' "\\x$(printf %x $code)" | dd of=/dev/port bs=1 seek=244 2>/dev/null
poweroff -f

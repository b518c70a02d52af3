#!/bin/sh
# /sbin/init of the root file system that build-rootfs makes. Its argument is
# the list of actions that the initramfs left to it (see actions.sh); started
# by anything else it takes the list from the kernel command line.

. /lull/actions.sh

[ -e /proc/uptime ] || mount -t proc proc /proc
[ -e /sys/kernel ] || mount -t sysfs sys /sys
[ -e /dev/console ] || mount -t devtmpfs dev /dev
mkdir -p /dev/pts
mount -t devpts pts /dev/pts
mount -t tmpfs tmp /tmp
hostname lull
ip link set lo up

read -r banner </etc/issue
echo "$banner"
out "rootfs $(cut -d' ' -f1 /proc/uptime) $(uname -r)"

run_actions "${1-$(wanted_actions | sed 's/.*root=[^+]*+*//')}"

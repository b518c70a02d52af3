#!/bin/sh
# /lull/main in the guest's initramfs: process 1, after /init (start.c) has made
# its marks and mounted /proc and /dev. Brings up the devices that are there,
# then does what the kernel command line says (actions.sh).

. /lull/actions.sh

mount -t sysfs sys /sys
mount -t tmpfs tmp /tmp
out "init $(cut -d' ' -f1 /proc/uptime) $(uname -r)"

# The bus first; its devices then name the drivers that they want.
modprobe -q virtio_mmio
for alias in /sys/bus/virtio/devices/*/modalias; do
	[ ! -e "$alias" ] || modprobe -q "$(cat "$alias")"
done

run_actions "$(wanted_actions)"

#!/bin/sh
# boot-job.sh: the part of the boot benchmark that runs where KVM is. Leaves
# "NAME VALUE" lines in $RIG_OUT/lulld.txt and $RIG_OUT/qemu.txt.

# shellcheck source=tests/system/lib.sh
. "$RIG_DIR/files/system/lib.sh"

kernel=$RIG_DIR/kernels/cloud.vmlinux
initrd=$RIG_DIR/initrd/cloud.cpio
# the same words for both; each VMM adds what it needs to find its devices
args="console=ttyS0 quiet reboot=k panic=-1 nomodule pci=off 8250.nr_uarts=1 i8042.noaux i8042.nomux i8042.dumbkbd lull.run=poweroff"

cat >"$TMPDIR/boot.json" <<JSON
{ "boot-source": { "kernel_image_path": "$kernel", "initrd_path": "$initrd", "boot_args": "$args" },
  "drives": [], "machine-config": { "vcpu_count": 1, "mem_size_mib": 256 } }
JSON

say "lulld, PVH"
kvm-exits -o "$RIG_OUT/lulld.txt" lulld --no-api --config-file "$TMPDIR/boot.json" </dev/null || exit 1

say "QEMU microvm, PVH"
kvm-exits -o "$RIG_OUT/qemu.txt" qemu-system-x86_64 -M microvm,pit=off,pic=off,rtc=on -accel kvm -cpu host \
	-smp 1 -m 256 -kernel "$kernel" -initrd "$initrd" -append "$(echo "$args" | sed 's/reboot=k/reboot=t/;s/poweroff/reboot/')" \
	-nodefaults -no-user-config -display none -serial stdio -no-reboot </dev/null >"$RIG_OUT/qemu.log" 2>&1 || exit 1

say "memory of lulld with 1 vCPU, 128 MiB, drive, network, entropy, serial"
ip tuntap add dev lulltap0 mode tap 2>/dev/null || tunctl -t lulltap0 >/dev/null
start_lulld memory
api_is 204 PUT /boot-source "{\"kernel_image_path\":\"$kernel\",\"initrd_path\":\"$initrd\",\"boot_args\":\"$base_args lull.run=entropy+disk-verify=vda+shell\"}" &&
	api_is 204 PUT /machine-config '{"vcpu_count":1,"mem_size_mib":128}' &&
	api_is 204 PUT /drives/data "{\"drive_id\":\"data\",\"path_on_host\":\"$RIG_DIR/files/data.img\",\"is_root_device\":false,\"is_read_only\":false}" &&
	api_is 204 PUT /network-interfaces/eth0 '{"iface_id":"eth0","host_dev_name":"lulltap0"}' &&
	api_is 204 PUT /entropy '{}' &&
	api_is 204 PUT /actions '{"action_type":"InstanceStart"}' || exit 1
up() { has '^LULL:disk-verify'; }
wait_for "$RIG_GUEST_TIMEOUT" up || { tail "$log"; exit 1; }
memory_of "$pid" 131072 >>"$RIG_OUT/lulld.txt"
cp "/proc/$pid/smaps" "$RIG_OUT/smaps.txt"
echo "threads $(ls "/proc/$pid/task" | wc -l)" >>"$RIG_OUT/lulld.txt"
kill "$pid"
end_lulld 20
exit 0

# shellcheck shell=sh
# What a guest sees of its hardware.

drives='{ "drive_id": "rootfs", "path_on_host": "'$RIG_DIR/files/data.img'", "is_root_device": false, "is_read_only": true }'
boot report-cloud cloud.vmlinux 2 256 "facts+complaints+entropy+poweroff" "" ', "entropy": {}'
drives=
now=$(date -u +%s)
check "powers off" ended guest-poweroff
check "two CPUs" [ "$(value nproc)" = 2 ]
rtc=$(value rtc)
check "the clock is right: ${rtc:-none}, host $now" \
	[ "$((now - ${rtc:-0}))" -ge 0 -a "$((now - ${rtc:-0}))" -lt 60 ]
check "virtio-blk is there with its serial" has '^LULL:block vda .*serial=rootfs'
check "virtio-blk is read-only" has '^LULL:block vda .*ro=1'
check "entropy comes from virtio-rng" has '^LULL:entropy virtio_rng'
check "interrupts of virtio devices moved" \
	has '^LULL:interrupts +[0-9]+: .*[1-9][0-9]* .*virtio[0-9]'
check "interrupts of the serial port moved" has '^LULL:interrupts +[0-9]+: .*[1-9].*ttyS0'
check "a virtual L3 is shared by all CPUs" has '^LULL:cache cpu1 index3 .*shared_cpu_list=0-1'
check "one package" has '^LULL:topology cpu1 physical_package_id=0'
check "the guest's log was seen" has '^LULL:complaints end'
check "no complaints in it" lacks \
	'\[Firmware Bug\]|FW_BUG|topology_sane|WARNING:|BUG:|ACPI (Error|BIOS Error|Warning)|APIC.*(mismatch|error)|[Uu]nhandled|spurious'

#!/bin/sh
# record-job.sh: the part of `record` that runs where KVM is. Leaves the traced
# events of one guest's boot in $RIG_OUT/trace.txt.

# shellcheck source=tests/system/lib.sh
. "$RIG_DIR/files/system/lib.sh"

tracing=/sys/kernel/tracing
events="kvm_pio kvm_mmio"

kernel=$RIG_DIR/kernels/cloud.vmlinux
initrd=$RIG_DIR/initrd/cloud.cpio
args="console=ttyS0 reboot=k panic=1 lull.run=entropy+disk-verify=vda+net=10.0.9.2/24,10.0.9.1+facts+poweroff"

ip tuntap add dev lulltap0 mode tap 2>/dev/null || tunctl -t lulltap0 >/dev/null
ip address add 10.0.9.1/24 dev lulltap0 && ip link set lulltap0 up || exit 1

cat >"$TMPDIR/boot.json" <<JSON
{
  "boot-source": { "kernel_image_path": "$kernel", "initrd_path": "$initrd", "boot_args": "$args" },
  "machine-config": { "vcpu_count": 1, "mem_size_mib": 256 },
  "drives": [ { "drive_id": "data", "path_on_host": "$RIG_DIR/files/data.img",
                "is_root_device": false, "is_read_only": false } ],
  "network-interfaces": [ { "iface_id": "eth0", "host_dev_name": "lulltap0" } ],
  "entropy": {}
}
JSON

echo 65536 >$tracing/buffer_size_kb
echo 0 >$tracing/options/overwrite
for event in $events; do
	echo 1 >"$tracing/events/kvm/$event/enable" || exit 1
done
lulld --no-api --config-file "$TMPDIR/boot.json" </dev/null || exit 1
for event in $events; do
	echo 0 >"$tracing/events/kvm/$event/enable"
done
for cpu in "$tracing"/per_cpu/cpu*; do
	grep -qx 'overrun: 0' "$cpu/stats" && grep -qx 'dropped events: 0' "$cpu/stats" && continue
	echo "record: the trace buffer was too small"
	exit 1
done
cat $tracing/trace >"$RIG_OUT/trace.txt"

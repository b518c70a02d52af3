#!/bin/sh
# job.sh: the part of ./demo that runs where KVM is: one guest from the first
# call on the control socket to its power-off. $DEMO_SHELL=1 leaves the user at
# the guest's prompt.

# shellcheck source=tests/system/lib.sh
. "$RIG_DIR/files/system/lib.sh"

step() { echo ">> $*"; }

put() {
	step "PUT $1 $2"
	api_is 204 PUT "$1" "$2" || exit 1
}

step "a TAP for the guest: lulltap0, the host is 172.31.7.1"
ip tuntap add dev lulltap0 mode tap 2>/dev/null || tunctl -t lulltap0 >/dev/null || exit 1
ip address add 172.31.7.1/24 dev lulltap0
ip link set lulltap0 up

net=net=172.31.7.2/24,172.31.7.1
run=root=vda+$net+entropy+settle+poweroff
[ -z "${DEMO_SHELL-}" ] || run=root=vda+$net+shell+poweroff
args="console=ttyS0 loglevel=4 reboot=k panic=1 lull.boottimer lull.run=$run"
disk='{"drive_id":"disk","path_on_host":"'$RIG_DIR/files/rootfs.img'","is_root_device":false,"is_read_only":false}'
nic='{"iface_id":"eth0","host_dev_name":"lulltap0","guest_mac":"06:00:ac:1f:07:02"}'
boot='{"kernel_image_path":"'$RIG_DIR/kernels/cloud.vmlinux'","initrd_path":"'$RIG_DIR/initrd/cloud.cpio'","boot_args":"'$args'"}'

if [ -n "${DEMO_SHELL-}" ]; then
	step "lullctl run: the guest's console is this terminal; \"exit\" ends it"
	exec lullctl run --lulld "$(which lulld)" --kernel "$RIG_DIR/kernels/cloud.vmlinux" \
		--initrd "$RIG_DIR/initrd/cloud.cpio" --drive "$RIG_DIR/files/rootfs.img" \
		--net lulltap0 --entropy --cpus 2 --memory 256 --cmdline "$args"
fi

step "lulld --id demo --api-sock $TMPDIR/demo.sock --boot-timer"
start_lulld demo --boot-timer || exit 1
tail -n +1 -f "$log" &
console=$!
put /boot-source "$boot"
put /machine-config '{"vcpu_count":2,"mem_size_mib":256}'
put /drives/disk "$disk"
put /network-interfaces/eth0 "$nic"
put /entropy '{}'
put /actions '{"action_type":"InstanceStart"}'

settled() { has '^LULL:settle'; }
wait_for "$RIG_GUEST_TIMEOUT" settled || { kill "$pid"; exit 1; }
api_is 200 GET /v1/vcpus && vcpus=$answer
api_is 200 GET /v1/devices && devices=$answer
memory=$(memory_of "$pid" 262144)
threads=$(for task in "/proc/$pid/task"/*; do cat "$task/comm"; done)
end_lulld "$RIG_GUEST_TIMEOUT"
kill "$console"

echo
step "the table"
# one object a line, numbers by name
field() { tr ',{}' '\n\n\n' | sed -n "s/^ *\"$1\" *: *\"\{0,1\}\([^\"]*\)\"\{0,1\} *$/\1/p"; }
sed -n 's/.*Guest-boot-time *= *\([0-9]*\) us.*/InstanceStart to \/init: \1 us on this host'"'"'s clock/p' "$log"
for reason in total io mmio interrupted; do
	echo "exits to user space, $reason: $(echo "$vcpus" | field "$reason" | awk '{ s += $1 } END { print s + 0 }')"
done
echo "$memory" | awk '{ name[$1] = $2 } END { printf "VMM memory besides guest RAM: %d KiB (%d private, %d shared)\n", name["vmm_kib"], name["vmm_private_kib"], name["vmm_shared_kib"] }'
echo "threads: $(echo "$threads" | tr '\n' ';' | sed 's/;$//;s/;/, /g')"
echo "devices: $(echo "$devices" | field id | tr '\n' ' ')"
grep -a '^LULL:\(net\|entropy\|rootfs\)' "$log"
echo "lulld ended with status $status: $(sed -n 's/.*\(reason=[a-z-]*\).*/\1/p' "$log" | tail -n 1)"
exit "$status"

# shellcheck shell=sh
# Kernels that boot to user space: each image, each boot protocol.

for image in cloud.bzImage cloud.vmlinux generic.bzImage generic.vmlinux; do
	boot "kernel-$(echo "$image" | tr . -)" "$image" 1 256 poweroff
	check "$image reaches user space and powers off" ended guest-poweroff
	check "$image was up" has '^LULL:init '
done

# The same vmlinux without its PVH note takes the 64-bit Linux protocol.
for flavour in cloud generic; do
	config "$RIG_DIR/files/$flavour-nopvh.vmlinux" "$RIG_DIR/initrd/$flavour.cpio" 1 256 \
		"$base_args lull.run=poweroff"
	run_vm "kernel-$flavour-nopvh"
	check "$flavour vmlinux by the Linux protocol powers off" ended guest-poweroff
done

boot reboot cloud.vmlinux 1 256 reboot
check "a guest's reboot ends the VM" ended guest-reset

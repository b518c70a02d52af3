# shellcheck shell=sh
# Numbers of vCPUs (more of them in smp.sh), sizes of memory, and guests that do
# without ACPI.

check_vcpus 1 2 3

for mib in 128 3072 5120; do
	boot "memory-$mib" cloud.vmlinux 1 "$mib" facts+poweroff
	check "$mib MiB: powers off" ended guest-poweroff
	kib=$(value 'memory MemTotal:' | awk '{ print $1 }')
	# the kernel keeps some for itself: its image, page structures, crash area
	check "$mib MiB: the guest has them (${kib:-no} KiB)" \
		[ "${kib:-0}" -gt $((mib * 1024 * 80 / 100 - 30000)) ]
done

boot acpi-off generic.vmlinux 1 256 facts+reboot acpi=off
check "generic kernel with acpi=off reaches user space" has '^LULL:init '
boot acpi-off-smp generic.vmlinux 2 256 facts+reboot acpi=off
check "generic kernel with acpi=off and 2 vCPUs counts 2 by the MP table" [ "$(value nproc)" = 2 ]
check "acpi=off: reboot through the keyboard controller" ended guest-reset

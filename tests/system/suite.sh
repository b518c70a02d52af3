#!/bin/sh
# suite.sh: Debian kernels in guests of lulld on real KVM. Runs as the job of
# tests/rig/run, emulated or native; tests/system/run starts it.
#
#   suite.sh PART...    parts: kernels machine report disk net rtc life faults smp ticks
#
# Each part is a folder's file PART.sh beside this one.

here=$(dirname "$0")
[ -f "$here/lib.sh" ] || here=$RIG_DIR/files/system
# shellcheck source=tests/system/lib.sh
. "$here/lib.sh"

for part in "$@"; do
	say "$part"
	# shellcheck disable=SC1090
	. "$here/$part.sh"
done

say "KVM's log"
if dmesg >"$RIG_OUT/l1-dmesg.log" 2>/dev/null; then
	log=$RIG_OUT/l1-dmesg.log
	check "no MSR or exit that our CPUID caused is unhandled" lacks '[Uu]nhandled|kvm.*(BUG|WARN)|Call Trace'
else
	skip "the kernel log may not be read here"
fi
summary

#!/bin/sh
# rtc-job.sh: the part of the rtc benchmark that runs where KVM is. For each run
# leaves $RIG_OUT/NAME.{threads,locks,log}, the threads' names and GET /v1/locks
# as it was at the end, and for each of the guest's two marks (clock-reader.c)
# NAME.{user,futex}.{2,3}: exits to user space by reason and futex calls by thread,
# up to that mark.

# shellcheck source=tests/system/lib.sh
. "$RIG_DIR/files/system/lib.sh"

tracing=/sys/kernel/tracing/instances
kernel=$RIG_DIR/kernels/cloud.vmlinux
initrd=$RIG_DIR/initrd/cloud.cpio
user=kvm/kvm_userspace_exit
futex=syscalls/sys_enter_futex

# Two instances of the tracer: each counts until one of the marks.
count() {
	for value in 2 3; do
		events=$tracing/mark-$value/events
		mkdir "$tracing/mark-$value" &&
			echo 'hist:keys=reason if errno >= 0' >"$events/$user/trigger" &&
			echo 'hist:keys=common_pid' >"$events/$futex/trigger" || exit 1
		for event in "$user" "$futex"; do
			echo "disable_hist:$(echo "$event" | tr / :) if port == 0xf4 && val == $value" \
				>>"$events/kvm/kvm_pio/trigger" || exit 1
		done
	done
}

# counted NAME: the histograms to files. Triggers that point at others go first.
counted() {
	for value in 2 3; do
		events=$tracing/mark-$value/events
		cat "$events/$user/hist" >"$RIG_OUT/$1.user.$value"
		cat "$events/$futex/hist" >"$RIG_OUT/$1.futex.$value"
		for event in kvm/kvm_pio "$user" "$futex"; do
			grep -v '^#' "$events/$event/trigger" | while read -r trigger; do
				echo "!${trigger% \[*}" >"$events/$event/trigger"
			done
		done
		rmdir "$tracing/mark-$value"
	done
}

# By the clock: what is polled for takes long itself on a host that is so busy.
until_read() {
	last=$(($(date +%s) + RIG_GUEST_TIMEOUT / 2))
	until has '^LULL:clock-reader [bd]'; do
		[ "$(date +%s)" -lt "$last" ] || return 1
		sleep 1
	done
}

# run NAME VCPUS ACTIONS [OPTION]...: one guest; false if it was lost.
run() {
	name=$1 vcpus=$2 actions=$3
	shift 3
	start_lulld "$name" "$@"
	api_is 204 PUT /boot-source "{\"kernel_image_path\":\"$kernel\",\"initrd_path\":\"$initrd\",\"boot_args\":\"$base_args lull.run=$actions+shell\"}" &&
		api_is 204 PUT /machine-config "{\"vcpu_count\":$vcpus,\"mem_size_mib\":256}" &&
		api_is 204 PUT /drives/data "{\"drive_id\":\"data\",\"path_on_host\":\"$RIG_DIR/files/data.img\",\"is_root_device\":false,\"is_read_only\":false}" &&
		api_is 204 PUT /entropy '{}' &&
		api_is 204 PUT /v1/locks '{"reset":true}' &&
		api_is 204 PUT /actions '{"action_type":"InstanceStart"}' || exit 1
	count
	until_read
	reads=$?
	for task in "/proc/$pid/task"/*; do
		echo "${task##*/} $(cat "$task/comm")"
	done >"$RIG_OUT/$name.threads"
	api GET /v1/locks
	echo "$answer" >"$RIG_OUT/$name.locks"
	counted "$name"
	kill "$pid"
	end_lulld 20
	return "$reads"
}

# A guest that the emulator loses gets another try (tests/rig/README.md).
try() {
	for attempt in 1 2 3; do
		run "$@" && return
		echo "   note: $1 was lost, try $attempt of 3"
		tail -n 8 "$log"
	done
	exit 1
}

if [ "$VCPUS" -eq 1 ]; then
	say "one reading after the other, by the kernel"
	try quiet 1 "clock-reader=device,1,150"
fi
for lock in "" --big-lock; do
	say "$VCPUS vCPUs poll the clock, other devices busy $lock"
	# shellcheck disable=SC2086 # no option is no word
	try "busy$lock" "$VCPUS" "clock-reader=busy,$VCPUS,$READS" $lock
done

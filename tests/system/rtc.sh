# shellcheck shell=sh
# The clock as Linux uses it: hwclock, alarms, updates, its device's periodic
# interrupts (which Linux makes itself, with its own timers), and a pause.

# near NUMBER WANTED DISTANCE
near() {
	[ -n "$1" ] && [ -n "$2" ] && [ $(($1 - $2)) -le "$3" ] && [ $(($2 - $1)) -le "$3" ]
}

# says NAME SECONDS: the guest saw this time, in its clock and its system, or up to
# 3 s later.
says() {
	rtc=$(field "clock-$1" rtc)
	near "$rtc" $(($2 + 1)) 2 && near "$(field "clock-$1" system)" "$rtc" 1
}

boot rtc cloud.vmlinux 1 256 clock+poweroff
now=$(date -u +%s)
check "powers off" ended guest-poweroff
check "hwclock -r shows the system's minute" \
	[ "$(value clock-read | cut -c 1-16)" = "$(value clock-read | sed 's/.*system=//' | cut -c 1-16)" ]
rtc=$(field clock-boot rtc)
check "at boot it is the host's time ($rtc, $now at the end)" near "$rtc" $((now - 60)) 60
check "the FADT's bytes give alarms a date and the clock a century" \
	has '^LULL:clock-driver alarms up to one year, y3k'
check "hwclock -w sets it" says set 1954566485
check "and it runs on" says set-later 1954566489
check "it goes into another century" says century-later 4102444801
check "an alarm with a date comes" has '^LULL:clock-alarm-3 alarm ms=.* count=1 flags=0xa0'
check "in its time" near "$(field clock-alarm-3 ms)" 2500 1500
check "an alarm without a date comes" has '^LULL:clock-day-alarm-2 day-alarm ms=.* count=1 flags=0xa0'
check "updates come" has '^LULL:clock-updates-3 updates ms=.* count=3 flags=0x90'
check "one a second" near "$(field clock-updates-3 ms)" 2500 1500
check "alarms and updates were the clock's interrupts" near "$(value clock-interrupts)" 5 1
for hz in 2 64 1024 8192; do
	count=$(field "clock-periodic-$hz" count)
	due=$((hz * $(field "clock-periodic-$hz" ms) / 1000))
	check "/dev/rtc0 at $hz Hz: $count of $due" near "$count" "$due" $((due / 50 + 1))
done

say "a pause"
start_lulld rtc-pause
api_is 204 PUT /boot-source "{\"kernel_image_path\":\"$RIG_DIR/kernels/cloud.vmlinux\",\"initrd_path\":\"$RIG_DIR/initrd/cloud.cpio\",\"boot_args\":\"$base_args lull.run=settle+facts+poweroff\"}" &&
	api_is 204 PUT /actions '{"action_type":"InstanceStart"}' || bad "cannot start" "$log"
check "the guest comes up" wait_for "$RIG_GUEST_TIMEOUT" has '^LULL:settle'
check "Paused" api_is 204 PATCH /vm '{"state":"Paused"}'
sleep 7
check "Resumed" api_is 204 PATCH /vm '{"state":"Resumed"}'
check "the guest goes on" wait_for "$RIG_GUEST_TIMEOUT" has '^LULL:rtc '
now=$(date -u +%s)
rtc=$(value rtc)
check "its clock is right: $rtc, host $now" near "$rtc" $((now - 1)) 2
check "and it powers off" end_lulld "$RIG_GUEST_TIMEOUT"

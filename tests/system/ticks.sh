# shellcheck shell=sh
# The clock's interrupts, counted by a guest without a kernel (tests/guest/ticks.c).
# Where the host is emulated its time counts instructions, or no guest would be in
# time for 8192 interrupts a second.

# ticks_config POLICY WORDS: in $config; the metrics go to $counts.
ticks_config() {
	counts=$TMPDIR/counts
	: >"$counts"
	config "$RIG_DIR/files/ticks.vmlinux" "" 1 64 "$2" \
		", \"rtc\": { \"lost_ticks\": \"$1\" }, \"metrics\": { \"metrics_path\": \"$counts\" }"
}

# run_ticks POLICY WORD
run_ticks() {
	ticks_config "$1" "$2"
	run_vm "ticks-$1-$2"
	check "$1, $2: powers off" ended guest-poweroff
}

# lost: the ticks that the device says it dropped.
lost() {
	sed 's/.*"rtc":{[^}]*"lost_ticks":\([0-9]*\).*/\1/' "$counts" | awk '{ n += $1 } END { print n + 0 }'
}

# within PERCENT COUNT DUE
within() {
	[ -n "$2" ] && [ $((($2 - $3) * 100)) -le $(($1 * $3)) ] && [ $((($3 - $2) * 100)) -le $(($1 * $3)) ]
}

# none_is_lost: the guest got all that were due in the end; the first may come early.
none_is_lost() {
	left=$(($(field "ticks $1" end-due) - $(field "ticks $1" end-count)))
	[ "$left" -le 1 ] && [ "$left" -ge -1 ] && [ "$(lost)" -eq 0 ]
}

for hz in 64 1024 8192; do
	run_ticks slew "$hz"
	count=$(field "ticks $hz" count) due=$(field "ticks $hz" due)
	check "slew, $hz Hz over 5 s: $count interrupts, $due due: within 1 %" within 1 "$count" "$due"
	check "slew, $hz Hz: none is lost" none_is_lost "$hz"
done

run_ticks slew slow
check "slew, a slow guest: $(field "ticks slow" end-count) interrupts, $(field "ticks slow" end-due) due: none is lost" \
	none_is_lost slow
run_ticks discard slow
count=$(field "ticks slow" count) due=$(field "ticks slow" due)
check "discard, the same: $count of $due" [ "$count" -lt $((due * 95 / 100)) ]
check "discard, the same: the others were dropped ($(lost))" [ "$(lost)" -gt $((due * 5 / 100)) ]

run_ticks slew seconds
for what in updates alarms; do
	count=$(field "$what" count) due=$(field "$what" due)
	check "$what: $count in $(field "$what" us) us" [ $((count - due)) -ge 0 -a $((count - due)) -le 1 ]
done

say "a pause of ticks"
ticks_config slew 64
start_lulld ticks-pause --config-file "$config"
sleep 2
check "Paused" api_is 204 PATCH /vm '{"state":"Paused"}'
sleep 2
check "Resumed" api_is 204 PATCH /vm '{"state":"Resumed"}'
check "powers off" end_lulld "$RIG_GUEST_TIMEOUT"
check "the ticks of the pause came after it" none_is_lost 64

say "a host clock that is set"
if [ "$RIG_MODE" = emulated ]; then
	ticks_config slew "hour seconds"
	start_lulld ticks-jump --config-file "$config"
	check "an alarm is an hour away" wait_for 20 has '^LULL:hour set'
	date -u -s "@$(($(date -u +%s) + 7200))" >/dev/null
	check "the clock goes over it: it comes" wait_for 20 has '^LULL:hour us=[0-9]* count=1'
	date -u -s "@$(($(date -u +%s) - 7200))" >/dev/null
	check "powers off" end_lulld "$RIG_GUEST_TIMEOUT"
	count=$(field updates count)
	check "the clock goes back: there are still $count updates in $(field updates us) us" \
		[ "$count" -ge 3 -a "$count" -le 4 ]
else
	skip "the clock of this machine is not set"
fi

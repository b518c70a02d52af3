# shellcheck shell=sh
# A guest's whole life over the control socket; pause, resume, the ways to end.

# configure NAME ACTIONS: lulld with a guest ready to start.
configure() {
	start_lulld "$1"
	api_is 204 PUT /boot-source "{\"kernel_image_path\":\"$RIG_DIR/kernels/cloud.vmlinux\",\"initrd_path\":\"$RIG_DIR/initrd/cloud.cpio\",\"boot_args\":\"$base_args lull.run=$2\"}" &&
		api_is 204 PUT /machine-config '{"vcpu_count":2,"mem_size_mib":256}'
}

guest_is_up() { has '^LULL:init '; }

# total_exits: of all vCPUs, from /v1/vcpus.
total_exits() {
	api GET /v1/vcpus
	echo "$answer" | grep -o '"total":[0-9]*' | grep -o '[0-9]*' | awk '{ s += $1 } END { print s + 0 }'
}

say "the README's curl calls"
log=$RIG_OUT/readme.log
socket=$TMPDIR/readme.sock
if SOCKET=$socket KERNEL=$RIG_DIR/kernels/cloud.vmlinux INITRD=$RIG_DIR/initrd/cloud.cpio \
	timeout "$RIG_GUEST_TIMEOUT" sh "$RIG_DIR/files/readme.sh" </dev/null >"$log" 2>&1; then
	ok "they start a guest and end with status 0"
else
	bad "they ended with status $?" "$log"
fi
check "the guest was up" has '^LULL:init '
check "and ended by itself" has 'reason=guest-poweroff'

say "pause and resume"
configure pause shell || bad "cannot configure" "$log"
check "InstanceStart" api_is 204 PUT /actions '{"action_type":"InstanceStart"}'
check "the state is Running" sh -c "curl -s --unix-socket $socket http://localhost/ | grep -q '\"state\" *: *\"Running\"'"
check "the guest comes up" wait_for "$RIG_GUEST_TIMEOUT" guest_is_up
check "Paused" api_is 204 PATCH /vm '{"state":"Paused"}'
before=$(total_exits)
check "exits are counted ($before)" [ "$before" -gt 100 ]
sleep 2
check "a paused guest makes none" [ "$(total_exits)" = "$before" ]
check "Paused again" api_is 204 PATCH /vm '{"state":"Paused"}'
check "Resumed" api_is 204 PATCH /vm '{"state":"Resumed"}'
for round in 1 2 3 4 5 6 7 8 9 10; do
	api_is 204 PATCH /vm '{"state":"Paused"}' && api_is 204 PATCH /vm '{"state":"Resumed"}' ||
		bad "round $round of pause and resume"
done
check "SendCtrlAltDel" api_is 204 PUT /actions '{"action_type":"SendCtrlAltDel"}'
check "ends lulld" end_lulld "$RIG_GUEST_TIMEOUT"
check "with a reset and status 0" ended guest-reset
check "its socket is gone" [ ! -e "$socket" ]

say "SIGTERM"
configure term-configured shell
kill "$pid"
check "while configuring: ends soon" end_lulld 5
check "as by the signal" [ "$status" -eq 143 ]
configure term-running shell
api_is 204 PUT /actions '{"action_type":"InstanceStart"}'
sleep 1
kill "$pid"
check "while running: ends soon" end_lulld 5
check "as by the signal" [ "$status" -eq 143 ]
configure term-paused shell
api_is 204 PUT /actions '{"action_type":"InstanceStart"}'
api_is 204 PATCH /vm '{"state":"Paused"}'
kill "$pid"
check "while paused: ends soon" end_lulld 5
check "as by the signal" [ "$status" -eq 143 ]

say "lullctl"
log=$RIG_OUT/lullctl.log
timeout "$RIG_GUEST_TIMEOUT" lullctl run --lulld "$(which lulld)" --kernel "$RIG_DIR/kernels/cloud.vmlinux" \
	--initrd "$RIG_DIR/initrd/cloud.cpio" --cpus 2 --memory 256 \
	--cmdline "$base_args lull.run=poweroff" </dev/null >"$log" 2>&1
status=$?
check "lullctl run returns the guest's outcome" [ "$status" -eq 0 ]
check "and shows its console" has '^LULL:init '

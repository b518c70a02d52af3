# shellcheck shell=sh
# lib.sh: how the system tests start a VM and judge it. Sourced by suite.sh, in
# the rig's environment (busybox ash; see tests/rig/run).

passed=0
failed=0
skipped=0
base_args="console=ttyS0 quiet reboot=k panic=1"

say() { echo "== $*"; }

ok() {
	passed=$((passed + 1))
	echo "   ok: $*"
}

# bad WHAT [LOG]: a test that failed; the end of its log follows.
bad() {
	failed=$((failed + 1))
	echo "   FAILED: $1"
	[ -z "${2-}" ] || tail -n 25 "$2" | sed 's/^/   | /'
}

skip() {
	skipped=$((skipped + 1))
	echo "   SKIPPED: $*"
}

# check WHAT COMMAND...: the command's status decides; $log is shown if it fails.
check() {
	what=$1
	shift
	if "$@"; then ok "$what"; else bad "$what" "${log-}"; fi
}

# has PATTERN, lacks PATTERN: in the log of the VM that ran last.
has() { grep -qE "$1" "$log"; }
lacks() {
	! grep -E "$1" "$log" | sed 's/^/   found: /' | grep .
}

# value NAME: what follows "LULL:NAME " in the log, its first line.
value() { sed -n "s/^LULL:$1 //p" "$log" | tr -d '\r' | head -n 1; }

# field NAME KEY: the number after "KEY=" in the first line "LULL:NAME ...".
field() { value "$1" | tr ' ' '\n' | sed -n "s/^$2=\([0-9]*\)$/\1/p"; }

# config KERNEL INITRD VCPUS MIB ARGS [JSON-MEMBERS]: a configuration file, whose
# name is in $config. JSON members start with a comma.
config() {
	config=$TMPDIR/config.json
	cat >"$config" <<JSON
{
  "boot-source": {
    "kernel_image_path": "$1",
    "initrd_path": "$2",
    "boot_args": "$5"
  },
  "drives": [ ${drives-} ],
  "machine-config": { "vcpu_count": $3, "mem_size_mib": $4 }
  ${6-}
}
JSON
}

# run_vm NAME: from $config, until it ends by itself; sets $status and $log.
run_vm() {
	log=$RIG_OUT/$1.log
	timeout 120 lulld --no-api --id "$1" --config-file "$config" </dev/null >"$log" 2>&1
	status=$?
}

# Where the host is emulated, QEMU 7.2 loses or repeats events of nested guests
# with more than one vCPU now and then, under any VMM (tests/rig/README.md).
lost_by_the_emulator() {
	[ "$RIG_MODE" = emulated ] && [ "$1" -gt 1 ] || return 1
	[ "$status" -eq 143 ] || has 'reason=guest-triple-fault|Kernel panic|rcu: INFO|soft lockup'
}

# run_vm_of NAME VCPUS: as run_vm; a guest that the emulator has lost gets another
# try, which is reported.
run_vm_of() {
	for try in 1 2 3; do
		run_vm "$1"
		lost_by_the_emulator "$2" || return 0
		echo "   note: $1 was lost by the emulated host, try $try of 3"
	done
}

# ended WORD: the last VM ended with status 0 for the reason WORD.
ended() {
	[ "$status" -eq 0 ] && has "reason=$1"
}

# boot NAME FLAVOUR.IMAGE VCPUS MIB ACTIONS [ARGS] [JSON]: configure and run.
boot() {
	config "$RIG_DIR/kernels/$2" "$RIG_DIR/initrd/${2%%.*}.cpio" "$3" "$4" \
		"$base_args lull.run=$5 ${6-}" "${7-}"
	run_vm_of "$1" "$3"
}

# check_vcpus N...: guests with so many vCPUs.
check_vcpus() {
	for vcpus in "$@"; do
		boot "vcpus-$vcpus" cloud.vmlinux "$vcpus" 256 facts+complaints+poweroff
		check "$vcpus vCPUs: powers off" ended guest-poweroff
		check "$vcpus vCPUs: the guest counts $vcpus" [ "$(value nproc)" = "$vcpus" ]
		check "$vcpus vCPUs: its log was seen" has '^LULL:complaints end'
		check "$vcpus vCPUs: no complaint in it" lacks \
			'\[Firmware Bug\]|FW_BUG|topology_sane|APIC.*(mismatch|error|disabled)|[Ii]nvalid.*[Tt]opology|WARNING:|BUG:'
	done
}

# ---- the control socket --------------------------------------------------------

socket=
pid=

# start_lulld NAME [OPTION]...: in the background; sets $pid, $socket, $log.
start_lulld() {
	log=$RIG_OUT/$1.log
	socket=$TMPDIR/$1.sock
	name=$1
	shift
	lulld --id "$name" --api-sock "$socket" "$@" </dev/null >"$log" 2>&1 &
	pid=$!
	wait_for 20 [ -S "$socket" ]
}

# wait_for SECONDS COMMAND...: until the command succeeds.
wait_for() {
	left=$(($1 * 10))
	shift
	until "$@" 2>/dev/null; do
		left=$((left - 1))
		[ "$left" -gt 0 ] || return 1
		sleep 0.1
	done
}

# api METHOD PATH [BODY]: prints the body; $code is the status.
api() {
	if [ $# -gt 2 ]; then
		answer=$(curl -s --max-time 60 -w '\n%{http_code}' --unix-socket "$socket" -X "$1" "http://localhost$2" -d "$3")
	else
		answer=$(curl -s --max-time 60 -w '\n%{http_code}' --unix-socket "$socket" -X "$1" "http://localhost$2")
	fi
	code=$(echo "$answer" | tail -n 1)
	answer=$(echo "$answer" | sed '$d')
}

# api_ok STATUS METHOD PATH [BODY]
api_is() {
	wanted=$1
	shift
	api "$@"
	[ "$code" = "$wanted" ] || {
		echo "   $1 $2: status $code, wanted $wanted: $answer"
		return 1
	}
}

gone() { ! kill -0 "$1" 2>/dev/null; }

# end_lulld SECONDS: waits for its end; sets $status. Kills it and fails when late.
end_lulld() {
	if ! wait_for "$1" gone "$pid"; then
		kill -9 "$pid"
		wait "$pid"
		status=137
		return 1
	fi
	wait "$pid"
	status=$?
}

summary() {
	echo "$passed passed, $failed failed, $skipped skipped"
	[ "$failed" -eq 0 ]
}

# memory_of PID GUEST-KIB: lines vmm_kib, vmm_private_kib, vmm_shared_kib: what is
# resident beside guest RAM, which is the one mapping of GUEST-KIB.
memory_of() {
	awk -v guest="$2" '
	/^[0-9a-f]+-[0-9a-f]+ / { ram = 0 }
	$1 == "Size:" { ram = $2 == guest }
	ram { next }
	$1 == "Rss:" { rss += $2 }
	$1 ~ /^Private_(Clean|Dirty):/ { private += $2 }
	$1 ~ /^Shared_(Clean|Dirty):/ { shared += $2 }
	END { print "vmm_kib", rss; print "vmm_private_kib", private; print "vmm_shared_kib", shared }
	' "/proc/$1/smaps"
}

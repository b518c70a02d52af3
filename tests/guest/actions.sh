# shellcheck shell=sh
# actions.sh: what a guest does once it is up. Sourced by the initramfs's
# /lull/main and the root file system's /sbin/init (busybox ash).
#
# The kernel command line says it: lull.run=ACTION[+ACTION]... with
#   report               all of "facts" and "log", between "report begin" and
#                        "report end"
#   facts                CPUs, topology, caches, interrupts, clocks, disks, memory
#   log                  the kernel's log with its levels (slow: a character of
#                        the serial console is an exit)
#   complaints           of the log, warnings and worse, and what it says of firmware
#                        bugs, topology and APICs
#   disk-write=DEV       mount DEV (ext4), write files, print their sums, sync
#   disk-verify=DEV      mount DEV read-only, print the sums of the same files
#   root-write           the same two on the root file system, after root=DEV
#   root-verify
#   net=IP/PREFIX,HOST   give eth0 the address, ping HOST three times
#   entropy              64 bytes from /dev/hwrng
#   clock-reader=MODE,CPUS,READS  clock-reader's line
#   clock                hwclock, and the interrupts of /dev/rtc0
#   settle               five seconds of nothing, for who wants to look at us
#   shell                a shell on the console; goes on when it ends
#   root=DEV             hand over to /sbin/init on DEV with the actions that follow
#   poweroff             the end, and what happens when the list runs out
#   reboot               the other end
#
# Every line of results starts with "LULL:", so that they can be told from the
# kernel's; an action that fails prints "LULL:ACTION error REASON".

out() { echo "LULL:$*"; }

# prefixed WORD: standard input with "LULL:WORD " before each line.
prefixed() { sed "s|^|LULL:$1 |"; }

# wanted_actions: the list from the command line, + for the separator.
wanted_actions() {
	sed -n 's/.*\blull\.run=\([^ ]*\).*/\1/p' /proc/cmdline
}

# show FILE: its one line, or "-".
show() { cat "$1" 2>/dev/null || echo -; }

report_cpus() {
	out "nproc $(nproc)"
	out "online $(show /sys/devices/system/cpu/online)"
	awk -F '[\t]*: ' '
		$1 == "processor" { if (line) print line; line = "LULL:cpuinfo" }
		$1 ~ /^(processor|vendor_id|physical id|siblings|core id|cpu cores|apicid|initial apicid)$/ {
			gsub(/ /, "_", $1); line = line " " $1 "=" $2
		}
		END { print line }' /proc/cpuinfo
}

report_topology() {
	for cpu in /sys/devices/system/cpu/cpu[0-9]*; do
		line="topology ${cpu##*/}"
		for name in physical_package_id die_id core_id thread_siblings_list \
			core_cpus_list die_cpus_list package_cpus_list; do
			line="$line $name=$(show "$cpu/topology/$name")"
		done
		out "$line"
		for index in "$cpu"/cache/index*; do
			[ -d "$index" ] || continue
			line="cache ${cpu##*/} ${index##*/}"
			for name in level type size ways_of_associativity number_of_sets \
				coherency_line_size shared_cpu_list; do
				line="$line $name=$(show "$index/$name")"
			done
			out "$line"
		done
	done
}

report_devices() {
	prefixed interrupts </proc/interrupts
	out "date $(date -u +%s)"
	out "rtc $(show /sys/class/rtc/rtc0/since_epoch)"
	out "clocksource $(show /sys/devices/system/clocksource/clocksource0/current_clocksource)"
	for disk in /sys/block/*; do
		[ -e "$disk/device" ] || continue
		out "block ${disk##*/} sectors=$(show "$disk/size") ro=$(show "$disk/ro") serial=$(show "$disk/serial")"
	done
	for link in /sys/class/net/*; do
		out "link ${link##*/} address=$(show "$link/address") mtu=$(show "$link/mtu")"
	done
	grep -E '^Mem(Total|Free|Available):' /proc/meminfo | prefixed memory
}

do_facts() {
	out "kernel $(uname -r)"
	report_cpus
	report_topology
	report_devices
}

do_log() {
	dmesg -r | prefixed dmesg
}

do_report() {
	out "report begin"
	do_facts
	do_log
	out "report end"
}

# mount_disk ACTION DEV OPTIONS: on /mnt.
mount_disk() {
	mkdir -p /mnt
	modprobe -q ext4
	reason=$(mount -t ext4 -o "$3" "/dev/${2#/dev/}" /mnt 2>&1) && return
	out "$1 error $reason"
	return 1
}

# write_files ACTION DIR: files of random content, their sums, all synced.
write_files() {
	for kib in 1 7 64 300 1024; do
		dd if=/dev/urandom of="$2/data-$kib" bs=1k count="$kib" 2>/dev/null ||
			out "$1 error cannot write data-$kib"
	done
	print_sums "$1" "$2"
	sync
	out "$1 done"
}

# print_sums ACTION DIR: "LULL:disk-sum FILE SHA256" for each file.
print_sums() {
	for file in "$2"/data-*; do
		if sum=$(sha256sum <"$file"); then
			out "disk-sum ${file##*/} ${sum%% *}"
		else
			out "$1 error cannot read ${file##*/}"
		fi
	done
}

do_disk_write() {
	mount_disk disk-write "$1" rw || return 0
	write_files disk-write /mnt
}

do_disk_verify() {
	mount_disk disk-verify "$1" ro || return 0
	print_sums disk-verify /mnt
	umount /mnt
	out "disk-verify done"
}

do_root_write() {
	mkdir -p /data
	write_files root-write /data
}

do_root_verify() {
	print_sums root-verify /data
	out "root-verify done"
}

do_net() {
	address=${1%%,*} host=${1#*,}
	if [ ! -d /sys/class/net/eth0 ]; then
		out "net error no eth0"
		return
	fi
	ip link set lo up
	ip address add "$address" dev eth0
	ip link set eth0 up
	ping -c 3 -W 5 "$host" >/tmp/ping 2>&1
	counts=$(sed -n 's/^\([0-9]*\) packets transmitted, \([0-9]*\) .*/sent=\1 received=\2/p' /tmp/ping)
	out "net $address host=$host ${counts:-error no answer from ping}"
}

do_entropy() {
	bytes=$(dd if=/dev/hwrng bs=64 count=1 iflag=fullblock 2>/dev/null | hexdump -v -e '1/1 "%02x"')
	out "entropy $(show /sys/class/misc/hw_random/rng_current) ${bytes:-error no data from /dev/hwrng}"
}

do_clock_reader() {
	mode=${1%%,*} rest_of=${1#*,}
	/lull/clock-reader "$mode" "${rest_of%%,*}" "${rest_of#*,}"
}

do_complaints() {
	dmesg -r | grep -iE '^<[0-4]>|firmware bug|topology|apic' | prefixed dmesg
	out "complaints end"
}

# clock_says NAME: the clock's time and the system's, in seconds since 1970.
clock_says() {
	out "clock-$1 rtc=$(show /sys/class/rtc/rtc0/since_epoch) system=$(date -u +%s)"
}

# set_clock NAME DATE: by hwclock, as a system does when it goes down.
set_clock() {
	date -u -s "$2" >/dev/null
	hwclock -u -w -f /dev/rtc0 || out "clock error hwclock -w"
	clock_says "$1"
	sleep 4
	clock_says "$1-later"
}

# rtc_interrupts: how many the kernel counted on the clock's line.
rtc_interrupts() {
	awk '/rtc0/ { n = $2 } END { print n + 0 }' /proc/interrupts
}

do_clock() {
	out "clock-read $(hwclock -u -r -f /dev/rtc0) system=$(date -u '+%a %b %e %H:%M:%S %Y')"
	out "clock-driver $(dmesg | grep -o 'alarms up to.*')"
	clock_says boot
	set_clock set '2031-12-09 07:08:05'
	set_clock century '2099-12-31 23:59:57'
	before=$(rtc_interrupts)
	for what in 'alarm 3' 'day-alarm 2' 'updates 3' 'periodic 2' 'periodic 64' 'periodic 1024' 'periodic 8192'; do
		# shellcheck disable=SC2086 # a word and a number
		out "clock-${what% *}-${what#* } $(clock $what)"
	done
	out "clock-interrupts $(($(rtc_interrupts) - before))"
}

do_settle() {
	out "settle"
	sleep 5
}

do_shell() {
	setsid cttyhack sh -l
}

# do_root DEV REST: never returns where DEV holds a system.
do_root() {
	mount_disk root "$1" rw || return 0
	if [ ! -x /mnt/sbin/init ]; then
		out "root error no /sbin/init on $1"
		return
	fi
	for dir in dev proc sys; do
		mount --move "/$dir" "/mnt/$dir"
	done
	exec switch_root /mnt /sbin/init "$2"
}

finish() {
	out "$1"
	"$1" -f
	sleep 60
}

# run_actions LIST: does not return.
run_actions() {
	rest=$1
	while [ -n "$rest" ]; do
		action=${rest%%+*}
		case $rest in *+*) rest=${rest#*+} ;; *) rest= ;; esac
		value=${action#*=}
		case $action in
		report | facts | log) "do_$action" ;;
		disk-write=*) do_disk_write "$value" ;;
		disk-verify=*) do_disk_verify "$value" ;;
		root-write) do_root_write ;;
		root-verify) do_root_verify ;;
		net=*) do_net "$value" ;;
		entropy) do_entropy ;;
		clock-reader=*) do_clock_reader "$value" ;;
		complaints) do_complaints ;;
		clock) do_clock ;;
		settle) do_settle ;;
		shell) do_shell ;;
		root=*) do_root "$value" "$rest" ;;
		poweroff | reboot) finish "$action" ;;
		*) out "$action error no such action" ;;
		esac
	done
	finish poweroff
}

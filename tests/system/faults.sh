# shellcheck shell=sh
# Files that lie and hosts that fail, while a guest uses them.

alive() { api_is 200 GET /; }

# start_with_drive NAME IMAGE ACTIONS ENGINE
start_with_drive() {
	start_lulld "$1"
	api_is 204 PUT /boot-source "{\"kernel_image_path\":\"$RIG_DIR/kernels/cloud.vmlinux\",\"initrd_path\":\"$RIG_DIR/initrd/cloud.cpio\",\"boot_args\":\"$base_args lull.run=$3\"}" &&
		api_is 204 PUT /machine-config '{"vcpu_count":1,"mem_size_mib":256}' &&
		api_is 204 PUT /drives/data "{\"drive_id\":\"data\",\"path_on_host\":\"$2\",\"is_root_device\":false,\"is_read_only\":false,\"cache_type\":\"Writeback\",\"io_engine\":\"$4\"}" &&
		api_is 204 PUT /actions '{"action_type":"InstanceStart"}'
}

guest_is_up() { has '^LULL:init '; }

for engine in Sync Async; do
	cp "$RIG_DIR/files/data.img" "$TMPDIR/shrink.img"
	check "$engine: a guest starts" start_with_drive "truncated-$engine" "$TMPDIR/shrink.img" shell+disk-verify=vda+poweroff "$engine"
	wait_for "$RIG_GUEST_TIMEOUT" guest_is_up
	: >"$TMPDIR/shrink.img"
	sleep 2
	check "$engine: a drive truncated under it does not end lulld" alive
	kill "$pid"
	end_lulld 10
	check "$engine: and it ends when asked" [ "$status" -eq 143 ]

	mkdir -p "$TMPDIR/small"
	mount -t tmpfs -o size=2m small "$TMPDIR/small" || skip "$engine: no small file system"
	# all of the file system's own blocks lie in its first part; the rest is a hole
	truncate -s 32M "$TMPDIR/small/full.img"
	dd if="$RIG_DIR/files/sparse.img" of="$TMPDIR/small/full.img" bs=64k count=16 conv=notrunc 2>/dev/null
	check "$engine: a guest starts on a file system with no room" \
		start_with_drive "full-$engine" "$TMPDIR/small/full.img" disk-write=vda+poweroff "$engine"
	check "$engine: the guest goes on to its end" end_lulld "$RIG_GUEST_TIMEOUT"
	check "$engine: it ended by itself" ended guest-poweroff
	check "$engine: and was told of the errors" has 'I/O error|error .*dev vda|disk-write error'
	umount "$TMPDIR/small"
done

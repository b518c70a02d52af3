# shellcheck shell=sh
# virtio-blk: what was written and synced is there again after a power-off, on a
# disk that is mounted and on the root file system, with both engines.

# sums_of NAME: the checksums in the log of the last VM.
sums_of() { grep -a '^LULL:disk-sum' "$log" | tr -d '\r' >"$TMPDIR/sums-$1"; }

# survives NAME WRITE VERIFY: two boots on $drives, the second reads what the first wrote.
survives() {
	boot "$1-write" cloud.vmlinux 2 256 "$2+poweroff"
	check "$1: writes and powers off" ended guest-poweroff
	check "$1: all written" has '^LULL:(disk|root)-write done'
	check "$1: no I/O error" lacks 'I/O error|error .*sector|EXT4-fs error'
	sums_of "$1"
	boot "$1-verify" cloud.vmlinux 1 256 "$3+poweroff"
	check "$1: read back" has '^LULL:(disk|root)-verify done'
	sums_of "$1-again"
	check "$1: the sums are equal" cmp "$TMPDIR/sums-$1" "$TMPDIR/sums-$1-again"
	check "$1: there are 5" [ "$(wc -l <"$TMPDIR/sums-$1")" -eq 5 ]
	check "$1: no I/O error after" lacks 'I/O error|error .*sector|EXT4-fs error'
}

for engine in Sync Async; do
	cp "$RIG_DIR/files/data.img" "$TMPDIR/disk.img"
	drives='{ "drive_id": "data", "path_on_host": "'$TMPDIR/disk.img'", "is_root_device": false, "is_read_only": false, "cache_type": "Writeback", "io_engine": "'$engine'" }'
	survives "disk-$engine" disk-write=vda disk-verify=vda

	cp "$RIG_DIR/files/rootfs.img" "$TMPDIR/disk.img"
	drives='{ "drive_id": "rootfs", "path_on_host": "'$TMPDIR/disk.img'", "is_root_device": true, "is_read_only": false, "cache_type": "Writeback", "io_engine": "'$engine'" }'
	survives "root-$engine" root=vda+root-write root=vda+root-verify
	check "root-$engine: it was the root" has '^LULL:rootfs'
done
drives=
rm -f "$TMPDIR/disk.img"

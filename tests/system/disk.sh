# shellcheck shell=sh
# virtio-blk: what was written and synced is there again, with both engines; and
# a root file system on it.

for engine in Sync Async; do
	image=$TMPDIR/disk-$engine.img
	cp "$RIG_DIR/files/data.img" "$image"
	drives='{ "drive_id": "data", "path_on_host": "'$image'", "is_root_device": false, "is_read_only": false, "cache_type": "Writeback", "io_engine": "'$engine'" }'
	boot "disk-write-$engine" cloud.vmlinux 2 256 disk-write=vda+poweroff
	check "$engine: writes and powers off" ended guest-poweroff
	check "$engine: all written" has '^LULL:disk-write done'
	grep -a '^LULL:disk-sum' "$log" | tr -d '\r' >"$TMPDIR/sums-$engine"
	boot "disk-verify-$engine" cloud.vmlinux 1 256 disk-verify=vda+poweroff
	check "$engine: read back" has '^LULL:disk-verify done'
	grep -a '^LULL:disk-sum' "$log" | tr -d '\r' >"$TMPDIR/sums-$engine-again"
	check "$engine: 5 sums are equal" cmp "$TMPDIR/sums-$engine" "$TMPDIR/sums-$engine-again"
	check "$engine: there are 5" [ "$(wc -l <"$TMPDIR/sums-$engine")" -eq 5 ]
	check "$engine: no I/O error" lacks 'I/O error|error .*sector|EXT4-fs error'
	rm -f "$image"
done

cp "$RIG_DIR/files/rootfs.img" "$TMPDIR/rootfs.img"
drives='{ "drive_id": "rootfs", "path_on_host": "'$TMPDIR/rootfs.img'", "is_root_device": true, "is_read_only": false }'
boot rootfs cloud.vmlinux 2 256 root=vda+facts+poweroff
check "a root file system on virtio-blk runs" has '^LULL:rootfs'
check "and powers off" ended guest-poweroff
drives=
rm -f "$TMPDIR/rootfs.img"

# shellcheck shell=bash
# initramfs.sh: how the rig puts together the file trees that kernels boot from.
# Sourced after lib.sh. All functions work on a staging folder ROOT.

# add_busybox ROOT: the shell and tools, under /bin, with a link for each.
add_busybox() {
	local root=$1 applet
	mkdir -p "$root"/{bin,sbin,dev,proc,sys,run,tmp,etc}
	cp /bin/busybox "$root/bin/busybox"
	while read -r applet; do
		[[ $applet == busybox ]] || ln -s busybox "$root/bin/$applet"
	done < <(busybox --list)
	# The kernel's own module requests go to this fixed path.
	ln -s ../bin/modprobe "$root/sbin/modprobe"
}

is_elf() { [[ $(head -c4 "$1" | od -An -tx1) == ' 7f 45 4c 46' ]]; }

# add_libraries ROOT FILE: the shared libraries of FILE, to the paths where its
# loader looks for them.
add_libraries() {
	local root=$1 file=$2 list library
	is_elf "$file" || return 0
	list=$(ldd "$file" 2>/dev/null) || return 0 # static
	! grep 'not found' <<<"$list" >&2 || die "$file: libraries are missing (above)"
	while read -r library; do
		[[ -e $root$library ]] && continue
		mkdir -p "$root${library%/*}"
		cp -L "$library" "$root$library"
	done < <(awk '$2 == "=>" && $3 ~ "^/" { print $3 } $1 ~ "^/" { print $1 }' <<<"$list")
}

# add_file ROOT HOST GUEST: a file, or a folder with all that is in it, with the
# libraries of its programs.
add_file() {
	local root=$1 from=$2 to=$1$3 file
	mkdir -p "${to%/*}"
	if [[ -d $from ]]; then
		mkdir -p "$to"
		cp -rLT --sparse=never "$from" "$to"
	else
		cp -L "$from" "$to"
	fi
	while read -r -d '' file; do
		add_libraries "$root" "$file"
	done < <(find "$from" -follow -type f -perm /111 -print0)
}

# add_modules ROOT FLAVOUR NAME...: kernel modules with all that they depend on
# and the tables that modprobe reads. Names that are built in are passed over.
add_modules() {
	local root=$1 base release name kind path
	base=$(kernel_dir "$2")
	release=$(<"$base/release")
	shift 2
	for name in "$@"; do
		while read -r kind path _; do
			[[ $kind == insmod ]] || continue
			install -D -m644 "$path" "$root/${path#"$base/"}"
		done < <(modprobe -d "$base" -S "$release" --show-depends "$name" ||
			say "no module $name in $release")
	done
	mkdir -p "$root/lib/modules/$release"
	cp "$base/lib/modules/$release"/modules.{order,builtin,builtin.modinfo} \
		"$root/lib/modules/$release/"
	depmod -b "$root" "$release"
	rm -f "$root/lib/modules/$release"/modules.{*.bin,order,builtin.modinfo,devname}
}

# pack_cpio ROOT OUT: an uncompressed archive, the same for the same contents
# whoever builds it and when. Padded to whole pages: another may follow it, and
# QEMU's microvm, which puts an initrd at the end of memory, then leaves the last
# page alone, where its firmware keeps the ACPI tables.
pack_cpio() {
	local root=$1 out=$2
	find "$root" -exec touch -h -d @0 {} +
	(cd "$root" && find . -mindepth 1 -print0 | sort -z |
		cpio --quiet --null -o -H newc --reproducible -R 0:0) >"$out.new"
	truncate -s %4096 "$out.new"
	mv "$out.new" "$out"
}

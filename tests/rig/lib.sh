# shellcheck shell=bash
# lib.sh: what every script of the rig shares: messages, folders, the cache and
# its keys, and the way to the Debian kernels. Sourced, never run.
#
#   rig_dir    tests/rig          guest_dir  tests/guest
#   repo_dir   the repository     cache_dir  $LULL_RIG_CACHE or build/rig

set -euo pipefail
export LC_ALL=C PATH="$PATH:/usr/sbin:/sbin"
umask 022

rig_dir=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)
repo_dir=$(cd "$rig_dir/../.." && pwd)
# shellcheck disable=SC2034 # used by the scripts that source this file
guest_dir=$repo_dir/tests/guest
cache_dir=${LULL_RIG_CACHE:-$repo_dir/build/rig}
case $cache_dir in /*) ;; *) cache_dir=$PWD/$cache_dir ;; esac

# The kernels by the name that tests use for them: flavour -> Debian package
# whose dependency is the newest kernel of that kind.
declare -Ar kernel_package=(
	[cloud]=linux-image-cloud-amd64
	[generic]=linux-image-amd64
)
# shellcheck disable=SC2034 # the same in a fixed order
readonly flavours=(cloud generic)

# Status of every script here when the rig itself, not the job, has failed.
readonly RIG_FAILED=125

say() { printf '%s: %s\n' "${0##*/}" "$*" >&2; }

die() {
	say "$*"
	exit "$RIG_FAILED"
}

# usage: print the header comment of the running script and leave.
usage() {
	sed -n '2,/^$/s/^# \{0,1\}//p' "$0"
	exit "${1:-0}"
}

# need VALUE OPTION: an option's value must be there.
need() { [[ -n ${1-} ]] || die "$2 needs a value (see --help)"; }

# cache_open: make the cache folder, hidden from git.
cache_open() {
	mkdir -p "$cache_dir/bin" "$cache_dir/kernels" ||
		die "cannot make the cache folder $cache_dir (set LULL_RIG_CACHE?)"
	[[ -e $cache_dir/.gitignore ]] || echo '*' >"$cache_dir/.gitignore"
}

# cache_lock: one builder at a time; held until the calling script ends. Scripts
# that a holder starts see RIG_LOCKED and do not lock again.
cache_lock() {
	[[ -z ${RIG_LOCKED-} ]] || return 0
	exec {cache_lock_fd}>"$cache_dir/lock"
	flock "$cache_lock_fd"
	export RIG_LOCKED=1
}

# key_of WORD|FILE...: one hash over the words and the contents of the files.
key_of() {
	local item
	for item in "$@"; do
		if [[ -f $item ]]; then sha256sum <"$item"; else echo "$item"; fi
	done | sha256sum | cut -d' ' -f1
}

# fresh OUT KEY: true when OUT was made from just these inputs.
fresh() { [[ -e $1 && -e $1.key && $(<"$1.key") == "$2" ]]; }

package_version() { dpkg-query -W -f '${Version}' "$1"; }

# missing_packages: names from `packages` that are not installed.
missing_packages() {
	local name
	while read -r name; do
		[[ $(dpkg-query -W -f '${db:Status-Status}' "$name" 2>/dev/null) == installed ]] ||
			echo "$name"
	done < <(grep -v '^#' "$rig_dir/packages")
}

require_packages() {
	local missing
	missing=$(missing_packages | tr '\n' ' ')
	[[ -z $missing ]] || die "packages missing: ${missing}(as root: tests/rig/setup)"
}

# kernel_dir FLAVOUR: the unpacked kernel: boot/, lib/modules/, bzImage, vmlinux,
# release. fetch-kernels makes it.
kernel_dir() { readlink -f "$cache_dir/kernels/$1"; }

have_kernels() {
	local flavour
	for flavour in "${flavours[@]}"; do
		[[ -e $cache_dir/kernels/$flavour/release ]] || return 1
	done
}

# compile_static OUT SOURCE [FLAG...]: one small C program without libraries
# beside it.
compile_static() {
	local out=$1 source=$2 key
	shift 2
	key=$(key_of "$source" "$@")
	fresh "$out" "$key" && return
	cc -std=gnu11 -O2 -Wall -Wextra -Werror -static -s "$@" -o "$out.$$" "$source" ||
		die "cannot compile $source"
	mv "$out.$$" "$out"
	echo "$key" >"$out.key"
}

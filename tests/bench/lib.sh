# lib.sh: what the benchmarks that count instructions share. Sourced, by bash.
# Sets $here and $root; $build is the caller's.

here=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)
root=$(cd "$here/../.." && pwd)

# need PACKAGE...: installs those that are missing.
need() {
	local p missing=() as=()
	for p in "$@"; do
		dpkg-query -W -f='${Status}' "$p" 2>/dev/null | grep -q '^install ok installed' || missing+=("$p")
	done
	((${#missing[@]})) || return 0
	[ "$(id -u)" -eq 0 ] || as=(sudo)
	"${as[@]}" apt-get update -qq &&
		"${as[@]}" env DEBIAN_FRONTEND=noninteractive apt-get install -y -qq --no-install-recommends "${missing[@]}" >/dev/null
}

# bench_build PROGRAM...: the benchmarks' programs, with the flags of the release
# build, in BUILD/bench-build.
bench_build() {
	local dir=$build/bench-build
	[ -f "$dir/build.ninja" ] ||
		meson setup "$dir" "$root" --buildtype=release -Doptimization=2 >"$dir.log" 2>&1 ||
		{ cat "$dir.log" && return 1; }
	ninja -C "$dir" "${@/#/tests/bench/}" >"$dir.log" 2>&1 || { cat "$dir.log" && return 1; }
	bin=$dir/tests/bench
}

#!/usr/bin/env bash
# Compiles all C++ of src/ and bench/ for arm64 macOS on Linux, and the tests of the kernels (src/kernels, and tests/metal as for a
# Mac's GPU), links it against the macOS package of MLX and checks the programs with tools/check_macho.py. The result shows that
# the code is right for macOS; it is not meant to be run: Apple's headers come with the compiler (zig), other libraries are
# headers only and left undefined.
#
# The Rust library is part of it when rustup can give the standard library of aarch64-apple-darwin, else left undefined too;
# OCTAVO_MACOS_RUST=0 leaves it undefined, which saves minutes.
# OCTAVO_CACHE_DIR (default ~/.cache/octavo) keeps the compiler, the package and what was compiled.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."

readonly zig_version=0.17.0
readonly target=aarch64-macos.15.0
readonly rust_target=aarch64-apple-darwin
readonly system_headers=(CLI boost fmt nlohmann prometheus spdlog histedit.h sqlite3.h zmq.h zmq.hpp gtest gmock)

cache=${OCTAVO_CACHE_DIR:-$HOME/.cache/octavo}
mlx_version=$(cat cmake/mlx_version.txt)
python=.venv/bin/python
[ -x $python ] || python=python3
work=$PWD/build/macos
zig=$cache/zig-$zig_version/ziglang/zig
mlx=$cache/mlx-macos-$mlx_version

say() { printf 'cross_macos: %s\n' "$*"; }
. tools/unpack_wheel.sh

# tool NAME TEXT: an executable of that name.
tool() {
  printf '#!/usr/bin/env bash\n%s\n' "$2" >"$work/tools/$1"
  chmod +x "$work/tools/$1"
}

# The compiler under the names that CMake and cargo know, without what it takes from Apple's only: they ask for a system by
# --target, -arch and an SDK, zig by its own -target.
write_tools() {
  local name
  mkdir -p "$work/tools" "$work/include" "$work/lib"
  for name in cc c++; do
    tool $name "skip= arguments=()
for argument; do
  if [ -n \"\$skip\" ]; then skip=; continue; fi
  case \$argument in
    -arch | -isysroot) skip=1 ;;
    --target=* | -mmacosx-version-min=* | -mmacos-version-min=*) ;;
    *) arguments+=(\"\$argument\") ;;
  esac
done
exec '$zig' $name -target $target -fno-sanitize=undefined \"\${arguments[@]}\""
  done
  for name in ar ranlib; do tool $name "exec '$zig' $name \"\$@\""; done
  tool install_name_tool true
  tool sw_vers 'echo 15.0'  # CMake asks it what the system can do
  # The standard library of Rust asks for it when llguidance is linked as a library of its own, which nothing uses.
  printf '%s\n' '--- !tapi-tbd' 'tbd-version: 4' 'targets: [ arm64-macos ]' "install-name: '/usr/lib/libiconv.2.dylib'" ... \
    >"$work/lib/libiconv.tbd"
  for name in "${system_headers[@]}"; do ln -sfn "/usr/include/$name" "$work/include/$name"; done
}

rust_can() {
  [ "${OCTAVO_MACOS_RUST:-1}" = 1 ] || return 1
  command -v rustup >/dev/null || return 1
  rustup target list --installed | grep -qx "$rust_target" && return
  timeout 120 rustup target add "$rust_target" >/dev/null 2>&1
}

unpack_wheel "$cache/zig-$zig_version" "ziglang==$zig_version"
chmod +x "$zig"
unpack_wheel "$mlx" --platform macosx_15_0_arm64 --python-version 3.11 "mlx-metal==$mlx_version"
write_tools

export PATH="$PATH:$HOME/.cargo/bin:$work/tools"
export OCTAVO_MACOS_TOOLS=$work/tools OCTAVO_CROSS_HEADERS=$work/include
export ZIG_GLOBAL_CACHE_DIR=$cache/zig-cache ZIG_LOCAL_CACHE_DIR=$cache/zig-cache
export CCACHE_BASEDIR=$PWD CCACHE_NOHASHDIR=1 CCACHE_DEPEND=1  # as .ci/run
export CCACHE_SLOPPINESS=pch_defines,time_macros,include_file_mtime,include_file_ctime
export CCACHE_COMPILERTYPE=clang CCACHE_COMPILERCHECK=content  # the wrappers' text names zig's version
# For the C parts of the crates.
export CC_aarch64_apple_darwin=$work/tools/cc AR_aarch64_apple_darwin=$work/tools/ar SDKROOT=$work
export CARGO_TARGET_AARCH64_APPLE_DARWIN_LINKER=$work/tools/cc
export CARGO_TARGET_AARCH64_APPLE_DARWIN_RUSTFLAGS=-Lnative=$work/lib

rust=none
if rust_can; then rust=$rust_target; fi
cmake --preset macos-cross -DMLX_ROOT="$mlx/mlx" -DOCTAVO_RUST_TARGET=$rust
cmake --build --preset macos-cross
cp "$work/src/cli/octavo" "$work/octavo"
if [ $rust = none ]; then say "without the Rust library: its symbols are undefined"; fi
for program in octavo tests/octavo_metal_test; do
  "$python" tools/check_macho.py "$work/$program" "$mlx/mlx/lib/libmlx.dylib"
done

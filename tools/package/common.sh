# Shared by the packaging scripts, which run in the repository's root. make_stage creates build/stage with bin/octavo, lib/octavo,
# license notices, a bill of materials and a man page. The files are stripped and contain no paths of this machine.
#
# OCTAVO_PACKAGE_BUILD sets a build folder to use instead of build/package; it is not rebuilt.
set -euo pipefail
export PATH="$PATH:$HOME/.cargo/bin"

readonly package_build=${OCTAVO_PACKAGE_BUILD:-build/package}
readonly stage=build/stage
readonly dist=dist
version=$(sed -nE 's/^project\(octavo VERSION ([0-9.]+).*/\1/p' CMakeLists.txt)
readonly version

say() { printf 'package: %s\n' "$*"; }
fail() {
  printf 'package: %s\n' "$*" >&2
  exit 1
}

need() {
  local tool
  for tool in "$@"; do command -v "$tool" >/dev/null || fail "$tool not found; on Debian: apt-get install $tool"; done
}

build_package() {
  if [ -n "${OCTAVO_PACKAGE_BUILD:-}" ]; then return; fi
  local targets=(octavo)
  cmake --preset package >/dev/null
  if [ -d src/capi ]; then targets+=(octavo_shared); fi
  cmake --build --preset package --target "${targets[@]}"
}

# Makes packages reproducible: file times are the commit's time. Call it after compiling, because compiler caches miss if the
# locale changes.
fix_environment() {
  SOURCE_DATE_EPOCH=${SOURCE_DATE_EPOCH:-$(git log -1 --format=%ct)}
  export LC_ALL=C TZ=UTC SOURCE_DATE_EPOCH
}

# Replaces the symbolic links of Debian's libraries (soname -> versioned file) by the files themselves. Our own library keeps its
# links, because compilers need them.
resolve_links() {
  local link file
  for link in "$1"/lib*.so*; do
    case ${link##*/} in liboctavo.so*) continue ;; esac
    if [ -L "$link" ]; then
      file=$(readlink -f "$link")
      mv "$file" "$link"
    fi
  done
}

libraries() { find "$1" -name 'lib*.so*' -type f | sort; }

# Gives every library a unique name, as auditwheel does: the dynamic linker identifies libraries by name, and a Python process may
# already have loaded another libmlx. The libraries in MLX's wheel already have unique names.
rename_libraries() {
  local folder=$1 file name ending unique
  local renames=()
  for file in $(libraries "$folder"); do
    name=${file##*/}
    case $name in
      liboctavo.so* | *-[0-9a-f][0-9a-f][0-9a-f][0-9a-f][0-9a-f][0-9a-f][0-9a-f][0-9a-f].so*) continue ;;
    esac
    ending=${name#*.so}
    unique=${name%%.so*}-$(sha256sum "$file" | cut -c 1-8).so$ending
    mv "$file" "$folder/$unique"
    patchelf --set-soname "$unique" "$folder/$unique"
    renames+=(--replace-needed "$name" "$unique")
  done
  patchelf "${renames[@]}" "$stage/bin/octavo"
  for file in $(libraries "$folder"); do
    patchelf "${renames[@]}" "$file"
    patchelf --set-rpath "\$ORIGIN" "$file"  # separate call: patchelf 0.14 fails if both are set at once
  done
}

# Checks that no file searches for libraries in paths of this machine.
check_stage() {
  local file found
  for file in "$stage/bin/octavo" $(libraries "$stage/lib/octavo"); do
    found=$(patchelf --print-rpath "$file")
    case $found in "\$ORIGIN" | "\$ORIGIN/../lib/octavo") ;; *) fail "$file searches for libraries in $found" ;; esac
    found=$(ldd "$file" | grep 'not found' || true)
    [ -z "$found" ] || fail "$file: $found"
  done
}

# Prints the oldest glibc version that everything in the stage runs on, such as 2.35.
needed_glibc() {
  find "$stage/bin" "$stage/lib" -type f -exec objdump -T {} + 2>/dev/null | grep -oE 'GLIBC_[0-9.]+' | sort -Vu | tail -n 1 | cut -d _ -f 2
}

make_stage() {
  need patchelf objdump strip
  build_package
  fix_environment
  rm -rf "$stage"
  mkdir -p "$dist"
  cmake --install "$package_build" --prefix "$stage" >/dev/null
  resolve_links "$stage/lib/octavo"
  # Strip first: strip fails on files that patchelf has changed.
  find "$stage" -type f \( -name octavo -o -name '*.so*' \) -exec chmod 755 {} + -exec strip --strip-unneeded {} +
  rename_libraries "$stage/lib/octavo"
  check_stage
  mkdir -p "$stage/share/doc/octavo" "$stage/share/man/man1"
  cp LICENSE "$stage/share/doc/octavo/"
  .venv/bin/python tools/package/third_party.py "$stage/lib/octavo" >"$stage/share/doc/octavo/THIRD_PARTY"
  .venv/bin/python tools/package/sbom.py "$version" "$stage/lib/octavo" >"$stage/share/doc/octavo/sbom.cdx.json"
  .venv/bin/python tools/package/man_page.py "$stage/bin/octavo" >"$stage/share/man/man1/octavo.1"
  find "$stage" -type d -exec chmod 755 {} +
  find "$stage/share" "$stage/include" -type f -exec chmod 644 {} + 2>/dev/null || true
  say "octavo $version, needs glibc $(needed_glibc) or newer, $(du -sm "$stage" | cut -f 1) MB"
}

# tell FILE: prints its size and name.
tell() { say "$(stat -c %s "$1" | awk '{ printf "%.1f MB", $1 / 1e6 }')  $1"; }

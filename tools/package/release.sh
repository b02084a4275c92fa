#!/usr/bin/env bash
# Builds what a release consists of for this machine, from a clean work tree: the tarball, the wheel and the Debian package, each with its
# bill of materials and license notices, the bill of materials as a file of its own, and SHA256SUMS. Empties dist/ first.
#
#   tools/package/release.sh           compiles in a new build/package
#   tools/package/release.sh --twice   then once more without the compiler's cache and with the Rust crates compiled anew, and compares
#                                      all files byte for byte
#
# Both builds have the same path, because messages of failed checks contain the paths of sources. OCTAVO_MAINTAINER: see deb.sh.
cd "$(dirname "${BASH_SOURCE[0]}")/../.."
unset OCTAVO_PACKAGE_BUILD CARGO_PROFILE_RELEASE_LTO  # what .ci/run sets to save time
umask 022
. tools/package/common.sh

readonly first=build/release-first rust_again=build/rust-again

# The commit must say what is in the packages.
check_sources() {
  local changed tags
  need git
  changed=$(git status --porcelain)
  [ -z "$changed" ] || fail "the work tree differs from the commit; commit or remove these first:"$'\n'"$changed"
  tags=$(git tag --points-at HEAD)
  if [ -n "$tags" ]; then
    grep -qxF "v$version" <<<"$tags" || fail "the tag of this commit is $tags, but CMakeLists.txt has version $version"
  fi
  grep -qE "^## \[${version//./\\.}\] - [0-9]{4}-[0-9]{2}-[0-9]{2}$" CHANGELOG.md || fail "CHANGELOG.md has no dated section [$version]"
}

check_version() {
  local said expected
  said=$("$stage/bin/octavo" --version)
  expected="octavo $version (commit $(git rev-parse HEAD | cut -c 1-8), "
  case $said in "$expected"*) ;; *) fail "the program reports $said instead of $expected...)" ;; esac
}

build_all() {
  local kind name
  rm -rf build/package "$dist"
  for kind in tarball wheel deb; do "tools/package/$kind.sh"; done
  check_version
  name=octavo-$version-linux-$(uname -m)
  cp "$stage/share/doc/octavo/sbom.cdx.json" "$dist/$name.cdx.json"
  (cd "$dist" && sha256sum -- octavo* >SHA256SUMS)
}

build_again() {
  rm -rf "$first" "$rust_again"
  mv "$dist" "$first"
  CCACHE_RECACHE=1 CARGO_TARGET_DIR=$rust_again build_all
  rm -rf "$rust_again"
}

compare() {
  if ! diff "$first/SHA256SUMS" "$dist/SHA256SUMS"; then
    fail "two builds of one commit differ; the first is in $first, the second in $dist"
  fi
  say "two builds gave the same bytes"
}

twice=false
case "$*" in
  "") ;;
  --twice) twice=true ;;
  *) fail "usage: tools/package/release.sh [--twice]" ;;
esac
check_sources
build_all
if $twice; then
  build_again
  compare
fi
say "octavo $version, commit $(git rev-parse HEAD):"
cat "$dist/SHA256SUMS"

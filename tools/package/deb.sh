#!/usr/bin/env bash
# Builds dist/octavo_VERSION_ARCH.deb: /usr/bin/octavo, its libraries in /usr/lib/octavo, a man page and the octavo service, which is
# not started because it needs a model. OCTAVO_MAINTAINER sets the maintainer ("Name <address>"). The package contains its libraries, so
# that one file works on Debian 12 and later.
cd "$(dirname "${BASH_SOURCE[0]}")/../.."
. tools/package/common.sh

need dpkg-deb dpkg
arch=$(dpkg --print-architecture)
readonly arch
readonly tree=build/deb

fill_tree() {
  local doc=$tree/usr/share/doc/octavo
  mkdir -p "$tree/usr" "$tree/etc/octavo" "$tree/lib/systemd/system"
  cp -r "$stage"/. "$tree/usr"
  rm "$doc/LICENSE"
  install -m 644 tools/package/deb/copyright "$doc/"
  printf 'octavo (%s) unstable; urgency=medium\n\n  * See CHANGELOG.md in the source.\n\n -- %s  %s\n' \
    "$version" "$maintainer" "$(date -R --date="@$SOURCE_DATE_EPOCH")" | gzip -9n >"$doc/changelog.gz"
  gzip -9n "$tree/usr/share/man/man1/octavo.1"
  install -m 644 deploy/systemd/octavo.service "$tree/lib/systemd/system/"
  install -m 640 deploy/systemd/octavo.env "$tree/etc/octavo/"
  install -m 644 deploy/systemd/serve.toml "$tree/etc/octavo/"
  # Libraries need not be executable.
  chmod 644 "$tree"/usr/lib/octavo/*
  mkdir -p "$tree/usr/share/lintian/overrides"
  install -m 644 tools/package/deb/lintian-overrides "$tree/usr/share/lintian/overrides/octavo"
}

fill_control() {
  mkdir -p "$tree/DEBIAN"
  printf '/etc/octavo/octavo.env\n/etc/octavo/serve.toml\n' >"$tree/DEBIAN/conffiles"
  for script in postinst prerm postrm; do install -m 755 "tools/package/deb/$script" "$tree/DEBIAN/$script"; done
  (cd "$tree" && find usr lib -type f -print0 | sort -z | xargs -0 md5sum) >"$tree/DEBIAN/md5sums"
  cat >"$tree/DEBIAN/control" <<TEXT
Package: octavo
Version: $version
Architecture: $arch
Maintainer: $maintainer
Section: science
Priority: optional
Installed-Size: $(du -sk --apparent-size "$tree" | cut -f 1)
Depends: libc6 (>= $(needed_glibc)), libgcc-s1 (>= 12), libstdc++6 (>= 12)
Recommends: libzmq5
Description: native LLM server with a paged KV cache
 Octavo is a native LLM server with a paged KV cache, quantised weights and
 OpenAI- and Anthropic-compatible APIs, built on MLX. Output is bit-identical
 regardless of load.
 .
 Set a model in /etc/octavo/octavo.env before you start the octavo service.
TEXT
}

readonly maintainer=${OCTAVO_MAINTAINER:-Octavo developers <octavo@localhost>}
make_stage
rm -rf "$tree"
fill_tree
fill_control
find "$tree" -exec touch --no-dereference --date="@$SOURCE_DATE_EPOCH" {} +
dpkg-deb --root-owner-group -Zxz -z2 --build "$tree" "$dist/octavo_${version}_$arch.deb" >/dev/null
tell "$dist/octavo_${version}_$arch.deb"

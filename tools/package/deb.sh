#!/usr/bin/env bash
# dist/octavo_VERSION_ARCH.deb: /usr/bin/octavo, its libraries in /usr/lib/octavo, a man page and the service octavo (not started: it
# needs a model). OCTAVO_MAINTAINER ("Name <address>") says who publishes it. The libraries are those of the other packages, so that one file serves Debian 12 and what came after.
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
  # Only programs are executed; libraries need not be.
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
Description: server for language models on MLX
 Octavo serves language models from pages: a paged KV cache, quantised
 weights and OpenAI's and Anthropic's APIs in one native program. The same
 request has the same answer, bit for bit, whoever else is asking.
 .
 The service octavo starts once /etc/octavo/octavo.env names a model.
TEXT
}

readonly maintainer=${OCTAVO_MAINTAINER:-Octavo developers <octavo@localhost>}  # whoever publishes it
make_stage
rm -rf "$tree"
fill_tree
fill_control
find "$tree" -exec touch --no-dereference --date="@$SOURCE_DATE_EPOCH" {} +
dpkg-deb --root-owner-group -Zxz -z2 --build "$tree" "$dist/octavo_${version}_$arch.deb" >/dev/null
tell "$dist/octavo_${version}_$arch.deb"

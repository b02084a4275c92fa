#!/usr/bin/env bash
# Builds dist/octavo-VERSION-linux-x86_64.tar.gz, which runs from any folder.
# Uses gzip because a minimal Debian has no xz, and because it compresses in a third of the time.
cd "$(dirname "${BASH_SOURCE[0]}")/../.."
. tools/package/common.sh

make_stage
name=octavo-$version-linux-$(uname -m)
tar --create --sort=name --mtime="@$SOURCE_DATE_EPOCH" --owner=0 --group=0 --numeric-owner --format=gnu \
  --directory build --transform "s,^stage,$name," stage | gzip -9n >"$dist/$name.tar.gz"
tell "$dist/$name.tar.gz"

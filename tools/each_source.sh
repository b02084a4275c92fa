#!/usr/bin/env bash
# Compiles sources on their own, without unity builds, in build/each-source: the PART-th of PARTS equal parts. Goes on after a failure.
#
#   tools/each_source.sh PART PARTS
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."

[ $# = 2 ] || { echo "usage: tools/each_source.sh PART PARTS" >&2 && exit 2; }
folder=build/each-source
cmake --preset dev -B "$folder" >/dev/null
mapfile -t objects < <(ninja -C "$folder" -t targets all | sed -n 's/^\([^ ]*\.o\): .*/\1/p' | sort |
  awk -v part="$1" -v parts="$2" 'NR % parts == part % parts')
((${#objects[@]})) || { echo "tools/each_source.sh: the build has no objects" >&2 && exit 1; }
echo "compiling ${#objects[@]} sources ..."
ninja -C "$folder" -k 0 "${objects[@]}"

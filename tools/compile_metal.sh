#!/usr/bin/env bash
# Compiles every instance in src/kernels/metal/instances.txt with Apple's compiler, for the oldest language version that MLX
# requires (3.1, macOS 14) and for that of macOS 15 (3.2). Only this script needs a Mac with Xcode: MLX compiles at run time.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."

work=build/metal
python=.venv/bin/python
[ -x $python ] || python=python3
xcrun -sdk macosx --find metal >/dev/null || { echo "compile_metal: Metal compiler not found; install Xcode and run: xcodebuild -downloadComponent MetalToolchain" >&2 && exit 1; }
"$python" tools/metal_instances.py write "$work"

failed=0
for source in "$work"/*.metal; do
  for version in metal3.1 metal3.2; do
    # No fast math, as in MLX.
    if ! xcrun -sdk macosx metal -std=$version -fno-fast-math -Wall -Wno-unused-function -Werror -c "$source" -o "${source%.metal}.air"; then
      echo "compile_metal: $(basename "$source") is not valid $version" >&2
      failed=1
    fi
  done
done
exit $failed

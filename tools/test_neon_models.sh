#!/usr/bin/env bash
# Runs whole models with the NEON kernels under qemu and compares all logits with those of this machine's kernels, bit for bit
# (test_logits_on_arm64 in tests/e2e/test_instruction_sets.py). Needs x86-64 Linux and a build of the preset dev; installs the cross
# compiler and qemu from Debian.
# OCTAVO_CACHE_DIR (default ~/.cache/octavo) keeps the arm64 package of MLX.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."

python=.venv/bin/python
mlx_version=$(cat cmake/mlx_version.txt)
mlx=${OCTAVO_CACHE_DIR:-$HOME/.cache/octavo}/mlx-arm64-$mlx_version
work=$PWD/build/arm64

say() { printf 'test_neon_models: %s\n' "$*"; }
. tools/unpack_wheel.sh

missing=()
command -v aarch64-linux-gnu-g++ >/dev/null || missing+=(g++-aarch64-linux-gnu)
command -v qemu-aarch64-static >/dev/null || missing+=(qemu-user-static)
if ((${#missing[@]})); then apt-get install -y -q "${missing[@]}"; fi
unpack_wheel "$mlx" --platform manylinux_2_35_aarch64 --python-version 3.11 "mlx-cpu==$mlx_version"

mkdir -p "$work/include"
for name in CLI boost fmt nlohmann prometheus spdlog histedit.h sqlite3.h zmq.h zmq.hpp gtest gmock; do ln -sfn "/usr/include/$name" "$work/include/$name"; done
export OCTAVO_CROSS_HEADERS=$work/include
cmake --preset arm64-cross -DMLX_ROOT="$mlx/mlx"
cmake --build --preset arm64-cross

# Runs the program as on a Cortex-A76.
cat >"$work/dump_logits" <<SCRIPT
#!/usr/bin/env bash
exec qemu-aarch64-static -cpu cortex-a76 -L /usr/aarch64-linux-gnu -E LD_LIBRARY_PATH='$mlx/mlx/lib:$mlx/mlx_cpu.libs' '$work/tests/dump_logits'
SCRIPT
chmod +x "$work/dump_logits"
OCTAVO_ARM64_LOGITS=$work/dump_logits "$python" -m pytest -q -k arm64 tests/e2e/test_instruction_sets.py

#!/usr/bin/env bash
# Runs the NEON kernels under qemu and compares their results with AVX2's, bit for bit. Both have a fused multiply-add, so
# every result must be identical. Needs x86-64 Linux; installs the cross compiler and qemu from Debian.
set -euo pipefail
cd "$(dirname "$0")/.."

need() { command -v "$1" >/dev/null || missing+=("$2"); }
missing=()
need aarch64-linux-gnu-g++ g++-aarch64-linux-gnu
need qemu-aarch64-static qemu-user-static
if ((${#missing[@]})); then apt-get install -y -q "${missing[@]}"; fi

work=build/neon
mkdir -p "$work"
sources=(tests/cross/kernel_hashes.cpp src/base/{cgroup,compute_pool,error,dtype}.cpp
  src/kernels/types/{token_mask,weight_format}.cpp src/kernels/weights/{format_codes,gguf_blocks,packed_weight}.cpp
  src/kernels/cpu/{linear,scratch,convert,page_layout,paged_attention,qkv_write,token_rows}.cpp
  src/kernels/cpu/{head_linear,latent_write}.cpp
  src/kernels/cpu/{expert_mlp,expert_routing,expert_rows,strip_claims}.cpp
  src/kernels/cpu/{causal_conv,gated_delta,state_batch}.cpp
  src/kernels/cpu/{cut,logit_rules,sampling,logprobs}.cpp)
flags=(-std=c++20 -O2 -ffp-contract=off -fno-math-errno -fno-trapping-math -Isrc -pthread
  -DFMT_HEADER_ONLY)
# fmt's headers are portable; the rest of /usr/include is not.
mkdir -p "$work/include" && ln -sfn /usr/include/fmt "$work/include/fmt"

build() { # compiler output set extra-flags...
  local compiler=$1 out=$2 set=$3
  shift 3
  local objects=() source object
  for source in "${sources[@]}" src/kernels/cpu/isa.cpp; do
    object="$work/$out.$(basename "$source").o"
    "$compiler" "${flags[@]}" -I"$work/include" -D"OCTAVO_WITH_${set^^}" -c "$source" -o "$object"
    objects+=("$object")
  done
  for source in src/kernels/cpu/simd/*.cpp; do
    object="$work/$out.$set.$(basename "$source").o"
    "$compiler" "${flags[@]}" -O3 -D"OCTAVO_SIMD_NAMESPACE=$set" -D"OCTAVO_SIMD_${set^^}" "$@" -c "$source" -o "$object"
    objects+=("$object")
  done
  "$compiler" "${objects[@]}" -static -pthread -o "$work/$out"
}

echo "building for arm64 ..."
build aarch64-linux-gnu-g++ kernels-arm64 neon
echo "building for x86-64 ..."
build g++ kernels-x86 avx2 -mavx2 -mfma -mf16c

echo "running ..."
OCTAVO_THREADS=1 qemu-aarch64-static "$work/kernels-arm64" >"$work/neon.txt"
OCTAVO_THREADS=1 OCTAVO_ISA=avx2 "$work/kernels-x86" >"$work/avx2.txt"
if diff "$work/avx2.txt" "$work/neon.txt"; then
  echo "neon: $(wc -l <"$work/neon.txt") results, all identical to AVX2's"
else
  echo "neon: results differ from AVX2's" >&2
  exit 1
fi

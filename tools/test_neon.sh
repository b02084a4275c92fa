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
sources=(tests/cross/kernel_hashes.cpp src/base/{compute_pool,error,dtype}.cpp
  src/kernels/{packed_weight,weight_format,gguf_blocks}.cpp
  src/kernels/cpu/{isa,linear,scratch,convert,page_layout,paged_attention,qkv_write,token_rows}.cpp
  src/kernels/cpu/{head_linear,latent_write}.cpp
  src/kernels/cpu/{expert_mlp,expert_routing,expert_rows,strip_claims}.cpp
  src/kernels/cpu/{causal_conv,gated_delta,state_batch}.cpp
  src/kernels/cpu/{cut,logit_rules,sample,logprobs}.cpp
  src/kernels/cpu/simd/isa_scalar.cpp)
flags=(-std=c++20 -O2 -ffp-contract=off -fno-math-errno -fno-trapping-math -Isrc -pthread
  -DFMT_HEADER_ONLY)
# fmt's headers are portable; the rest of /usr/include is not.
mkdir -p "$work/include" && ln -sfn /usr/include/fmt "$work/include/fmt"

build() { # compiler output extra...
  local compiler=$1 out=$2
  shift 2
  local objects=() source object
  for source in "${sources[@]}" "$@"; do
    object="$work/$out.$(basename "$source").o"
    case $source in
      *isa_avx2*) "$compiler" "${flags[@]}" -O3 -mavx2 -mfma -mf16c -c "$source" -o "$object" ;;
      *isa_avx512*|*isa_amx*) "$compiler" "${flags[@]}" -O3 -w -mavx512f -mavx512bw -mavx512vl -mavx512dq -mavx2 -mfma -mf16c \
        -mavx512bf16 -mamx-tile -mamx-bf16 -c "$source" -o "$object" ;;
      *) "$compiler" "${flags[@]}" -I"$work/include" -c "$source" -o "$object" ;;
    esac
    objects+=("$object")
  done
  "$compiler" "${objects[@]}" -static -pthread -o "$work/$out"
}

simd=src/kernels/cpu/simd
echo "building for arm64 ..."
build aarch64-linux-gnu-g++ kernels-arm64 $simd/isa_neon.cpp
echo "building for x86-64 ..."
build g++ kernels-x86 $simd/isa_{avx2,avx512,avx512bf16,amx}.cpp

echo "running ..."
OCTAVO_THREADS=1 qemu-aarch64-static "$work/kernels-arm64" >"$work/neon.txt"
OCTAVO_THREADS=1 OCTAVO_ISA=avx2 "$work/kernels-x86" >"$work/avx2.txt"
if diff "$work/avx2.txt" "$work/neon.txt"; then
  echo "neon: $(wc -l <"$work/neon.txt") results, all identical to AVX2's"
else
  echo "neon: results differ from AVX2's" >&2
  exit 1
fi

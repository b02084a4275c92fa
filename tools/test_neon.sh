#!/usr/bin/env bash
# Runs the NEON kernels under qemu, with and without the dot product instructions of ARMv8.2, and compares their results with
# AVX2's, bit for bit. Products must also equal the scalar set's. Products with quantised and bfloat16 weights and bfloat16 attention
# must equal plain references (OCTAVO_SLOW_TESTS=1: 10,000 random cases of the last two instead of 300). Needs x86-64 Linux;
# installs the cross compiler and qemu from Debian.
set -euo pipefail
cd "$(dirname "$0")/.."

need() { command -v "$1" >/dev/null || missing+=("$2"); }
missing=()
need aarch64-linux-gnu-g++ g++-aarch64-linux-gnu
need qemu-aarch64-static qemu-user-static
if ((${#missing[@]})); then apt-get install -y -q "${missing[@]}"; fi

work=build/neon
sources=(tests/cross/{kernel_hashes,product_hashes,dense_hashes,lora_hashes,attention_check}.cpp src/base/{cgroup,compute_pool,process_pool,error,dtype}.cpp
  src/base/topology/{bind_thread,cpu_list,sysfs_topology,thread_binding,thread_plan}.cpp
  src/kernels/types/{logit_bans,token_mask,weight_format}.cpp src/kernels/weights/{code_table,format_codes,gguf_blocks,iq_blocks,iq_grids,pack_scales,packed_weight}.cpp
  src/kernels/{lora_plan,lora_shape}.cpp src/kernels/cpu/{linear,lora,scratch,convert,page_layout,paged_attention,qkv_write,token_rows}.cpp
  src/kernels/cpu/{head_linear,latent_write}.cpp
  src/kernels/cpu/{expert_lora,expert_mlp,expert_routing,expert_rows,strip_claims}.cpp
  src/kernels/cpu/{causal_conv,gated_delta,state_batch}.cpp
  src/kernels/cpu/{cut,isa,logit_rules,sampling,logprobs}.cpp)
flags=(-std=c++20 -O2 -ffp-contract=off -fno-math-errno -fno-trapping-math -Isrc -I"$work/include" -pthread
  -DFMT_HEADER_ONLY)
# fmt's headers are portable; the rest of /usr/include is not.
mkdir -p "$work/include" && ln -sfn /usr/include/fmt "$work/include/fmt"

command -v ccache >/dev/null && launcher=(ccache) || launcher=()
compile() { # folder compiler flags... -- sources...
  local folder=$work/$1 compiler=$2 extra=() source
  shift 2
  while [ "$1" != -- ]; do extra+=("$1") && shift; done
  shift
  rm -rf "$folder" && mkdir -p "$folder"
  for source in "$@"; do
    "${launcher[@]}" "$compiler" "${flags[@]}" "${extra[@]}" -c "$source" -o "$folder/$(basename "$source").o"
  done
}
compile_set() { # folder compiler set flags...
  compile "$1" "$2" -O3 "-DOCTAVO_SIMD_NAMESPACE=$3" "-DOCTAVO_SIMD_${3^^}" "${@:4}" -- src/kernels/cpu/simd/*.cpp
}
link_program() { # program compiler folders...
  local objects=() folder
  for folder in "${@:3}"; do objects+=("$work/$folder"/*.o); done
  "$2" "${objects[@]}" -static -pthread -o "$work/$1"
}

readonly arm=aarch64-linux-gnu-g++
echo "building for arm64 ..."
compile arm64 $arm -DOCTAVO_WITH_NEON -- "${sources[@]}"
compile_set neon $arm neon -march=armv8-a
compile_set dotprod $arm neon -march=armv8.2-a+dotprod
link_program kernels-neon $arm arm64 neon
link_program kernels-dotprod $arm arm64 dotprod
echo "building for x86-64 ..."
compile x86 g++ -DOCTAVO_WITH_SCALAR -DOCTAVO_WITH_AVX2 -- "${sources[@]}"
compile_set scalar g++ scalar
compile_set avx2 g++ avx2 -mavx2 -mfma -mf16c
link_program kernels-x86 g++ x86 scalar avx2

failed=0
run() { # name command...
  echo "running $1 ..."
  OCTAVO_THREADS=1 "${@:2}" >"$work/$1.txt" || { echo "$1: differs from the reference" >&2 && failed=1; }
}
same() { # expected actual which-lines
  if diff <(grep "$3" "$work/$1.txt") <(grep "$3" "$work/$2.txt"); then
    echo "$2: $(grep -c "$3" "$work/$2.txt") results, all identical to those of $1"
  else
    echo "$2: results differ from those of $1" >&2
    failed=1
  fi
}
run avx2 env OCTAVO_ISA=avx2 "$work/kernels-x86"
run scalar env OCTAVO_ISA=scalar "$work/kernels-x86"
# A Cortex-A53 has no dot product instructions, and a Cortex-A76 has.
run neon qemu-aarch64-static -cpu cortex-a53 "$work/kernels-neon"
run dotprod qemu-aarch64-static -cpu cortex-a76 "$work/kernels-dotprod"
count_dots() { aarch64-linux-gnu-objdump -d "$work/$1/linear.cpp.o" | grep -c '\bsdot\b' || true; }
if [ "$(count_dots neon)" -ne 0 ] || [ "$(count_dots dotprod)" -eq 0 ]; then
  echo "dotprod: the kernels do not use the dot product instructions" >&2
  failed=1
fi
same avx2 scalar ' \(quantised\|dense\|lora\|gated\) '
same avx2 neon .
same avx2 dotprod .
exit $failed

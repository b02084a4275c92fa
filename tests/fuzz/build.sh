#!/usr/bin/env bash
# Builds a libFuzzer program of a parser into build/fuzz: tests/fuzz/build.sh gguf|safetensors. Needs clang (CLANG, default clang++-19).
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/../.."

case "${1:-}" in
  gguf) parts=(gguf gguf_metadata tensor_type printable) ;;
  safetensors) parts=(safetensors safetensors_header json_events tensor_type printable) ;;
  *) echo "usage: tests/fuzz/build.sh gguf|safetensors" >&2 && exit 2 ;;
esac
mkdir -p build/fuzz
sources=("tests/fuzz/fuzz_$1.cpp" src/base/error.cpp)
for part in "${parts[@]}"; do sources+=("src/models/format/$part.cpp"); done
"${CLANG:-clang++-19}" -std=c++20 -O1 -g -fsanitize=fuzzer,address,undefined -fno-sanitize-recover=all -Isrc "${sources[@]}" \
  -lfmt -o "build/fuzz/fuzz_$1"

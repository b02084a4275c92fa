#!/usr/bin/env bash
# Runs a program of the preset fuzz: tests/fuzz/run.sh NAME EXECUTIONS SEED. The corpus is build/battery/corpus_NAME; an input that
# crashes, takes 10 s or too much memory ends the run and is saved as build/battery/NAME-*.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/../.."

[ $# = 3 ] || { echo "usage: tests/fuzz/run.sh NAME EXECUTIONS SEED" >&2 && exit 2; }
name=$1
malloc_mb=256  # one allocation
case "$name" in
  safetensors | gguf) longest=65536 ;;
  config | tokenizer | body) longest=16384 ;;
  template | http | dialects) longest=4096 ;;
  control) longest=4096 malloc_mb=8 ;;
  *) echo "tests/fuzz/run.sh: there is no program fuzz_$name" >&2 && exit 2 ;;
esac

seeds=build/battery/seeds_$name
mkdir -p "build/battery/corpus_$name"
.venv/bin/python tests/fuzz/make_seeds.py "$name" "$seeds"
exec "build/fuzz/tests/fuzz/fuzz_$name" -runs="$2" -seed="$3" -max_len="$longest" -timeout=10 -rss_limit_mb=2048 \
  -malloc_limit_mb="$malloc_mb" -dict="$seeds/dictionary" -artifact_prefix="build/battery/$name-" -print_final_stats=1 \
  "build/battery/corpus_$name" "$seeds/inputs"

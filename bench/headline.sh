#!/usr/bin/env bash
# Runs the two serving benchmarks that vllm-metal publishes, on whatever device is there, and prints their tables.
#
#   bench/headline.sh                    both; downloads models that are missing
#   bench/headline.sh mix|hybrid         only this one
#
# mix: 100 requests, 10 per second, at most 32 at once. hybrid: 10 requests of 128 prompt and 64 output tokens, three times.
# The server is started anew for each benchmark. Exits with status 1 if a benchmark fails.
#
# Settings are variables:
#   OCTAVO         the program (default: that of build/release, or the one in PATH)
#   MIX_MODEL      default: Qwen/Qwen3-0.6B         HYBRID_MODEL   default: Qwen/Qwen3.5-0.8B
#   SHAREGPT       ShareGPT_V3_unfiltered_cleaned_split.json; without it, random prompts with the lengths of headline_mix.json
#   MIX_REQUESTS   default: 100                     SERVE_FLAGS, BENCH_FLAGS   more flags for octavo serve and octavo bench serve
#   JSON_FOLDER    write the figures to mix.json and hybrid-1.json to hybrid-3.json here instead of printing tables
set -uo pipefail
here=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)

octavo=${OCTAVO:-$here/../build/release/src/cli/octavo}
[ -x "$octavo" ] || octavo=$(command -v octavo) || { echo "headline: no octavo program; build it or set OCTAVO" >&2 && exit 1; }
work=$(mktemp -d)
server=
stop_server() { [ -z "$server" ] || { kill "$server" 2>/dev/null && wait "$server" 2>/dev/null; }; server=; }
trap 'stop_server; rm -rf "$work"' EXIT

# start_server MODEL: waits until it listens and sets `url`; fails if the server exits.
start_server() {
  # shellcheck disable=SC2086  # a list
  "$octavo" serve "$1" --max-model-len 2048 --port 0 ${SERVE_FLAGS:-} >"$work/log" 2>&1 &
  server=$!
  url=
  while [ -z "$url" ]; do
    kill -0 "$server" 2>/dev/null || { tail -n 5 "$work/log" >&2 && server= && return 1; }
    sleep 0.2
    url=$(sed -n 's/.*listening *\(http:[^ ]*\).*/\1/p' "$work/log" | head -n 1)
  done
}

# measure NAME MODEL FLAGS...
measure() {
  local name=$1 model=$2
  shift 2
  # shellcheck disable=SC2086  # a list
  set -- bench serve --backend vllm --base-url "$url" --endpoint /v1/completions "$@" ${BENCH_FLAGS:-}
  echo "headline: $name: $model"
  if [ -n "${JSON_FOLDER:-}" ]; then
    "$octavo" "$@" --json >"$JSON_FOLDER/$name.json"
  else
    "$octavo" "$@"
  fi
}

mix() {
  local model=${MIX_MODEL:-Qwen/Qwen3-0.6B}
  local dataset=(--dataset-name lengths --dataset-path "$here/headline_mix.json")
  if [ -n "${SHAREGPT:-}" ]; then dataset=(--dataset-name sharegpt --dataset-path "$SHAREGPT"); fi
  start_server "$model" || return 1
  measure mix "$model" "${dataset[@]}" --num-prompts "${MIX_REQUESTS:-100}" --request-rate 10 --max-concurrency 32
}

hybrid() {
  local model=${HYBRID_MODEL:-Qwen/Qwen3.5-0.8B}
  start_server "$model" || return 1
  for round in 1 2 3; do
    # A seed of its own, so that no prompt is in the prefix cache.
    measure "hybrid-$round" "$model" --num-prompts 10 --random-input-len 128 --random-output-len 64 --seed "$round" || return 1
  done
}

case "${1:-}" in
  -h | --help) sed -n '2,16s/^# \{0,1\}//p' "$0" && exit ;;
  "") chosen=(mix hybrid) ;;
  mix | hybrid) chosen=("$1") ;;
  *) echo "headline: unknown benchmark $1; use mix or hybrid" >&2 && exit 2 ;;
esac
failed=0
for name in "${chosen[@]}"; do
  if [ "$name" = mix ]; then mix; else hybrid; fi || { echo "headline: $name failed" >&2 && failed=1; }
  stop_server
done
exit $failed

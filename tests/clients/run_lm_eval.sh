#!/usr/bin/env bash
# Runs lm-eval through /v1/completions (echo and logprobs) on an idle and on a loaded server: scores and every item's log
# likelihoods must be identical. Usage: run_lm_eval.sh URL. The server must run the tests' SmolLM2 without an API key. Run
# setup.sh first.
set -euo pipefail
url=${1:?usage: run_lm_eval.sh URL}
cd "$(dirname "${BASH_SOURCE[0]}")/../.."
octavo=${OCTAVO:-build/release/src/cli/octavo}
work=build/clients-lm-eval
rm -rf "$work" && mkdir -p "$work"
.venv/bin/python tests/clients/hf_tokenizer.py "$work/tokenizer"
model=$(curl -fsS "$url/v1/models" | .venv/bin/python -c 'import json,sys; print(json.load(sys.stdin)["data"][0]["id"])')
export HF_HUB_OFFLINE=1 HF_DATASETS_CACHE="$work/datasets"

evaluate() {
  build/clients-venv/bin/lm_eval run --model local-completions --tasks octavo_facts \
    --include_path tests/clients/lm_eval_task --log_samples --output_path "$work/$1" --batch_size "$2" \
    --model_args "model=$model,base_url=$url/v1/completions,tokenizer=$work/tokenizer,num_concurrent=$3,tokenized_requests=$4,max_length=2048" \
    >"$work/$1.log" 2>&1 || { tail -n 30 "$work/$1.log" >&2 && return 1; }
}

# Sends requests of other lengths until the file is removed.
load() {
  while [ -e "$work/loading" ]; do
    "$octavo" bench serve --base-url "$url" --num-prompts 24 --random-input-len 200 --random-output-len 40 --max-concurrency 8 >"$work/load.log" 2>&1
  done
}

drawn() { curl -fsS "$url/metrics" | awk '/^vllm:generation_tokens_total/ { printf "%d", $2 }'; }

evaluate idle 1 1 True
touch "$work/loading"
load &
trap 'rm -f "$work/loading" && wait' EXIT
sleep 2
before=$(drawn)
evaluate loaded 4 4 True
evaluate loaded_text 1 8 False
beside=$(($(drawn) - before))
echo "the server generated $beside tokens for other requests during the evaluation"
[ "$beside" -gt 1500 ] || { echo "the load was too low" >&2 && exit 1; }
.venv/bin/python tests/clients/same_scores.py "$work/idle" "$work/loaded" "$work/loaded_text"

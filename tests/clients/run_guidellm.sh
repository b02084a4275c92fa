#!/usr/bin/env bash
# Runs guidellm against a running server: run_guidellm.sh URL [requests] [concurrency] [prompt tokens] [output tokens]
# Needs build/clients-venv (tests/clients/setup.sh). The model must be the tests' SmolLM2, because its tokenizer makes the prompts.
set -euo pipefail
url=${1:?usage: run_guidellm.sh URL}
requests=${2:-20} streams=${3:-4} prompt=${4:-64} output=${5:-32}
cd "$(dirname "${BASH_SOURCE[0]}")/../.."
work=build/clients-guidellm
mkdir -p "$work"
.venv/bin/python tests/clients/hf_tokenizer.py "$work/tokenizer"
export HF_HUB_OFFLINE=1
model=$(curl -fsS "$url/v1/models" | .venv/bin/python -c 'import json,sys; print(json.load(sys.stdin)["data"][0]["id"])')
build/clients-venv/bin/guidellm run --disable-progress \
  --backend "kind=openai_http,target=$url,model=$model" \
  --tokenizer "kind=huggingface_auto,model=$work/tokenizer" \
  --data "kind=synthetic_text,prompt_tokens=$prompt,output_tokens=$output" \
  --profile "kind=concurrent,streams=$streams" \
  --constraint "kind=max_requests,count=$requests" \
  --constraint "kind=max_errors,count=1" \
  --output kind=console --output "kind=json,path=$work/report.json"

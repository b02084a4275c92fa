#!/usr/bin/env bash
# Runs OpenAI's and Ollama's clients for Node against a running server: run_node.sh URL   (set OCTAVO_API_KEY if the server requires a key)
set -euo pipefail
url=${1:?usage: run_node.sh URL}
here=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)
work=$here/../../build/clients-node
mkdir -p "$work"
cp "$here"/node/package.json "$here"/node/smoke.mjs "$here"/node/ollama.mjs "$work"
npm install --prefix "$work" --no-audit --no-fund --silent
node "$work/smoke.mjs" "$url"
node "$work/ollama.mjs" "$url"

#!/usr/bin/env bash
# Starts a server with a tiny random model and runs Schemathesis against it: valid and invalid requests generated from
# /openapi.json, including NUL bytes. No response may be a 5xx, and each must match the document. Run setup.sh first.
# Usage: run_schemathesis.sh [examples per operation]. OCTAVO sets the program, PORT the server's port.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/../.."
octavo=${OCTAVO:-build/release/src/cli/octavo} port=${PORT:-8765} work=$PWD/build/clients-schemathesis
st=$PWD/build/clients-venv/bin/st
mkdir -p "$work"
[ -d "$work/tiny" ] || .venv/bin/python tools/make_model.py "$work/tiny"
OCTAVO_API_KEY=schema "$octavo" serve "$work/tiny" --port "$port" --max-model-len 256 >"$work/server.log" 2>&1 &
server=$!
trap 'kill $server' EXIT
for _ in $(seq 100); do
  if curl -fsS "http://127.0.0.1:$port/readyz" >/dev/null 2>&1; then break; fi
  sleep 0.2
done
# Without positive_data_acceptance: a length or a token id may be valid by the document but too large for the model.
checks=not_a_server_error,status_code_conformance,content_type_conformance,response_headers_conformance
checks+=,response_schema_conformance,negative_data_rejection,unsupported_method,ignored_auth
cd "$work"  # Schemathesis creates a folder in the current directory
"$st" run "http://127.0.0.1:$port/openapi.json" -H "Authorization: Bearer schema" \
  --checks "$checks" --mode all --max-examples "${1:-150}" --phases examples,coverage,fuzzing --continue-on-failure \
  --seed 1 --suppress-health-check all --generation-allow-x00 true --request-timeout 60 --no-color
kill -0 $server  # the server must still be running

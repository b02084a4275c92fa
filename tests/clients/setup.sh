#!/usr/bin/env bash
# Creates build/clients-venv with the clients that are too large for .venv: Schemathesis, guidellm, lm-eval.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/../.."
[ -x build/clients-venv/bin/python ] || python3 -m venv build/clients-venv
build/clients-venv/bin/python -m pip install --quiet -r tests/clients/requirements.txt

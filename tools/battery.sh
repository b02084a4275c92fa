#!/usr/bin/env bash
# Long test runs that are too slow for .ci/run: tools/battery.sh --help. The parts are in tools/batterykit/parts.toml.
cd "$(dirname "${BASH_SOURCE[0]}")/.." || exit
PYTHONPATH="$PWD/tools${PYTHONPATH:+:$PYTHONPATH}" exec .venv/bin/python -m batterykit "$@"

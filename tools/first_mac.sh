#!/usr/bin/env bash
# Checks and measures Octavo on a Mac with one command, and writes a report to paste into an issue.
#
#   tools/first_mac.sh                  all steps; about an hour, most of it downloads and the build
#   tools/first_mac.sh --list           the steps
#   tools/first_mac.sh --only bits,needle
#   tools/first_mac.sh --simulated      on Linux, in the Metal simulator with tiny models: tests this script itself
#
# Run it in a clone, which it builds first, or in the unpacked tarball. After an interruption, run it again: steps that passed are
# not repeated. --help lists the other flags. docs/macos.md describes the steps.
set -euo pipefail
here=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)
python=$here/../.venv/bin/python
[ -x "$python" ] || python=$(command -v python3) || { echo "first_mac: python3 not found; run: xcode-select --install" >&2 && exit 1; }
exec "$python" "$here/first_mac.py" "$@"

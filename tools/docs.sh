#!/usr/bin/env bash
# Builds the documentation site into build/site. Broken links and pages that are not in the navigation are errors. (--quiet would
# hide warnings from --strict.) With --serve, serves the site on http://127.0.0.1:8001 and rebuilds it on changes.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."
export NO_MKDOCS_2_WARNING=1 DISABLE_MKDOCS_2_WARNING=true
case "${1:-}" in
  "") exec .venv/bin/python -m mkdocs build --strict --site-dir build/site ;;
  --serve) exec .venv/bin/python -m mkdocs serve --strict --dev-addr 127.0.0.1:8001 ;;
  *) echo "usage: tools/docs.sh [--serve]" >&2 && exit 2 ;;
esac

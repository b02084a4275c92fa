#!/usr/bin/env bash
# dist/octavo-VERSION-py3-none-manylinux_X_Y_x86_64.whl: the command `octavo` and, where they are built, the Python package and its library.
# The platform's name says which C library it needs; it is read from the files.
cd "$(dirname "${BASH_SOURCE[0]}")/../.."
. tools/package/common.sh

readonly tree=build/wheel

# The binary and its libraries stand inside the package: pip puts scripts where they could not find them.
fill_package() {
  mkdir -p "$tree/octavo/bin" "$tree/octavo-$version.data/scripts"
  if [ -d python/octavo ]; then
    (cd python && find octavo -type f \( -name '*.py' -o -name '*.pyi' -o -name py.typed \) -exec cp --parents {} "../$tree" \;)
  else
    printf '"""The octavo command."""\n\n__version__ = "%s"\n' "$version" >"$tree/octavo/__init__.py"
  fi
  cp "$stage/bin/octavo" "$tree/octavo/bin/"
  # A wheel has no links: our own library goes by its plain name only, by which Python loads it.
  cp -r "$stage/lib/octavo" "$tree/octavo/lib"
  rm -f "$tree"/octavo/lib/liboctavo.so*
  if [ -e "$stage/lib/octavo/liboctavo.so" ]; then cp -L "$stage/lib/octavo/liboctavo.so" "$tree/octavo/lib/"; fi
  patchelf --set-rpath "\$ORIGIN/../lib" "$tree/octavo/bin/octavo"
  install -m 755 tools/package/wheel_command.py "$tree/octavo-$version.data/scripts/octavo"
}

fill_metadata() {
  local info=$tree/octavo-$version.dist-info platform=$1
  mkdir -p "$info/licenses"
  cp "$stage/share/doc/octavo"/* "$info/licenses/"
  cat >"$info/METADATA" <<TEXT
Metadata-Version: 2.4
Name: octavo
Version: $version
Summary: Serves language models from pages: one native binary on MLX, OpenAI's and Anthropic's APIs
License-Expression: Apache-2.0
License-File: LICENSE
License-File: THIRD_PARTY
Requires-Python: >=3.9
Description-Content-Type: text/markdown

$(cat tools/package/wheel_readme.md)
TEXT
  cat >"$info/WHEEL" <<TEXT
Wheel-Version: 1.0
Generator: octavo tools/package/wheel.sh
Root-Is-Purelib: false
Tag: py3-none-$platform
TEXT
}

make_stage
rm -rf "$tree"
fill_package
fill_metadata "manylinux_$(needed_glibc | tr . _)_$(uname -m)"
find "$tree" -exec touch --date="@$SOURCE_DATE_EPOCH" {} +
rm -f "$dist/octavo-$version"-*.whl
.venv/bin/python -m wheel pack "$tree" --dest-dir "$dist" >/dev/null
for file in "$dist/octavo-$version"-*.whl; do tell "$file"; done

#!/usr/bin/env bash
# Builds dist/octavo-VERSION-py3-none-manylinux_X_Y_x86_64.whl: the `octavo` command and, if built, the Python package and its library.
# X_Y is the glibc version that the files need.
cd "$(dirname "${BASH_SOURCE[0]}")/../.."
. tools/package/common.sh

readonly tree=build/wheel

# The binary is inside the package, because it would not find its libraries from pip's scripts folder.
fill_package() {
  mkdir -p "$tree/octavo/bin" "$tree/octavo-$version.data/scripts"
  if [ -d python/octavo ]; then
    (cd python && find octavo -type f \( -name '*.py' -o -name '*.pyi' -o -name py.typed \) -exec cp --parents {} "../$tree" \;)
  else
    printf '"""The octavo command."""\n\n__version__ = "%s"\n' "$version" >"$tree/octavo/__init__.py"
  fi
  cp "$stage/bin/octavo" "$tree/octavo/bin/"
  # A wheel cannot contain links, so our own library has only the plain name, which Python loads.
  cp -r "$stage/lib/octavo" "$tree/octavo/lib"
  rm -f "$tree"/octavo/lib/liboctavo.so*
  if [ -e "$stage/lib/octavo/liboctavo.so" ]; then cp -L "$stage/lib/octavo/liboctavo.so" "$tree/octavo/lib/"; fi
  patchelf --set-rpath "\$ORIGIN/../lib" "$tree/octavo/bin/octavo"
  install -m 755 tools/package/wheel_command.py "$tree/octavo-$version.data/scripts/octavo"
}

fill_metadata() {
  local info=$tree/octavo-$version.dist-info platform=$1
  mkdir -p "$info/licenses" "$info/sboms"
  cp "$stage/share/doc/octavo"/{LICENSE,THIRD_PARTY} "$info/licenses/"
  cp "$stage/share/doc/octavo/sbom.cdx.json" "$info/sboms/"
  cat >"$info/METADATA" <<TEXT
Metadata-Version: 2.4
Name: octavo
Version: $version
Summary: Native LLM server with a paged KV cache and OpenAI- and Anthropic-compatible APIs, built on MLX
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

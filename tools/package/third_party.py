#!/usr/bin/env python3
"""Prints the license notices of the third-party code in Octavo's packages: crates, C++ libraries, MLX and its dependencies, the playground's
JavaScript.

usage: third_party.py LIBRARIES   (folder of the shipped libraries; a library without a known notice is an error)"""

import hashlib
import json
import re
import subprocess
import sys
from pathlib import Path

REPO = Path(__file__).parents[2]
RULE = "=" * 78
DEBIAN_DOCS = Path("/usr/share/doc")
# Library: the Debian package with its copyright file.
SHIPPED = {"libfmt": "libfmt9", "libspdlog": "libspdlog1.10", "libprometheus-cpp-core": "libprometheus-cpp-core1.0",
           "libedit": "libedit2", "libbsd": "libbsd0", "libmd": "libmd0", "libtinfo": "libtinfo6", "libsqlite3": "libsqlite3-0",
           "libgfortran": "gcc-12-base", "libquadmath": "gcc-12-base"}
COMPILED_IN = {"CLI11": "libcli11-dev", "JSON for Modern C++": "nlohmann-json3-dev", "SQLite": "libsqlite3-dev",
               "cppzmq": "cppzmq-dev"}
# JavaScript in the playground: the folder with its license.
IN_PAGE = {"marked": "marked", "highlight.js": "highlight"}
LICENSE_NAME = re.compile(r"(LICEN[CS]E|COPYING|NOTICE|UNLICENSE)", re.IGNORECASE)


def linked_crates() -> tuple[list[dict], dict[str, list[str]]]:
    """Returns cargo's description of every crate that is linked on this platform, by name and version, and for each package id, that
    of Octavo's Rust part included, the ids that it depends on."""
    host = re.search(r"host: (\S+)", subprocess.check_output(["rustc", "-vV"], text=True))[1]
    facts = json.loads(subprocess.check_output(
        ["cargo", "metadata", "--format-version=1", "--locked", f"--filter-platform={host}",
         f"--manifest-path={REPO / 'rust' / 'Cargo.toml'}"]))
    packages = {package["id"]: package for package in facts["packages"]}
    nodes = {node["id"]: node for node in facts["resolve"]["nodes"]}
    root = facts["resolve"]["root"]
    needs: dict[str, list[str]] = {}
    waiting = [root]
    while waiting:
        node = waiting.pop()
        if node in needs:
            continue
        needs[node] = [dep["pkg"] for dep in nodes[node]["deps"] if any(kind["kind"] is None for kind in dep["dep_kinds"])]
        waiting += needs[node]
    found = [packages[node] for node in needs if node != root]
    found.sort(key=lambda package: (package["name"], package["version"]))
    return found, needs


def crates() -> list[tuple[str, str, list[str]]]:
    """Returns name and version, license expression and license texts of every crate that is linked on this platform."""
    return [(f"{package['name']} {package['version']}", package["license"] or "see license text", texts_of(package))
            for package in linked_crates()[0]]


def texts_of(package: dict) -> list[str]:
    folder = Path(package["manifest_path"]).parent
    files = sorted(file for file in folder.iterdir() if file.is_file() and LICENSE_NAME.match(file.name))
    return [file.read_text(errors="replace").strip() for file in files]


def debian_notice(package: str) -> str:
    path = DEBIAN_DOCS / package / "copyright"
    if not path.exists():
        sys.exit(f"third_party: {path} not found; install {package}")
    return path.read_text(errors="replace").strip()


def own_copy(name: str) -> str:
    return (Path(__file__).parent / "licenses" / f"{name}.txt").read_text().strip()


def page_notices() -> list[tuple[str, str]]:
    vendor = REPO / "src" / "server" / "page" / "vendor"
    missing = {folder.name for folder in vendor.iterdir() if folder.is_dir()} - set(IN_PAGE.values())
    if missing:
        sys.exit(f"third_party: no license notice for {', '.join(sorted(missing))}; add it to tools/package/third_party.py")
    return [(name, (vendor / folder / "LICENSE").read_text().strip()) for name, folder in IN_PAGE.items()]


def mlx_notice() -> str:
    [path] = (REPO / ".venv").glob("lib/python3*/site-packages/mlx-*.dist-info/licenses/LICENSE")
    return path.read_text().strip()


def shipped_names(folder: Path) -> list[str]:
    """The names of the shipped libraries, without version and hash."""
    return sorted({re.match(r"(lib[a-z0-9_.+-]*?[a-z0-9+])(-[0-9a-f]{8})?\.so", file.name)[1] for file in folder.glob("lib*.so*")})


def library_notices(folder: Path) -> list[tuple[str, str]]:
    notices = {}
    for name in shipped_names(folder):
        if name == "libmlx":
            notices["MLX"] = mlx_notice()
        elif name in ("liblapack", "libblas"):
            notices["Reference LAPACK and BLAS"] = own_copy("lapack")
        elif name in SHIPPED:
            notices[name] = debian_notice(SHIPPED[name])
        elif name != "liboctavo":
            sys.exit(f"third_party: no license notice for {name}; add it to tools/package/third_party.py")
    return list(notices.items())


def main(folder: Path) -> None:
    print("Octavo is licensed under the Apache License 2.0 (LICENSE). Its packages also contain the following third-party software, each under its own license.")
    compiled_in = [("Boost", own_copy("boost"))] + [(name, debian_notice(package)) for name, package in COMPILED_IN.items()]
    for name, text in library_notices(folder) + compiled_in + page_notices():
        print(f"\n{RULE}\n{name}\n{RULE}\n{text}")
    found = crates()
    print(f"\n{RULE}\nRust crates (and Rust's standard library: MIT OR Apache-2.0)\n{RULE}")
    texts: dict[str, tuple[str, list[str]]] = {}
    for name, expression, its in found:
        print(f"{name}: {expression}")
        for text in its:
            texts.setdefault(hashlib.sha256(" ".join(text.split()).encode()).hexdigest(), (text, []))[1].append(name)
    for text, names in texts.values():
        print(f"\n{RULE}\n{', '.join(names)}\n{RULE}\n{text}")


if __name__ == "__main__":
    if len(sys.argv) != 2:
        sys.exit(__doc__.splitlines()[-1])
    main(Path(sys.argv[1]))

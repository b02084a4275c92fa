#!/usr/bin/env python3
"""Prints the software bill of materials of Octavo's packages as CycloneDX 1.6 JSON: crates with the checksums of rust/Cargo.lock, MLX,
Debian's libraries (shipped and header-only) with their versions, and the playground's JavaScript. The same sources on the same
machine give the same bytes: the time is SOURCE_DATE_EPOCH, or the commit's.

usage: sbom.py VERSION LIBRARIES   (folder of the shipped libraries; an unknown library is an error)"""

import datetime
import json
import os
import re
import subprocess
import sys
import tomllib
import uuid
from pathlib import Path
from urllib.parse import quote

import third_party

REPO = Path(__file__).resolve().parents[2]
ROOT = "octavo"
BOOST = re.compile(r"libboost[\d.]+-dev")


def crate_parts() -> tuple[list[dict], dict[str, list[str]]]:
    """The crates, and what each of them and Octavo itself depends on, by bom-ref."""
    lock = tomllib.loads((REPO / "rust" / "Cargo.lock").read_text())
    checksums = {(package["name"], package["version"]): package.get("checksum") for package in lock["package"]}
    packages, needs = third_party.linked_crates()
    refs = {package["id"]: f"pkg:cargo/{package['name']}@{package['version']}" for package in packages}
    parts = [crate(package, refs[package["id"]], checksums[package["name"], package["version"]]) for package in packages]
    return parts, {refs.get(node, ROOT): sorted({refs[need] for need in found}) for node, found in needs.items()}


def crate(package: dict, ref: str, checksum: str | None) -> dict:
    """A crate without a checksum is a changed copy in rust/vendor."""
    part = component(ref, package["name"], package["version"], package["license"])
    if checksum:
        return part | {"hashes": [{"alg": "SHA-256", "content": checksum}]}
    return part | {"modified": True}


def component(ref: str, name: str, version: str = "", expression: str | None = None) -> dict:
    part = {"type": "library", "bom-ref": ref, "name": name}
    if version:
        part |= {"version": version, "purl": ref}
    if expression:  # older crates separate alternatives by a slash
        part["licenses"] = [{"expression": re.sub(r"\s*/\s*", " OR ", expression)}]
    return part


def debian(package: str) -> dict:
    found = subprocess.run(
        ["dpkg-query", "--show", "--showformat=${Version} ${Architecture}", package], capture_output=True, text=True
    )
    if found.returncode != 0:
        sys.exit(f"sbom: Debian package {package} is not installed")
    version, architecture = found.stdout.split()
    return component(f"pkg:deb/debian/{package}@{quote(version, safe='')}?arch={architecture}", package, version)


def boost_package() -> str:
    listed = subprocess.run(
        ["dpkg-query", "--show", "--showformat=${Package} ${db:Status-Status}\n", "libboost*-dev"], capture_output=True, text=True
    ).stdout
    found = [name for name, status in map(str.split, listed.splitlines()) if status == "installed" and BOOST.fullmatch(name)]
    if not found:
        sys.exit("sbom: no package like libboost1.81-dev is installed")
    return sorted(found)[0]


def library_parts(names: list[str]) -> list[dict]:
    """The shipped libraries, and the libraries that are compiled in."""
    packages = {boost_package(), *third_party.COMPILED_IN.values()}
    parts = []
    for name in names:
        if name == "libmlx":
            version = (REPO / "cmake" / "mlx_version.txt").read_text().strip()
            parts.append(component(f"pkg:pypi/mlx@{version}", "mlx", version, "MIT"))
        elif name in third_party.SHIPPED:
            packages.add(third_party.SHIPPED[name])
        elif name in ("liblapack", "libblas"):  # from MLX's wheel, which does not name their version
            parts.append(
                component(f"reference-{name}", f"Reference {name.removeprefix('lib').upper()}", expression="BSD-3-Clause")
            )
        elif name != "liboctavo":
            sys.exit(f"sbom: {name} is not known; add it to tools/package/third_party.py")
    return parts + [debian(package) for package in packages]


def page_parts() -> list[dict]:
    """The versions are in the table of vendor/README.md."""
    table = (REPO / "src" / "server" / "page" / "vendor" / "README.md").read_text()
    rows = re.findall(r"^\| `(\w+)/` \| `([^`]+)` \| ([\d.]+) \|.*\| ([\w.-]+), `", table, re.MULTILINE)
    if {folder for folder, *_ in rows} != set(third_party.IN_PAGE.values()):
        sys.exit("sbom: the table of src/server/page/vendor/README.md does not have the folders of third_party.py")
    return [component(f"pkg:npm/{quote(name)}@{version}", name, version, expression) for _, name, version, expression in rows]


def rust_version() -> str:
    return subprocess.check_output(["rustc", "--version"], text=True).split()[1]


def built_at() -> str:
    epoch = os.environ.get("SOURCE_DATE_EPOCH") or subprocess.check_output(
        ["git", "log", "-1", "--format=%ct"], cwd=REPO, text=True
    )
    return datetime.datetime.fromtimestamp(int(epoch), datetime.UTC).strftime("%Y-%m-%dT%H:%M:%SZ")


def bill(version: str, libraries: Path) -> dict:
    crates, needs = crate_parts()
    others = (
        library_parts(third_party.shipped_names(libraries))
        + page_parts()
        + [
            component("rust-std", "Rust standard library", rust_version(), "MIT OR Apache-2.0")
            | {"purl": f"pkg:generic/rust-std@{rust_version()}"}
        ]
    )
    parts = sorted([*crates, *others], key=lambda part: part["bom-ref"])
    needs[ROOT] = sorted({*needs[ROOT], *(part["bom-ref"] for part in others)})
    whole = {
        "bomFormat": "CycloneDX",
        "specVersion": "1.6",
        "version": 1,
        "metadata": {
            "timestamp": built_at(),
            "component": {
                "type": "application",
                "bom-ref": ROOT,
                "name": "octavo",
                "version": version,
                "purl": f"pkg:generic/octavo@{version}",
                "licenses": [{"expression": "Apache-2.0"}],
            },
        },
        "components": parts,
        "dependencies": [{"ref": ref, "dependsOn": needs[ref]} for ref in sorted(needs)],
    }
    # The number follows from the contents, so that equal bills have equal numbers.
    return {"serialNumber": uuid.uuid5(uuid.NAMESPACE_URL, json.dumps(whole, sort_keys=True)).urn} | whole


if __name__ == "__main__":
    if len(sys.argv) != 3:
        sys.exit(__doc__.splitlines()[-1])
    print(json.dumps(bill(sys.argv[1], Path(sys.argv[2])), indent=1))

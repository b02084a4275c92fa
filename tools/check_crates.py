#!/usr/bin/env python3
"""Checks the crates of rust/Cargo.lock: where they come from, their licenses, and known vulnerabilities.

usage: check_crates.py [--advisories FOLDER]

Every crate must be in this repository, or come from crates.io with a checksum, and its license must be one that packages may be
shipped with. With a checkout of the RustSec advisory database (github.com/rustsec/advisory-db), a crate with a known vulnerability
is an error as well; what is only unmaintained or unsound is printed. Uses no network if the crates of this platform are there."""

import argparse
import json
import re
import subprocess
import sys
import tomllib
from pathlib import Path

REPO = Path(__file__).parents[1]
RUST = REPO / "rust"
CRATES_IO = "registry+https://github.com/rust-lang/crates.io-index"
OUR_OWN = {"octavo-rust", "derivre"}  # rust/vendor/derivre/README.md gives the reason for the second
LICENSES = {
    "0BSD", "Apache-2.0", "Apache-2.0 WITH LLVM-exception", "BSD-2-Clause", "BSD-3-Clause", "BSL-1.0", "CDLA-Permissive-2.0",
    "ISC", "MIT", "Unicode-3.0", "Unlicense", "Zlib",
}  # fmt: skip
# Advisories that do not concern Octavo, with the reason.
NOT_OURS: dict[str, str] = {}


def locked() -> list[dict]:
    return tomllib.loads((RUST / "Cargo.lock").read_text())["package"]


def wrong_sources(packages: list[dict]) -> list[str]:
    wrong = []
    for package in packages:
        name = f"{package['name']} {package['version']}"
        if "source" not in package:
            if package["name"] not in OUR_OWN:
                wrong.append(f"{name}: is not from crates.io")
        elif package["source"] != CRATES_IO:
            wrong.append(f"{name}: comes from {package['source']}")
        elif "checksum" not in package:
            wrong.append(f"{name}: has no checksum")
    return wrong


def may_ship(expression: str) -> bool:
    """Whether an SPDX expression can be satisfied. "/" is an old spelling of OR."""
    tokens = re.findall(r"[()]|[^\s()]+", expression.replace("/", " OR "))

    def either(at: int) -> tuple[bool, int]:
        good, at = both(at)
        while at < len(tokens) and tokens[at] == "OR":
            more, at = both(at + 1)
            good = good or more
        return good, at

    def both(at: int) -> tuple[bool, int]:
        good, at = one(at)
        while at < len(tokens) and tokens[at] == "AND":
            more, at = one(at + 1)
            good = good and more
        return good, at

    def one(at: int) -> tuple[bool, int]:
        if tokens[at] == "(":
            good, at = either(at + 1)
            return good, at + 1
        name, at = tokens[at], at + 1
        if tokens[at : at + 1] == ["WITH"]:
            name, at = f"{name} WITH {tokens[at + 1]}", at + 2
        return name in LICENSES, at

    good, end = either(0)
    return good and end == len(tokens)


def wrong_licenses() -> list[str]:
    host = re.search(r"host: (\S+)", subprocess.check_output(["rustc", "-vV"], text=True))[1]
    facts = json.loads(subprocess.check_output(
        ["cargo", "metadata", "--format-version=1", "--locked", f"--filter-platform={host}", f"--manifest-path={RUST / 'Cargo.toml'}"]))
    return [f"{package['name']} {package['version']}: license {package['license']}" for package in facts["packages"]
            if package["name"] not in OUR_OWN and not may_ship(package["license"] or "none")]


def numbers(version: str) -> tuple:
    """Comparable; a pre-release comes before its release."""
    release, _, pre = version.partition("+")[0].partition("-")
    parts = [int(part) for part in release.split(".")]
    return (*parts, *[0] * (3 - len(parts))), (not pre, pre)


def meets(version: str, requirement: str) -> bool:
    """Whether a version meets a requirement of Cargo's, such as ">= 1.2, < 2" or "^0.3.1"."""
    return all(_meets_one(version, part.strip()) for part in requirement.split(","))


def _meets_one(version: str, requirement: str) -> bool:
    operator, wanted = re.fullmatch(r"(>=|<=|>|<|=|\^|~)?\s*([0-9][^\s]*)", requirement).groups()
    has, bound = numbers(version), numbers(wanted)
    match operator:
        case ">=":
            return has >= bound
        case "<=":
            return has <= bound
        case ">":
            return has > bound
        case "<":
            return has < bound
        case "=":
            return has[0][: wanted.count(".") + 1] == bound[0][: wanted.count(".") + 1]
    fixed = wanted.partition("-")[0].split(".")
    same = min(1, len(fixed) - 1) if operator == "~" else next((i for i, part in enumerate(fixed) if part != "0"), len(fixed) - 1)
    return has >= bound and has[0][: same + 1] == bound[0][: same + 1]


def advisories(folder: Path, packages: list[dict]) -> tuple[list[str], list[str]]:
    """Vulnerabilities, and what is only worth knowing."""
    bad, notes = [], []
    for package in packages:
        for file in sorted((folder / "crates" / package["name"]).glob("*.md")):
            text = file.read_text()
            facts = tomllib.loads(re.match(r"```toml\n(.*?)\n```", text, re.DOTALL)[1])
            about, versions = facts["advisory"], facts["versions"]
            safe = [*versions.get("patched", []), *versions.get("unaffected", [])]
            if "withdrawn" in about or about["id"] in NOT_OURS or any(meets(package["version"], rule) for rule in safe):
                continue
            title = next((line[2:] for line in text.splitlines() if line.startswith("# ")), "")
            kind = about.get("informational", "vulnerability")
            (notes if "informational" in about else bad).append(f"{package['name']} {package['version']}: {about['id']} ({kind}): {title}")
    return bad, notes


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--advisories", type=Path)
    flags = parser.parse_args()
    packages = locked()
    wrong = wrong_sources(packages) + wrong_licenses()
    if flags.advisories:
        if not (flags.advisories / "crates").is_dir():
            parser.error(f"{flags.advisories} is not a checkout of the advisory database")
        bad, notes = advisories(flags.advisories, packages)
        wrong += bad
        print("".join(f"note: {note}\n" for note in notes), end="")
    print("\n".join(wrong) if wrong else f"{len(packages)} crates: ok")
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main())

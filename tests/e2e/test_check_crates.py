"""tools/check_crates.py: licenses and versions are read as Cargo and SPDX mean them."""

import check_crates
import pytest


@pytest.mark.parametrize(("expression", "good"), [
    ("MIT", True), ("MIT/Apache-2.0", True), ("GPL-3.0-only", False), ("GPL-3.0-only OR MIT", True), ("MIT AND GPL-3.0-only", False),
    ("(MIT OR Apache-2.0) AND Unicode-3.0", True), ("Apache-2.0 WITH LLVM-exception OR GPL-2.0-only", True),
    ("GPL-2.0-only WITH Classpath-exception-2.0", False), ("none", False)])
def test_licenses(expression, good):
    assert check_crates.may_ship(expression) == good


@pytest.mark.parametrize(("version", "requirement", "good"), [
    ("1.2.3", ">= 1.2.3", True), ("1.2.3", "> 1.2.3", False), ("1.2.3", ">= 1.2, < 1.2.3", False), ("1.2.3-rc.1", ">= 1.2.3", False),
    ("1.9.0", "^1.2", True), ("2.0.0", "^1.2", False), ("0.3.9", "^0.3.1", True), ("0.4.0", "^0.3.1", False), ("0.0.2", "^0.0.1", False),
    ("1.2.9", "~1.2.3", True), ("1.3.0", "~1.2.3", False), ("1.2.3", "= 1.2.3", True), ("1.2.4", "= 1.2.3", False)])
def test_versions(version, requirement, good):
    assert check_crates.meets(version, requirement) == good


def test_sources_and_advisories(tmp_path):
    packages = [{"name": "good", "version": "1.0.1", "source": check_crates.CRATES_IO, "checksum": "c"},
                {"name": "strange", "version": "1.0.0", "source": "git+https://example.com/strange"}, {"name": "derivre", "version": "1.0.0"}]
    [wrong] = check_crates.wrong_sources(packages)
    assert wrong.startswith("strange")
    folder = tmp_path / "crates" / "good"
    folder.mkdir(parents=True)
    for name, more, patched in (("A", "", "1.0.1"), ("B", "", "1.0.2"), ("C", 'informational = "unmaintained"', "2.0.0"),
                                ("D", 'withdrawn = "2026-01-01"', "2.0.0")):
        (folder / f"{name}.md").write_text(
            f'```toml\n[advisory]\nid = "{name}"\npackage = "good"\n{more}\n[versions]\npatched = [">= {patched}"]\n```\n\n# Title\n')
    bad, notes = check_crates.advisories(tmp_path, packages)
    assert [line.split()[2] for line in bad] == ["B"] and [line.split()[2] for line in notes] == ["C"]

"""Unit tests of tools/package/sbom.py: the shape that CycloneDX 1.6 requires, completeness, and equal bytes."""

import re
import shutil
import sys
import tomllib
from pathlib import Path

import pytest

REPO = Path(__file__).parents[2]
sys.path.insert(0, str(REPO / "tools" / "package"))

import sbom  # noqa: E402
import third_party  # noqa: E402

pytestmark = pytest.mark.skipif(not (shutil.which("cargo") and shutil.which("dpkg-query")), reason="needs cargo and dpkg")

PURL = re.compile(r"pkg:(cargo|deb|generic|npm|pypi)/[\w.%@/+~-]+@[\w.%+~-]+(\?arch=\w+)?")
SHIPPED = ["libfmt-4f700944.so.9", "libmlx-f36cd9fe.so", "libblas-bd8a282c.so.3.10.0", "liboctavo.so.0.1.0", "liboctavo.so"]


@pytest.fixture(autouse=True)
def the_same_time(monkeypatch):
    monkeypatch.setenv("SOURCE_DATE_EPOCH", "1767225600")


@pytest.fixture
def libraries(tmp_path) -> Path:
    for name in SHIPPED:
        (tmp_path / name).touch()
    return tmp_path


@pytest.fixture
def bill(libraries) -> dict:
    return sbom.bill("0.1.0", libraries)


def test_it_has_the_fields_of_the_format(bill):
    assert (bill["bomFormat"], bill["specVersion"], bill["version"]) == ("CycloneDX", "1.6", 1)
    assert re.fullmatch(r"urn:uuid:[0-9a-f]{8}-([0-9a-f]{4}-){3}[0-9a-f]{12}", bill["serialNumber"])
    assert bill["metadata"]["timestamp"] == "2026-01-01T00:00:00Z"
    for part in [bill["metadata"]["component"], *bill["components"]]:
        assert part["type"] in ("application", "library") and part["name"] and part["bom-ref"]
        assert part.keys() <= {"type", "bom-ref", "name", "version", "purl", "licenses", "hashes", "modified"}
        assert "purl" not in part or PURL.fullmatch(part["purl"]), part["purl"]
        assert all("/" not in each["expression"] for each in part.get("licenses", []))


def test_every_reference_is_a_component_that_is_listed_once(bill):
    refs = [part["bom-ref"] for part in bill["components"]]
    assert len(refs) == len(set(refs)) and refs == sorted(refs)
    for each in bill["dependencies"]:
        assert {each["ref"], *each["dependsOn"]} <= {"octavo", *refs}


def test_every_component_is_reached_from_octavo(bill):
    needs = {each["ref"]: each["dependsOn"] for each in bill["dependencies"]}
    reached, waiting = set(), ["octavo"]
    while waiting:
        ref = waiting.pop()
        if ref not in reached:
            reached.add(ref)
            waiting += needs.get(ref, [])
    assert reached == {"octavo", *(part["bom-ref"] for part in bill["components"])}


def test_crates_have_the_checksums_of_the_lock_file(bill):
    lock = {
        (package["name"], package["version"]): package.get("checksum")
        for package in tomllib.loads((REPO / "rust" / "Cargo.lock").read_text())["package"]
    }
    crates = [part for part in bill["components"] if part["bom-ref"].startswith("pkg:cargo/")]
    assert len(crates) == len(third_party.crates()) > 50
    for part in crates:
        checksum = lock[part["name"], part["version"]]
        assert part.get("hashes") == ([{"alg": "SHA-256", "content": checksum}] if checksum else None)
    assert [part["name"] for part in crates if part.get("modified")] == ["derivre"]


def test_shipped_and_compiled_in_libraries_are_listed(bill):
    names = {part["name"]: part for part in bill["components"]}
    assert names["mlx"]["version"] == (REPO / "cmake" / "mlx_version.txt").read_text().strip()
    assert {
        "libfmt9",
        "Reference BLAS",
        "libcli11-dev",
        "nlohmann-json3-dev",
        "marked",
        "@highlightjs/cdn-assets",
    } <= names.keys()
    assert "liboctavo" not in names


def test_the_same_sources_give_the_same_bill(bill, libraries, monkeypatch):
    assert sbom.bill("0.1.0", libraries) == bill
    monkeypatch.setenv("SOURCE_DATE_EPOCH", "1767225601")
    assert sbom.bill("0.1.0", libraries)["serialNumber"] != bill["serialNumber"]


def test_an_unknown_library_is_an_error(libraries):
    (libraries / "libsurprise-00000000.so.1").touch()
    with pytest.raises(SystemExit, match="libsurprise is not known"):
        sbom.bill("0.1.0", libraries)

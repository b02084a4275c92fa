"""The commit that `octavo --version` reports (cmake/WriteSourceCommit.cmake): where it comes from, and when its file is written."""

import re
import shutil
import subprocess
from pathlib import Path

import pytest

REPO = Path(__file__).parents[2]

pytestmark = pytest.mark.skipif(not (shutil.which("cmake") and shutil.which("git")), reason="needs cmake and git")


def git(folder: Path, *arguments: str) -> str:
    identity = ("-c", "user.name=Test", "-c", "user.email=test@localhost")
    return subprocess.run(["git", "-C", folder, *identity, *arguments], capture_output=True, text=True, check=True).stdout.strip()


def commit_of(source: Path, output: Path, given: str = "") -> str:
    script = REPO / "cmake" / "WriteSourceCommit.cmake"
    subprocess.run(["cmake", f"-DCOMMIT={given}", f"-DSOURCE={source}", f"-DOUTPUT={output}", "-P", script], check=True)
    return re.search(r'return "(.*)";', output.read_text())[1]


@pytest.fixture
def output(tmp_path) -> Path:
    return tmp_path / "source_commit.cpp"


@pytest.fixture
def sources(tmp_path) -> Path:
    """Sources without git."""
    folder = tmp_path / "sources"
    (folder / "cmake").mkdir(parents=True)
    shutil.copy(REPO / "cmake" / "commit.txt", folder / "cmake")
    shutil.copy(REPO / ".gitattributes", folder)
    return folder


@pytest.fixture
def clone(sources) -> Path:
    git(sources, "init", "--quiet")
    git(sources, "add", "--all")
    git(sources, "commit", "--quiet", "--message", "First")
    return sources


def test_a_clone_reports_its_head(clone, output):
    assert commit_of(clone, output) == git(clone, "rev-parse", "HEAD")[:8]


def test_changed_files_are_reported_and_new_ones_are_not(clone, output):
    head = commit_of(clone, output)
    (clone / "new.txt").touch()
    assert commit_of(clone, output) == head
    (clone / "cmake" / "commit.txt").write_text("changed\n")
    assert commit_of(clone, output) == f"{head}-dirty"


def test_the_file_is_written_only_for_another_commit(clone, output):
    first = commit_of(clone, output)
    written = output.stat().st_mtime_ns
    assert commit_of(clone, output) == first and output.stat().st_mtime_ns == written
    git(clone, "commit", "--quiet", "--allow-empty", "--message", "Second")
    assert commit_of(clone, output) == git(clone, "rev-parse", "HEAD")[:8] != first
    assert output.stat().st_mtime_ns != written


def test_an_archive_reports_the_commit_it_was_made_from(clone, output, tmp_path):
    folder = tmp_path / "archive"
    folder.mkdir()
    git(clone, "archive", "--output", str(tmp_path / "archive.tar"), "HEAD")
    subprocess.run(["tar", "-xf", tmp_path / "archive.tar", "-C", folder], check=True)
    assert commit_of(folder, output) == git(clone, "rev-parse", "HEAD")[:8]


def test_sources_inside_another_clone_do_not_report_its_commit(clone, output):
    inner = clone / "unpacked"
    (inner / "cmake").mkdir(parents=True)
    shutil.copy(REPO / "cmake" / "commit.txt", inner / "cmake")
    assert commit_of(inner, output) == "unknown"


@pytest.mark.parametrize(
    ("given", "reported"), [("0123456789abcdef0123456789abcdef01234567", "01234567"), ("0.1.0-2", "0.1.0-2")]
)
def test_a_given_commit_needs_no_git(sources, output, given, reported):
    assert commit_of(sources, output, given) == reported


def test_sources_without_git_report_unknown(sources, output):
    assert commit_of(sources, output) == "unknown"

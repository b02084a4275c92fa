"""tools/check_phrases.py finds each banned phrase, at its line and across line breaks, and accepts plain English."""

import subprocess
import sys
from pathlib import Path

import pytest

TOOLS = Path(__file__).parents[2] / "tools"
sys.path.insert(0, str(TOOLS))

from check_phrases import MOST_ENTRIES, find_phrases, read_phrases  # noqa: E402

PHRASES = read_phrases()


def lines_of(text: str) -> list[int]:
    return [finding.line for finding in find_phrases(text, PHRASES)]


@pytest.mark.parametrize("text", [
    "The page belongs to nobody.",
    "the same answer, whoever else is asking",
    "they go home when the lease is destroyed",
    "the lease dies",
    "this is no HTTP/1.1 request",
    "there is no such path",
    "int8 pages are not there for latent attention",
    "A file with one key a line",
    "more get 429 and a time to come back",
    "Leaves with 1 when there is a problem",
    "runs language models from pages",
    "Guessing ahead",
])
def test_a_banned_phrase_is_found(text):
    assert len(lines_of(text)) >= 1


@pytest.mark.parametrize("text", [
    "There is no limit.",
    "The option is no longer needed.",
    "Reads the keys from pages of the pool.",
    "a line in the log",
    "The name is well known.",
    "Runs behind a proxy.",
    "A home directory",
])
def test_plain_english_passes(text):
    assert lines_of(text) == []


def test_a_phrase_is_found_across_a_line_break_of_a_comment():
    assert lines_of("int x;\n// A file with one key\n// a line.\n") == [2]
    assert lines_of("There\n# is no limit.\n") == []


def test_an_empty_line_separates():
    assert lines_of("one key\n\na line") == []


def test_every_phrase_has_a_replacement():
    assert 0 < len(PHRASES.replacements) <= MOST_ENTRIES
    assert all(PHRASES.replacements.values())


def test_the_command_names_file_line_and_replacement(tmp_path):
    (tmp_path / "docs").mkdir()
    (tmp_path / "docs" / "page.md").write_text("# Title\n\nNobody waits.\n")
    (tmp_path / "tests").mkdir()
    (tmp_path / "tests" / "data.md").write_text("Nobody waits.\n")
    subprocess.run(["git", "init", "-q", tmp_path], check=True)
    done = subprocess.run([sys.executable, TOOLS / "check_phrases.py", tmp_path], capture_output=True, text=True)
    assert done.returncode == 1
    [line] = done.stdout.splitlines()
    assert line.startswith("docs/page.md:3: nobody -> ")
    assert "1 phrase" in done.stderr
    (tmp_path / "docs" / "page.md").write_text("# Title\n\nNo thread waits.\n")
    assert subprocess.run([sys.executable, TOOLS / "check_phrases.py", tmp_path]).returncode == 0

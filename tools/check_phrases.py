#!/usr/bin/env python3
"""Rejects the phrases of tools/phrases.txt in everything people read: documentation, comments, help and messages.

usage: tools/check_phrases.py [ROOT]   (ROOT: the repository; prints FILE:LINE: PHRASE -> REPLACEMENT and exits with status 1)"""

import re
import subprocess
import sys
from bisect import bisect_right
from collections.abc import Iterator
from itertools import accumulate
from pathlib import Path
from typing import NamedTuple

LIST = Path(__file__).with_name("phrases.txt")
MOST_ENTRIES = 40
PLACES = ["*.md", ".ci", ".github", "bench", "cmake", "deploy", "docs", "include", "python", "rust", "src", "tools"]
SUFFIXES = {".c", ".cmake", ".cpp", ".css", ".env", ".h", ".html", ".js", ".json", ".md", ".metal", ".plist", ".py", ".pyi", ".rb",
            ".rs", ".service", ".sh", ".toml", ".txt", ".yaml", ".yml"}
EXCLUDED = ("tools/phrases.txt", "tools/package/licenses/", "src/server/page/vendor/", "rust/tests/", "rust/vendor/", "tests/")
LEADER = re.compile(r"^\s*(?://[/!]?|/\*+|\*|#+)?\s*")  # a comment's sign at the start of a line


class Phrases(NamedTuple):
    pattern: re.Pattern[str]  # one named group per entry
    replacements: dict[str, str]  # by group


class Finding(NamedTuple):
    line: int
    text: str
    replacement: str


def read_phrases(path: Path = LIST) -> Phrases:
    groups: list[str] = []
    replacements: dict[str, str] = {}
    for line in path.read_text().splitlines():
        if not line or line.startswith("#"):
            continue
        pattern, arrow, replacement = line.partition(" -> ")
        if not arrow:
            sys.exit(f"check_phrases: {path.name}: expected 'PATTERN -> REPLACEMENT', found: {line}")
        name = f"p{len(groups)}"
        groups.append(f"(?P<{name}>{pattern})")
        replacements[name] = replacement
    if len(groups) > MOST_ENTRIES:
        sys.exit(f"check_phrases: {path.name} has {len(groups)} entries; the limit is {MOST_ENTRIES}")
    # One pattern with a common start is several times faster than one per entry.
    return Phrases(re.compile(rf"\b(?:{'|'.join(groups)})"), replacements)


def find_phrases(text: str, phrases: Phrases) -> list[Finding]:
    """Joins lines with one space, so that a phrase is found across a line break. An empty line still separates."""
    lines = [LEADER.sub("", line).rstrip().lower() for line in text.splitlines()]
    starts = list(accumulate((len(line) + 1 for line in lines), initial=0))
    return [Finding(bisect_right(starts, match.start()), match.group(), phrases.replacements[match.lastgroup or ""])
            for match in phrases.pattern.finditer(" ".join(lines))]


def files_of(root: Path) -> Iterator[str]:
    listed = subprocess.run(["git", "-C", root, "ls-files", "--cached", "--others", "--exclude-standard", "--", *PLACES],
                            check=True, capture_output=True, text=True).stdout
    for name in sorted(set(listed.splitlines())):
        known = Path(name).suffix in SUFFIXES or name == ".ci/run"
        if known and not name.startswith(EXCLUDED) and (root / name).is_file():
            yield name


def main() -> None:
    if sys.argv[1:] in (["-h"], ["--help"]):
        print(__doc__)
        return
    root = Path(sys.argv[1]) if len(sys.argv) > 1 else Path(__file__).parents[1]
    phrases = read_phrases()
    count = 0
    for name in files_of(root):
        for finding in find_phrases((root / name).read_text(errors="replace"), phrases):
            print(f"{name}:{finding.line}: {finding.text} -> {finding.replacement}")
            count += 1
    if count:
        sys.exit(f"{count} phrase{'' if count == 1 else 's'} to replace (tools/phrases.txt)")


if __name__ == "__main__":
    main()

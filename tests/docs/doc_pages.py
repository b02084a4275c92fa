"""Parses README and docs/: pages, fenced blocks with the comments that control how they run, headings and links.

Comments before a block, or anywhere in a page for (page), control how it is run:

  <!-- server: FLAGS -->          (page) a server of MODEL with these flags runs during the page's blocks
  <!-- run: no (REASON) -->       not executed; REASON is one of REASONS
  <!-- run: if (THING) -->        executed if THING is available, otherwise counted as not executed
  <!-- run: server -->            runs in the background until the end of the page or its next server block
  <!-- run: fails -->             must exit with a non-zero status
  <!-- file: NAME -->             written to the sandbox as NAME, so that later blocks can use it
"""

import re
from dataclasses import dataclass, field
from functools import cache
from pathlib import Path

REPO = Path(__file__).parents[2]

# The accepted reasons for not executing a block, each with an explanation.
REASONS = {
    "needs a Mac": "Metal, Homebrew, launchd",
    "needs a package registry": "downloads from PyPI, npm or a package archive",
    "needs two machines": "one block has the commands of both",
    "needs that program": "a client or an engine that is not installed where the tests run",
    "needs root": "installs into the system",
    "needs a container runtime": "docker, podman",
    "needs a cluster": "kubectl",
    "needs another model": "a checkpoint with a part that the tests' model lacks",
    "needs a clone": "builds or tests this repository; CI does it by other means",
    "minutes: run by hand": "too long for every change",
}
EXECUTED = ("bash", "console", "python", "javascript")
CHECKED = ("json", "yaml", "toml")


@dataclass
class Block:
    page: Path
    line: int
    language: str
    text: str
    mode: str = "yes"  # yes, no, if, server, fails
    detail: str = ""  # the reason (no) or the requirement (if)
    file: str = ""

    @property
    def name(self) -> str:
        return f"{self.page.relative_to(REPO)}:{self.line}"


@dataclass
class Page:
    path: Path
    text: str
    server: str | None = None
    blocks: list[Block] = field(default_factory=list)

    @property
    def name(self) -> str:
        return str(self.path.relative_to(REPO))


class BadPage(Exception):
    pass


COMMENT = re.compile(r"<!--\s*(run|file|server):\s*(.*?)\s*-->$")
FENCE = re.compile(r"^( *)(```+)(\S*)\s*$")
RUN = re.compile(r"(no|if) \((.+)\)|server|fails")


def parse(path: Path, text: str) -> Page:
    page = Page(path, text)
    waiting: dict[str, str] = {}  # comments since the last block
    lines = text.split("\n")
    at = 0
    while at < len(lines):
        line = lines[at].strip()
        at += 1
        if comment := COMMENT.match(line):
            if comment[1] == "server":
                page.server = comment[2]
            else:
                waiting[comment[1]] = comment[2]
            continue
        fence = FENCE.match(lines[at - 1])
        if not fence:
            if line and waiting:
                raise BadPage(f"{page.name}:{at}: a comment {waiting} without a block behind it")
            continue
        begin, indent, body = at, len(fence[1]), []
        while at < len(lines) and lines[at].strip() != fence[2]:
            body.append(lines[at][indent:] if lines[at][:indent].isspace() else lines[at])
            at += 1
        if at == len(lines):
            raise BadPage(f"{page.name}:{begin}: a block without an end")
        at += 1
        page.blocks.append(_block(page, begin, fence[3], "\n".join(body) + "\n", waiting))
        waiting = {}
    return page


def _block(page: Page, line: int, language: str, text: str, comments: dict[str, str]) -> Block:
    block = Block(page.path, line, language, text, file=comments.get("file", ""))
    if run := comments.get("run"):
        found = RUN.fullmatch(run)
        if not found:
            raise BadPage(f"{block.name}: run: {run!r} is none of no (..), if (..), server, fails")
        block.mode, block.detail = found[1] or run, found[2] or ""
    if block.mode == "no" and block.detail not in REASONS:
        raise BadPage(f"{block.name}: the reason {block.detail!r} is not in REASONS of tests/docs/doc_pages.py")
    if not language:
        raise BadPage(f"{block.name}: a block says its language; text, when it is nothing to run")
    return block


@cache
def pages() -> list[Page]:
    paths = [REPO / "README.md", REPO / "CONTRIBUTING.md", REPO / "deploy" / "README.md", *sorted((REPO / "docs").rglob("*.md"))]
    return [parse(path, path.read_text()) for path in paths]


def without_code(text: str) -> str:
    """Returns the page's prose and links, without fenced blocks and code spans."""
    text = re.sub(r"^( *)(```+).*?^\1\2\s*$", "", text, flags=re.DOTALL | re.MULTILINE)
    return re.sub(r"(`+)[^`].*?\1", "", text)


def links(page: Page) -> list[str]:
    return re.findall(r"\]\(([^)\s]+)(?:\s+\"[^\"]*\")?\)", without_code(page.text))


def anchor(heading: str) -> str:
    """Returns the anchor that Python-Markdown's toc and GitHub generate, for the characters used in these headings."""
    plain = re.sub(r"[`*]|\[([^\]]*)\]\([^)]*\)", r"\1", heading)
    return re.sub(r"[\s-]+", "-", re.sub(r"[^\w\s-]", "", plain).strip().lower())


def anchors(text: str) -> set[str]:
    bare = re.sub(r"^( *)(```+).*?^\1\2\s*$", "", text, flags=re.DOTALL | re.MULTILINE)
    return {anchor(found) for found in re.findall(r"^#{1,6} +(.+?)\s*$", bare, re.MULTILINE)}

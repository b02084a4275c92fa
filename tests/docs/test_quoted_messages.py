"""Each heading of docs/troubleshooting.md that quotes an error message quotes one that the sources have, and some of them are
really provoked by the blocks of that page (test_commands.py)."""

import re

from doc_pages import REPO

PAGE = REPO / "docs" / "troubleshooting.md"


def sources() -> str:
    """All literals of the sources, pieces of one text joined, escapes undone."""
    parts = []
    for path in [*(REPO / "src").rglob("*.cpp"), *(REPO / "src").rglob("*.h"), *(REPO / "rust" / "src").rglob("*.rs"),
                 *(REPO / "python").rglob("*.py"), *(REPO / "tools").glob("*.sh"), *(REPO / "cmake").glob("*.cmake"), REPO / "CMakeLists.txt"]:
        text = re.sub(r'"\s*\n\s*(?:R?")', "", path.read_text(errors="replace"))  # a literal goes on in the next line
        parts.append(re.sub(r'"\s+\n?\s*"', "", text).replace('\\"', '"').replace("{{", "{").replace("}}", "}"))
    return "\n".join(parts)


def quoted_messages() -> list[str]:
    """Without those of a section about sources that are not there."""
    sections = re.split(r"^(?=## )", PAGE.read_text(), flags=re.MULTILINE)
    there = [text for text in sections
             if not (about := re.search(r"<!-- sources: (\S+) -->", text)) or (REPO / about[1]).exists()]
    return re.findall(r"^### `(.+)`$", "".join(there), re.MULTILINE)


def test_quoted_messages_are_the_sources_own():
    messages = quoted_messages()
    text = sources()
    assert len(messages) >= 20
    # ... stands for what differs from case to case; every piece between is literal.
    missing = [message for message in messages
               if not all(piece.strip() in text for piece in message.split("...") if piece.strip(" :;,.\""))]
    assert missing == []


def test_pieces_are_long_enough_to_mean_something():
    assert all(max(map(len, message.split("..."))) >= 12 for message in quoted_messages())

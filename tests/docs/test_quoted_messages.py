"""Checks that each error message quoted in a heading of docs/troubleshooting.md exists in the sources. The page's blocks trigger
some of them (test_commands.py)."""

import re

from doc_pages import REPO

PAGE = REPO / "docs" / "troubleshooting.md"


def sources() -> str:
    """Returns the text of all sources, with adjacent string literals joined and escapes removed."""
    parts = []
    for path in [*(REPO / "src").rglob("*.cpp"), *(REPO / "src").rglob("*.h"), *(REPO / "rust" / "src").rglob("*.rs"),
                 *(REPO / "python").rglob("*.py"), *(REPO / "tools").glob("*.sh"), *(REPO / "cmake").glob("*.cmake"), REPO / "CMakeLists.txt"]:
        text = re.sub(r'"\s*\n\s*(?:R?")', "", path.read_text(errors="replace"))  # a literal continued on the next line
        parts.append(re.sub(r'"\s+\n?\s*"', "", text).replace('\\"', '"').replace("{{", "{").replace("}}", "}"))
    return "\n".join(parts)


def quoted_messages() -> list[str]:
    """Returns the quoted messages, except those of sections whose sources do not exist."""
    sections = re.split(r"^(?=## )", PAGE.read_text(), flags=re.MULTILINE)
    there = [text for text in sections
             if not (about := re.search(r"<!-- sources: (\S+) -->", text)) or (REPO / about[1]).exists()]
    return re.findall(r"^### `(.+)`$", "".join(there), re.MULTILINE)


def test_quoted_messages_are_the_sources_own():
    messages = quoted_messages()
    text = sources()
    assert len(messages) >= 20
    # ... stands for variable text; the pieces between are literal.
    missing = [message for message in messages
               if not all(piece.strip() in text for piece in message.split("...") if piece.strip(" :;,.\""))]
    assert missing == []


def test_pieces_are_long_enough_to_mean_something():
    assert all(max(map(len, message.split("..."))) >= 12 for message in quoted_messages())

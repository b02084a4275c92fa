"""Checks that every flag of every --help is documented, and that every octavo flag in the documentation exists."""

import re
import shlex

import cli_reference
import pytest
from doc_pages import REPO, pages


@pytest.fixture(scope="module")
def commands(octavo):
    found = {command.name: command for command in cli_reference.commands(str(octavo))}
    aliases = found["octavo"].aliases.items()
    return found | {f"octavo {other}": found[f"octavo {child}"] for other, child in aliases}


def test_the_command_line_reference_is_up_to_date(octavo):
    assert cli_reference.PAGE.read_text() == cli_reference.page(str(octavo)), \
        "docs/cli.md is out of date: tools/cli_reference.py OCTAVO writes it anew"


def test_every_flag_of_help_is_documented(commands):
    text = "".join(page.text for page in pages())
    flags = {flag for command in commands.values() for flag in command.flags()} - {"-h", "--help"}
    assert len(flags) > 60
    assert [flag for flag in sorted(flags) if f"`{flag}`" not in text] == []


def octavo_lines():
    """Yields (location, words) of each octavo command in a block or a code span."""
    for page in pages():
        for block in page.blocks:
            if block.language in ("bash", "console"):
                text = block.text.replace("\\\n", " ")
                for line in text.split("\n"):
                    yield from words_of(f"{page.name}:{block.line}", line)
        for span in re.findall(r"`(octavo [^`\n]+)`", page.text):
            yield from words_of(page.name, span)


def words_of(where: str, line: str):
    line = re.split(r" #| \| | > | && | ; | &$", line)[0]
    found = re.search(r"(?:^|\s|/)octavo((?: [a-z]+)(?: .*)?)$", line)
    if not found:
        return
    try:
        yield where, shlex.split(found[1])
    except ValueError:  # a quoted string that spans lines
        yield where, found[1].split()


def foreign_words() -> tuple[dict[str, str], set[str]]:
    """Returns the commands of other programs with octavo's names, and the flags of other programs that octavo accepts."""
    text = (REPO / "src" / "cli" / "parse" / "foreign_words.cpp").read_text()
    commands = dict(re.findall(r'ForeignCommand\{"([^"]+)",\s*"([^"]+)"', text))
    flags = set(re.findall(r'ForeignFlag\{"(-[^"]+)",\s*(?:R"\([^)]*\)"|"[^"]*"),\s*(?:kAlias|kModel|kAlreadySo)', text))
    return commands, flags


def command_of(words: list[str], commands) -> str | None:
    two = f"octavo {' '.join(words[:2])}"
    one = f"octavo {words[0]}"
    return two if two in commands else one if one in commands else None


def test_every_flag_that_is_documented_exists(commands):
    seen = 0
    other_commands, other_flags = foreign_words()
    assert other_commands["show"] == "info" and {"-m", "--enforce-eager"} <= other_flags
    for where, words in octavo_lines():
        words[0] = other_commands.get(words[0], words[0])
        name = command_of(words, commands)
        assert name, f"{where}: octavo has no command {words[0]}"
        for word in words:
            if re.match(r"--?[a-z]", word):
                flag = word.split("=")[0]
                assert flag in commands[name].flags() | other_flags | {"--version"}, f"{where}: {name} has no {flag}"
                seen += 1
    assert seen > 20


def test_every_variable_of_the_environment_is_documented():
    text = "".join(page.text for page in pages())
    sources = [path.read_text() for path in [*(REPO / "src").rglob("*.cpp"), *(REPO / "python").rglob("*.py")]]
    names = {name for source in sources for name in re.findall(r'\w\("(OCTAVO_\w+)"[,)]', source)}
    assert "OCTAVO_HUB_RETRY_MS" in names and [name for name in sorted(names) if f"`{name}" not in text] == []

#!/usr/bin/env python3
"""Writes docs/cli.md from the `--help` output of every octavo command.

usage: tools/cli_reference.py OCTAVO [--check]   (--check writes nothing and fails if the page is out of date)"""

import argparse
import re
import subprocess
import sys
from dataclasses import dataclass, field
from pathlib import Path

PAGE = Path(__file__).parents[1] / "docs" / "cli.md"
COLUMN = 30  # CLI11 starts descriptions in this column, on a separate line if the name is longer
KIND = re.compile(r"[A-Z]+[:=]|(TEXT|U?INT|FLOAT|JSON|Needs:|Excludes:)( |$)")  # continues a name that is too long
HEAD = """# Command line

<!-- Written by tools/cli_reference.py from octavo --help of every command; change the flags' own texts. -->

Every command and flag of this version, as `octavo COMMAND --help` has them. Names and meanings are vLLM's where vLLM has the flag.
A model that does not load, a flag that does not fit or a machine too small ends a command with status 1 and one line that says what
to change; a request that cannot be served ends it with 2; a wrong flag with the number that CLI11 gives it.

| environment variable | what it does |
|---|---|
| `OCTAVO_API_KEY` | a key that clients of `octavo serve` must send |
| `OCTAVO_ISA` | an instruction set instead of the best one: `octavo info` lists what this machine has |
| `OCTAVO_LOG` | how much is logged: `trace`, `debug`, `info`, `warning`, `error`, `off` |
| `OCTAVO_THREADS` | threads that compute, where no flag `--threads` says it |
| `NO_COLOR` | no colours in `octavo chat` |
"""


@dataclass
class Flag:
    names: str
    kind: str  # its type, default and requirements
    help: str


@dataclass
class Command:
    name: str
    about: str
    groups: dict[str, list[Flag]] = field(default_factory=dict)
    children: list[str] = field(default_factory=list)
    aliases: dict[str, str] = field(default_factory=dict)  # alias of a child: the child's name

    def flags(self) -> set[str]:
        """Returns every spelling of every flag. {false} marks a spelling that turns the flag off."""
        names = ",".join(flag.names for flags in self.groups.values() for flag in flags)
        return {name.replace("{false}", "") for name in names.split(",") if name.startswith("-")}


def split_line(line: str) -> tuple[str, str]:
    """Returns the name and description of a line. If the name is long, the description is on the next line."""
    if len(line) > COLUMN and line[COLUMN - 1] == " " and not KIND.match(line[COLUMN:]):
        return line[:COLUMN].strip(), line[COLUMN:].strip()
    return line.strip(), ""


def parse(name: str, text: str) -> Command:
    about, _, rest = re.split(r"^(Usage: .*)$", text, maxsplit=1, flags=re.MULTILINE)
    command = Command(name, about.strip())
    group, entry = "", None
    for line in rest.split("\n"):
        if re.match(r"\S.*:$", line):
            group, entry = line[:-1], None
        elif re.match(r"  \S", line):
            left, right = split_line(line)
            if group.lower() == "subcommands":
                child, *others = left.replace(",", " ").split()
                command.children.append(child)
                command.aliases |= dict.fromkeys(others, child)
                entry = None
                continue
            names, _, kind = left.partition(" ")
            entry = Flag(names, kind, right)
            command.groups.setdefault(group, []).append(entry)
        elif entry and line.strip():
            entry.help = f"{entry.help} {line.strip()}".strip()
    return command


def commands(octavo: str, path: tuple[str, ...] = ()) -> list[Command]:
    done = subprocess.run([octavo, *path, "--help"], capture_output=True, text=True, check=True)
    command = parse(" ".join(("octavo", *path)), done.stdout)
    return [command] + [found for child in command.children for found in commands(octavo, (*path, child))]


def cell(text: str) -> str:
    return text.replace("|", "\\|").replace("<", "&lt;")


def code(text: str) -> str:
    return f"`{text}`" if text else ""


def section(command: Command) -> str:
    text = f"\n## `{command.name}`\n\n```text\n{command.about}\n```\n"
    if command.children:
        text += "\nCommands: " + ", ".join(f"`{command.name} {child}`" for child in command.children) + ".\n"
    for group, flags in command.groups.items():
        shown = [flag for flag in flags if not flag.names.startswith("-h")]
        if not shown:
            continue
        text += f"\n**{group}**\n\n| | value | meaning |\n|---|---|---|\n"
        for flag in shown:
            names = ", ".join(code(name.replace("{false}", "")) for name in flag.names.split(","))
            text += f"| {names} | {code(flag.kind.removesuffix(' ...').replace('|', chr(92) + '|'))} | {cell(flag.help)} |\n"
    return text


def page(octavo: str) -> str:
    return HEAD + "".join(section(command) for command in commands(octavo))


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.split("\n\n")[0])
    parser.add_argument("octavo", help="path of the octavo program")
    parser.add_argument("--check", action="store_true", help="write nothing and fail if the page is out of date")
    options = parser.parse_args()
    text = page(options.octavo)
    if not options.check:
        PAGE.write_text(text)
    elif not PAGE.exists() or PAGE.read_text() != text:
        print("docs/cli.md is out of date; run tools/cli_reference.py OCTAVO")
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main())

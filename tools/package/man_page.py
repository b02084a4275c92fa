#!/usr/bin/env python3
"""Prints the man page octavo(1), generated from `octavo --help` and the --help of each command.

usage: man_page.py OCTAVO"""

import os
import re
import subprocess
import sys
from datetime import UTC, datetime


def ask(octavo: str, *arguments: str) -> str:
    wide = os.environ | {"COLUMNS": "80"}
    return subprocess.run([octavo, *arguments], capture_output=True, text=True, check=True, env=wide).stdout.strip()


def verbatim(text: str) -> str:
    text = text.replace("\\", "\\e").replace("-", "\\-")
    lines = ["\\&" + line if line.startswith((".", "'")) else line for line in text.splitlines()]
    return "\n".join([".nf", *lines, ".fi"])


def main(octavo: str) -> None:
    version = ask(octavo, "--version").split()[1]  # octavo 0.1.0 (commit ...)
    overview = ask(octavo, "--help")
    listed = re.split(r"\n(?:Subcommands|SUBCOMMANDS):\n", overview)[1]
    commands = re.findall(r"^  ([a-z]+)", listed, re.MULTILINE)
    date = datetime.fromtimestamp(int(os.environ.get("SOURCE_DATE_EPOCH", "0")), UTC).date()
    print(f'.TH OCTAVO 1 "{date}" "octavo {version}" "User Commands"')
    print(".SH NAME\noctavo \\- native LLM server with a paged KV cache")
    print(".SH SYNOPSIS\n.B octavo\n.I COMMAND\n[\\fIOPTIONS\\fR]")
    print(".SH DESCRIPTION\n" + verbatim(overview))
    for command in commands:
        print(f'.SH "OCTAVO {command.upper()}"\n' + verbatim(ask(octavo, command, "--help")))


if __name__ == "__main__":
    if len(sys.argv) != 2:
        sys.exit(__doc__.splitlines()[-1])
    main(sys.argv[1])

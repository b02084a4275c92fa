#!/usr/bin/env python3
"""Runs a command and draws its output as an SVG of a terminal.

usage: terminal_svg.py OUT.svg [--seconds N] [--replace OLD NEW]... -- COMMAND...

A command that does not exit is terminated after --seconds (default: 10). The prompt line shows the command. --replace changes
text in the picture, for example to hide local paths."""

import argparse
import subprocess
import sys
import threading
from pathlib import Path
from xml.sax.saxutils import escape

FONT = 13  # px; a monospace character is 0.6 of it wide
LINE = 18
MARGIN = 16
BAR = 30  # the window's title bar
COLUMNS = 104


def output_of(command: list[str], seconds: float) -> str:
    process = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)
    lines: list[str] = []
    reader = threading.Thread(target=lambda: lines.extend(process.stdout))
    reader.start()
    reader.join(seconds)
    text = "".join(lines)  # before the command prints anything about its termination
    process.terminate()
    reader.join()
    process.wait()
    return text


def wrapped(line: str) -> list[str]:
    return [line[i : i + COLUMNS] for i in range(0, len(line), COLUMNS)] or [""]


def drawn(title: str, lines: list[str]) -> str:
    width = round(max(len(line) for line in lines) * FONT * 0.6) + 2 * MARGIN
    height = BAR + len(lines) * LINE + 2 * MARGIN
    rows = []
    for number, line in enumerate(lines):
        y = BAR + MARGIN + number * LINE + FONT
        kind = ' class="prompt"' if line.startswith("$ ") else ""
        rows.append(f'<text x="{MARGIN}" y="{y}"{kind} xml:space="preserve">{escape(line)}</text>')
    dots = "".join(f'<circle cx="{MARGIN + 6 + i * 18}" cy="{BAR / 2}" r="5.5" fill="{colour}"/>'
                   for i, colour in enumerate(("#c8553d", "#d6a44c", "#6a994e")))
    return f"""<svg xmlns="http://www.w3.org/2000/svg" width="{width}" height="{height}" viewBox="0 0 {width} {height}">
<title>{escape(title)}</title>
<style>text {{ font: {FONT}px ui-monospace, SFMono-Regular, Menlo, Consolas, "DejaVu Sans Mono", monospace; fill: #e8e3d9; }} .prompt {{ fill: #f0c674; font-weight: bold; }}</style>
<rect width="{width}" height="{height}" rx="8" fill="#1f1d1a"/>
<rect width="{width}" height="{BAR}" rx="8" fill="#2e2b27"/>
{dots}
{chr(10).join(rows)}
</svg>
"""


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("out", type=Path)
    parser.add_argument("--seconds", type=float, default=10)
    parser.add_argument("--replace", nargs=2, action="append", default=[], metavar=("OLD", "NEW"))
    parser.add_argument("command", nargs="+")
    if "--" not in sys.argv:
        parser.error("put the command after --")
    split = sys.argv.index("--")
    flags = parser.parse_args([*sys.argv[1:split], "command"])
    command = sys.argv[split + 1 :]
    text = f"$ {' '.join(command)}\n{output_of(command, flags.seconds)}".rstrip()
    for old, new in flags.replace:
        text = text.replace(old, new)
    lines = [part for line in text.expandtabs().split("\n") for part in wrapped(line.rstrip())]
    flags.out.write_text(drawn(lines[0].removeprefix("$ "), lines))


if __name__ == "__main__":
    main()

#!/usr/bin/env python3
"""Writes the table of long test runs in docs/status.md, between its marker comments, from tests/battery/record.json and the parts of
tools/batterykit/parts.toml.

usage: tools/battery_table.py [--check]   (--check changes nothing and exits with status 1 if the page is out of date)"""

import sys
from pathlib import Path

from batterykit import parts
from batterykit.record import Entry, Record

PAGE = Path(__file__).parents[1] / "docs" / "status.md"
BEGIN, END = "<!-- battery:begin -->\n", "<!-- battery:end -->\n"
HEAD = ["claim", "command", "count", "per hour", "date", "commit", "result"]
RESULTS = {"passed": "passed", "failed": "**failed**", "partial": "passed so far"}


def row(part: parts.Part, entry: Entry | None) -> list[str]:
    command = f"`tools/battery.sh {part.name}`"
    claim = f"{part.claim} ([over time]({part.figure}))" if part.figure and (PAGE.parent / part.figure).exists() else part.claim
    if entry is None:
        return [claim, command, amount(part, None), "-", "-", "-", "not run yet"]
    rate = f"{entry.per_hour:,.0f}" if entry.per_hour and part.count > 1 else "-"
    result = "cut off in the first piece" if entry.result == "partial" and entry.count == 0 else RESULTS[entry.result]
    return [claim, command, amount(part, entry.count), rate, entry.date, f"`{entry.commit}`", result]


def amount(part: parts.Part, reached: int | None) -> str:
    if part.count == 1:
        return "1 run" if reached is None or reached else "0 of 1 run"
    if reached is None or reached >= part.count:
        return f"{part.count:,} {part.unit}"
    return f"{reached:,} of {part.count:,} {part.unit}"


def table(battery: parts.Battery, record: Record) -> str:
    rows = [HEAD, ["---"] * len(HEAD), *(row(part, record.get(part.name)) for part in battery.parts.values())]
    return "".join(f"| {' | '.join(cells)} |\n" for cells in rows)


def page(text: str, battery: parts.Battery, record: Record) -> str:
    before, rest = text.split(BEGIN)
    return before + BEGIN + table(battery, record) + END + rest.split(END)[1]


def main(arguments: list[str]) -> int:
    if arguments not in ([], ["--check"]):
        print(__doc__.splitlines()[-1], file=sys.stderr)
        return 2
    old = PAGE.read_text()
    new = page(old, parts.read(), Record())
    if arguments == ["--check"]:
        if new != old:
            print("docs/status.md is out of date: run tools/battery_table.py", file=sys.stderr)
        return int(new != old)
    PAGE.write_text(new)
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))

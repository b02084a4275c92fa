#!/usr/bin/env python3
"""Writes the table in docs/metrics.md, between its marker comments, from a running server's /metrics.

usage: tools/metrics_table.py URL   (start the server with --prefix-disk, so that it exports the disk metrics too;
tests/docs/test_generated.py fails if the page is out of date)"""

import re
import sys
import urllib.error
import urllib.request
from pathlib import Path

PAGE = Path(__file__).parents[1] / "docs" / "metrics.md"
BEGIN, END = "<!-- metrics:begin -->\n", "<!-- metrics:end -->\n"
SHARED = {"model_name", "engine", "le"}  # labels of every metric


def table(metrics: str) -> str:
    helps = dict(re.findall(r"^# HELP (\S+) (.*)$", metrics, re.MULTILINE))
    kinds = dict(re.findall(r"^# TYPE (\S+) (.*)$", metrics, re.MULTILINE))
    lines = []
    for name in sorted(helps, key=lambda name: (name.startswith("octavo:"), name)):
        rows = re.findall(rf"^{re.escape(name)}(?:_bucket)?\{{(.*?)\}} ", metrics, re.MULTILINE)
        labels = sorted({label for row in rows for label in re.findall(r'(\w+)="', row)} - SHARED)
        lines.append(f"| `{name}` | {kinds[name]} | {', '.join(f'`{label}`' for label in labels)} | {helps[name]} |")
    return "\n".join(["| name | type | labels | description |", "|---|---|---|---|", *lines]) + "\n"


def page(text: str, metrics: str) -> str:
    before, rest = text.split(BEGIN)
    return before + BEGIN + table(metrics) + END + rest.split(END)[1]


def fetch(url: str) -> str:
    """Returns /metrics after one refused request, because the refusal counter appears with the first refusal."""
    try:
        urllib.request.urlopen(urllib.request.Request(url + "/v1/completions", b"{}", {"Content-Type": "application/json"}))
    except urllib.error.HTTPError:
        pass
    with urllib.request.urlopen(url + "/metrics") as answer:
        return answer.read().decode()


if __name__ == "__main__":
    PAGE.write_text(page(PAGE.read_text(), fetch(sys.argv[1].rstrip("/"))))

#!/usr/bin/env python3
"""Draws the samples of tests/battery/soak.py over time: memory of the server, and the 99th percentiles of the time to the first token
and between tokens. Pieces follow each other; a dashed line is a restart of the server.

usage: soak_plot.py SAMPLES.jsonl OUT.svg"""

import json
import math
import sys
from pathlib import Path

WIDTH, LEFT, RIGHT, TOP, PANEL, GAP = 900, 80, 20, 40, 150, 60
TITLES = {
    "resident_mib": "Resident memory, MiB",
    "first_token_p99_ms": "Time to the first token, p99, ms",
    "between_tokens_p99_ms": "Time between tokens, p99, ms",
}
MOST_POINTS = 1000  # of a curve; the highest of neighbouring samples is kept
STYLE = """<style>
.back { fill: #ffffff } text { fill: #1f2937 } .grid { stroke: #d1d5db } .restart { stroke: #6b7280; stroke-dasharray: 4 4 }
.curve { stroke: #2563eb; stroke-width: 1.5; fill: none }
@media (prefers-color-scheme: dark) {
.back { fill: #111827 } text { fill: #e5e7eb } .grid { stroke: #374151 } .restart { stroke: #9ca3af } .curve { stroke: #60a5fa }
}
</style>"""


def tick_step(whole: float, ticks: int) -> float:
    """1, 2 or 5 times a power of ten, so that at most `ticks` steps cover the range."""
    rough = max(whole, 1e-9) / ticks
    power = 10 ** math.floor(math.log10(rough))
    return next(factor * power for factor in (1, 2, 5, 10) if rough <= factor * power)


def timed(samples: list[dict]) -> tuple[list[tuple[float, dict]], list[float]]:
    """The samples with their hours since the first piece began, and the hours of the restarts."""
    placed, restarts, offset, last = [], [], 0.0, 0.0
    for before, sample in zip([None, *samples], samples):
        if before and sample["piece"] != before["piece"]:
            offset += last
            restarts.append(offset / 60)
        last = sample["minute"]
        placed.append(((offset + last) / 60, sample))
    return placed, restarts


def thinned(points: list[tuple[float, float]]) -> list[tuple[float, float]]:
    group = -(-len(points) // MOST_POINTS)
    return [max(points[at : at + group], key=lambda point: point[1]) for at in range(0, len(points), group)]


def panel(name: str, top: float, placed: list[tuple[float, dict]], restarts: list[float]) -> list[str]:
    points = thinned([(hour, sample[name]) for hour, sample in placed])
    hours, most = placed[-1][0] or 1, max(value for _, value in points) or 1
    step = tick_step(most, 5)
    high = math.ceil(most / step) * step

    def x(hour: float) -> float:
        return LEFT + (WIDTH - LEFT - RIGHT) * hour / hours

    def y(value: float) -> float:
        return top + PANEL * (1 - value / high)

    lines = [f'<text x="{LEFT}" y="{top - 12:g}" font-weight="600">{TITLES[name]}</text>']
    for number in range(round(high / step) + 1):
        at = y(number * step)
        lines += [
            f'<line class="grid" x1="{LEFT}" x2="{WIDTH - RIGHT}" y1="{at:.1f}" y2="{at:.1f}"/>',
            f'<text x="{LEFT - 8}" y="{at + 4:.1f}" text-anchor="end">{number * step:,.4g}</text>',
        ]
    width = tick_step(hours, 10)
    for number in range(int(hours / width + 1e-9) + 1):
        lines.append(
            f'<text x="{x(number * width):.1f}" y="{top + PANEL + 18:g}" text-anchor="middle">{number * width:.4g} h</text>'
        )
    lines += [f'<line class="restart" x1="{x(hour):.1f}" x2="{x(hour):.1f}" y1="{top}" y2="{top + PANEL}"/>' for hour in restarts]
    curve = " ".join(f"{x(hour):.1f},{y(value):.1f}" for hour, value in points)
    return [*lines, f'<polyline class="curve" points="{curve}"/>']


def drawn(samples: list[dict]) -> str:
    placed, restarts = timed(samples)
    height = TOP + len(TITLES) * (PANEL + GAP)
    body = [line for number, name in enumerate(TITLES) for line in panel(name, TOP + number * (PANEL + GAP), placed, restarts)]
    head = (
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {WIDTH} {height}" width="{WIDTH}" height="{height}" '
        'font-family="system-ui, sans-serif" font-size="13">'
    )
    return "\n".join([head, STYLE, f'<rect class="back" width="{WIDTH}" height="{height}"/>', *body, "</svg>"]) + "\n"


def main(arguments: list[str]) -> int:
    if len(arguments) != 2:
        print(__doc__.splitlines()[-1], file=sys.stderr)
        return 2
    samples = [json.loads(line) for line in Path(arguments[0]).read_text().splitlines()]
    if not samples:
        print(f"soak_plot: {arguments[0]} has no samples", file=sys.stderr)
        return 1
    Path(arguments[1]).write_text(drawn(samples))
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))

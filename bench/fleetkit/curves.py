"""Draws curves as SVG: panels one below the other, each with its own y axis."""

import math
from dataclasses import dataclass
from xml.sax.saxutils import escape

WIDTH, LEFT, RIGHT, TOP, HEIGHT, GAP = 760, 70, 150, 48, 220, 80
STYLE = """.back { fill: #ffffff } text { fill: #1f2937 } .grid { stroke: #d1d5db } .axis { stroke: #6b7280 }
.line { fill: none; stroke-width: 2 } .c0 { stroke: #b45309; fill: #b45309 } .c1 { stroke: #2563eb; fill: #2563eb } .c2 { stroke: #6b7280; fill: #6b7280 }
.line.c0, .line.c1, .line.c2 { fill: none }
@media (prefers-color-scheme: dark) { .back { fill: #111827 } text { fill: #e5e7eb } .grid { stroke: #374151 } .axis { stroke: #9ca3af }
.c0 { stroke: #fbbf24; fill: #fbbf24 } .c1 { stroke: #60a5fa; fill: #60a5fa } .c2 { stroke: #9ca3af; fill: #9ca3af } }"""


@dataclass
class Panel:
    title: str
    curves: dict[str, list[tuple[float, float]]]  # points by name
    logarithmic: bool = False


def step_of(whole: float, ticks: int) -> float:
    """1, 2 or 5 times a power of ten, so that at most `ticks` steps cover the whole."""
    power = 10.0 ** math.floor(math.log10(whole / ticks))
    return next(factor * power for factor in (1, 2, 5, 10) if whole / ticks <= factor * power * (1 + 1e-9))


class Axis:
    def __init__(self, values: list[float], logarithmic: bool, ticks: int):
        if logarithmic:
            first, last = math.floor(math.log10(min(values))), math.ceil(math.log10(max(values)))
            self.ticks = [10.0 ** power for power in range(first, max(last, first + 1) + 1)]
            self.scale = math.log10
        else:
            step = step_of(max(*values, 1e-9), ticks)
            self.ticks = [step * i for i in range(math.ceil(max(values) / step - 1e-9) + 1)]
            self.scale = float

    def share(self, value: float) -> float:
        """0 at the first tick, 1 at the last."""
        first, last = self.scale(self.ticks[0]), self.scale(self.ticks[-1])
        return (self.scale(value) - first) / (last - first)


def draw(panels: list[Panel], x_title: str) -> str:
    height = TOP + len(panels) * (HEIGHT + GAP)
    rows = [f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {WIDTH} {height}" width="{WIDTH}" height="{height}" '
            f'font-family="system-ui, sans-serif" font-size="13">', f"<style>{STYLE}</style>",
            f'<rect class="back" width="{WIDTH}" height="{height}"/>']
    for number, panel in enumerate(panels):
        rows += _panel(panel, TOP + number * (HEIGHT + GAP), x_title)
    return "\n".join([*rows, "</svg>", ""])


def _panel(panel: Panel, top: float, x_title: str) -> list[str]:
    points = [point for curve in panel.curves.values() for point in curve]
    x_axis = Axis([x for x, _ in points], False, 10)
    y_axis = Axis([y for _, y in points], panel.logarithmic, 5)
    right, bottom = WIDTH - RIGHT, top + HEIGHT

    def place(x: float, y: float) -> tuple[float, float]:
        return LEFT + x_axis.share(x) * (right - LEFT), bottom - y_axis.share(y) * HEIGHT

    rows = [f'<text x="{LEFT}" y="{top - 14}" font-weight="600">{escape(panel.title)}</text>',
            f'<text x="{(LEFT + right) / 2}" y="{bottom + 40}" text-anchor="middle">{escape(x_title)}</text>']
    for tick in y_axis.ticks:
        y = place(x_axis.ticks[0], tick)[1]
        rows.append(f'<line class="{"axis" if tick == y_axis.ticks[0] else "grid"}" x1="{LEFT}" x2="{right}" y1="{y:.1f}" y2="{y:.1f}"/>')
        rows.append(f'<text x="{LEFT - 8}" y="{y + 4:.1f}" text-anchor="end">{tick:,.6g}</text>')
    for tick in x_axis.ticks:
        rows.append(f'<text x="{place(tick, y_axis.ticks[0])[0]:.1f}" y="{bottom + 18}" text-anchor="middle">{tick:,.6g}</text>')
    for number, (name, curve) in enumerate(panel.curves.items()):
        places = [place(x, y) for x, y in curve]
        rows.append(f'<path class="line c{number}" d="M' + "L".join(f"{x:.1f} {y:.1f}" for x, y in places) + '"/>')
        rows += [f'<circle class="c{number}" cx="{x:.1f}" cy="{y:.1f}" r="3"/>' for x, y in places]
        legend = top + 10 + 20 * number
        rows.append(f'<circle class="c{number}" cx="{right + 18}" cy="{legend}" r="4"/>')
        rows.append(f'<text x="{right + 28}" y="{legend + 4}">{escape(name)}</text>')
    return rows

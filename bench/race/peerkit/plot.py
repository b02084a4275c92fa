"""Draws docs/performance.svg: one panel per comparison and metric, one bar per engine, the limit as a line.

usage: plot.py RESULTS.json OUT.svg   (run it in the peers' environment, which has matplotlib)"""

import json
import sys
from pathlib import Path

import matplotlib

matplotlib.use("svg")
import matplotlib.pyplot as plt  # noqa: E402

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))
from peerkit import report  # noqa: E402

COLOURS = {"octavo": "#1f6f8b", "llama.cpp": "#e0a458", "OpenVINO GenAI": "#8f6bb3", "mlx-lm": "#9aa5b1"}
SHORT = {"OpenVINO GenAI": "OpenVINO"}
INK, FAINT = "#222222", "#b9c0c8"
# Makes the file reproducible and keeps its text as text.
plt.rcParams.update({"svg.hashsalt": "octavo", "svg.fonttype": "none", "font.family": "sans-serif", "font.size": 9,
                     "text.color": INK, "axes.labelcolor": INK, "xtick.color": INK, "ytick.color": INK})


def panel(axes, race: dict, metric: str, engines: list[str], settings: dict) -> None:
    rates = [report.middle(report.values(race, engine, metric)) for engine in engines]
    heights = [rate if isinstance(rate, float) else 0.0 for rate in rates]
    limit = report.middle(report.values(race, report.LIMIT, metric))
    top = max([*heights, limit if isinstance(limit, float) else 0.0]) or 1.0
    axes.bar(range(len(engines)), heights, width=0.7, color=[COLOURS[engine] for engine in engines])
    for place, (rate, height) in enumerate(zip(rates, heights)):
        axes.text(place, height + 0.02 * top, report.show_rate(rate), ha="center", va="bottom", fontsize=8,
                  rotation=90 if isinstance(rate, str) else 0)
    if isinstance(limit, float):
        axes.axhline(limit, color=INK, linewidth=1.2, linestyle=(0, (4, 2)))
        axes.text(len(engines) - 0.5, limit, f"limit {report.show_rate(limit)}", ha="right", va="bottom", fontsize=8)
    axes.set_title(report.show_metric(metric, settings), fontsize=9.5)
    axes.set_ylim(0, 1.16 * top)
    axes.set_xlim(-0.6, len(engines) - 0.4)
    axes.set_xticks(range(len(engines)), [SHORT.get(engine, engine) for engine in engines], rotation=30, ha="right")
    axes.tick_params(axis="both", length=0, labelsize=8)
    axes.yaxis.grid(True, color=FAINT, linewidth=0.5)
    axes.set_axisbelow(True)
    for side in ("top", "right", "left"):
        axes.spines[side].set_visible(False)
    axes.spines["bottom"].set_color(FAINT)


def draw(results: dict, out: Path) -> None:
    settings, races = results["settings"], results["races"]
    metrics = report.metrics(settings)
    height = 2.75 * len(races)
    figure, grid = plt.subplots(len(races), len(metrics), figsize=(2.6 * len(metrics), height), squeeze=False)
    for line, race in zip(grid, races):
        ran = [engine for engine in (report.OURS, *report.PEERS) if any(engine in round_ for round_ in race["rounds"])]
        for axes, metric in zip(line, metrics):
            # Leave out engines without a value for this metric.
            engines = [e for e in ran if report.middle(report.values(race, e, metric)) is not None]
            axes.set_visible(bool(engines))
            panel(axes, race, metric, engines, settings)
        line[0].set_ylabel(f"{race['name']}\ntok/s", fontsize=9.5)
    figure.tight_layout(h_pad=2.0, w_pad=1.5)
    figure.savefig(out, format="svg", metadata={"Date": None, "Creator": None})


if __name__ == "__main__":
    draw(json.loads(Path(sys.argv[1]).read_text()), Path(sys.argv[2]))

"""A short run of tests/battery/soak.py with a tiny model, and the picture of its samples."""

import json

import soak
import soak_plot
from prefix_replay import make_long_context


def test_a_short_soak_finds_nothing_and_can_be_drawn(octavo, tmp_path):
    model = make_long_context(tmp_path / "model", "llama", context=8192)
    samples = tmp_path / "samples.jsonl"
    for piece in (1, 2, 2):  # the last one again, as after a run that was cut off
        figures = soak.run(octavo, model, minutes=0.05, clients=3, seed=piece, samples=samples, flags=("--kv-memory", "64MiB"))
        assert figures["wrong"] == 0, figures
        assert figures["requests"] > 5
    taken = [json.loads(line) for line in samples.read_text().splitlines()]
    assert {sample["piece"] for sample in taken} == {1, 2}
    _, restarts = soak_plot.timed(taken)
    assert len(restarts) == 1
    assert soak_plot.drawn(taken).count('class="curve"') == 3

"""bench/fleet_sim.py with small costs: the figures follow from them, and the KV router finds more of the prompts than round robin."""

import json
import subprocess
import sys
import xml.etree.ElementTree as ElementTree
from pathlib import Path

import dynamo_venv
import numpy as np
import pytest

REPO = Path(__file__).parents[2]


@pytest.fixture(scope="module")
def fleet_sim(tmp_path_factory):
    """fleet_sim(*arguments) returns the finished process, with costs of 1 ms per prompt token and 10 ms per decode step."""
    if dynamo_venv.python() is None:
        pytest.skip("Dynamo's runtime cannot be installed")
    costs = tmp_path_factory.mktemp("costs") / "costs.npz"
    np.savez(costs, prefill_isl=[1.0, 512.0], prefill_ttft_ms=[1.0, 512.0], decode_active_kv_tokens=[1.0, 1e6],
             decode_context_length=[1.0, 1e5], decode_itl=np.full((2, 2), 10.0))

    def run(*arguments, costs: Path | None = costs) -> subprocess.CompletedProcess:
        command = [sys.executable, REPO / "bench" / "fleet_sim.py", *([costs] if costs else []), *arguments]
        return subprocess.run([str(part) for part in command], capture_output=True, text=True, timeout=120)

    return run


def test_one_request_takes_what_the_costs_say(fleet_sim, tmp_path):
    trace = tmp_path / "trace.jsonl"
    trace.write_text(json.dumps({"timestamp": 0, "input_length": 512, "output_length": 11, "hash_ids": [*range(8)]}) + "\n")
    flags = ("--replicas", 2, "--trace-file", trace, "--json")
    for done in (fleet_sim(*flags), fleet_sim(*flags, "--rates", "1000,1:100,8:400", costs=None)):
        assert done.returncode == 0, done.stderr
        for row in json.loads(done.stdout):
            assert row["ttft_p50"] == pytest.approx(0.512) and row["seconds"] == pytest.approx(0.612, rel=0.01) and row["hit_rate"] == 0, row


def test_kv_router_finds_more_and_curves_are_drawn(fleet_sim, tmp_path):
    svg = tmp_path / "curves.svg"
    done = fleet_sim("--replicas", 8, "--loads", "0.2,0.4", "--seconds", 60, "--svg", svg, "--json")
    assert done.returncode == 0, done.stderr
    rows = json.loads(done.stdout)
    assert [row["policy"] for row in rows] == ["round_robin", "kv_router"] * 2
    for round_robin, kv_router in zip(rows[::2], rows[1::2]):
        assert round_robin["requests"] == kv_router["requests"] > 50
        assert kv_router["hit_rate"] > 1.3 * round_robin["hit_rate"] > 0
    marks = [mark.get("class") for mark in ElementTree.parse(svg).iter("{http://www.w3.org/2000/svg}path")]
    assert marks == ["line c0", "line c1"] * 2


def test_a_file_without_costs_is_refused(fleet_sim, tmp_path):
    np.savez(tmp_path / "other.npz", x=[1.0])
    done = fleet_sim("--replicas", 2, "--loads", 1, "--seconds", 1, costs=tmp_path / "other.npz")
    assert done.returncode == 1 and "prefill_isl" in done.stderr, done.stderr

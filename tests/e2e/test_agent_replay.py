"""A short run of bench/agent_replay.py against octavo with a tiny model."""

import json
import subprocess
import sys

import pytest

from conftest import REPO
from prefix_replay import make_long_context


@pytest.fixture(scope="module")
def replayed(octavo, tmp_path_factory) -> tuple[list[dict], str]:
    folder = tmp_path_factory.mktemp("agents")
    model = make_long_context(folder / "model", "llama", context=16384)
    command = [
        sys.executable,
        REPO / "bench" / "agent_replay.py",
        model,
        "--only",
        "octavo",
        "--octavo",
        octavo,
        "--turns",
        "6",
        "--scale",
        "0.1",
        "--context",
        "16384",
        "--json",
        folder / "turns.jsonl",
    ]
    done = subprocess.run(command, capture_output=True, text=True, timeout=120)
    assert done.returncode == 0, done.stderr
    return [json.loads(line) for line in (folder / "turns.jsonl").read_text().splitlines()], done.stdout


def test_every_turn_has_a_line_and_the_server_has_one(replayed):
    lines, printed = replayed
    *turns, server = lines
    assert [turn["turn"] for turn in turns] == list(range(1, 9))
    assert all(0 < turn["first_token"] <= turn["seconds"] for turn in turns)
    assert server["server"] == "octavo" and server["restart"] > 0
    assert "| of them computed" in printed


def test_what_both_prompts_share_is_not_computed_again(replayed):
    turns = {turn["turn"]: turn for turn in replayed[0][:-1]}
    assert turns[1]["cached_tokens"] == 0
    for number in (2, 4, 5, 6):  # the coder's, with its request worded differently and an output removed
        assert turns[number]["cached_tokens"] > 0.5 * turns[1]["prompt_tokens"], turns[number]


def test_a_restart_keeps_both_conversations(replayed):
    after = [turn for turn in replayed[0][:-1] if turn["event"] == "restart"]
    assert {turn["agent"] for turn in after} == {"coder", "reviewer"}
    assert all(turn["cached_tokens"] > 0.8 * turn["prompt_tokens"] for turn in after), after

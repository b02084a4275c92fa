"""Greedy output of a real model, compared token by token with mlx-lm's (tools/make_goldens.py)."""

import json
import subprocess
import sys
from pathlib import Path

import pytest
from conftest import REPO, run_json
from slow_tests import SLOW

GOLDENS = json.loads((Path(__file__).parent / "goldens" / "smollm2.json").read_text())


def generate(octavo, model, case: dict, *options) -> dict:
    command = [octavo, "generate", model, "--dtype", "float32", "--temperature", "0", "--json", "-p", case["prompt"]]
    return run_json([*command, "--chat" if case["chat"] else "--raw", *options])


@pytest.mark.parametrize("case", GOLDENS["cases"], ids=lambda case: case["prompt"][:24])
def test_greedy_answer_is_the_golden_one(case, octavo, smollm2_gguf):
    assert smollm2_gguf.name == GOLDENS["model"]
    got = generate(octavo, smollm2_gguf, case, "--max-tokens", GOLDENS["max_tokens"], "--ignore-eos")
    assert got["prompt_token_ids"] == case["prompt_token_ids"]
    assert got["token_ids"] == case["token_ids"], f"the golden's narrowest lead is {case['smallest_gap']}"
    assert got["finish_reason"] == "length"


def test_capital_of_france(octavo, smollm2_gguf):
    """Sets only the temperature, so the default dtype and the model's own end-of-text token apply."""
    done = subprocess.run(
        [octavo, "generate", smollm2_gguf, "-p", "Name the capital city of France.", "--chat", "--temperature", "0"],
        capture_output=True, text=True, timeout=120)
    assert done.returncode == 0, done.stderr
    assert "Paris" in done.stdout


@pytest.mark.skipif(not SLOW, reason="minutes of mlx-lm; set OCTAVO_SLOW_TESTS=1")
def test_goldens_are_regenerable():
    done = subprocess.run([sys.executable, REPO / "tools" / "make_goldens.py", "--check"], capture_output=True, text=True)
    assert done.returncode == 0, done.stdout + done.stderr

"""The engine under load with whole models: output is bit-identical regardless of concurrent requests.

To run these on real shapes (docs/testing.md has the results):
    build/release/tests/needle "$(.venv/bin/python tools/smollm2_path.py)" --trials 500
    build/release/tests/exhaustion MODEL;  build/release/tests/shared_prefix MODEL
    build/release/tests/soak MODEL;        build/release/tests/long_context MODEL
"""

import json
import os
import subprocess

import pytest
from slow_tests import repeats


@pytest.fixture
def run(build_dir):
    def run(program, model, *arguments, isa=None):
        environment = os.environ | ({"OCTAVO_ISA": isa} if isa else {})
        done = subprocess.run([build_dir / "tests" / program, model, *map(str, arguments)], env=environment,
                              capture_output=True, text=True)
        if isa and "this machine has" in done.stderr:
            pytest.skip(f"this machine has no {isa}")
        assert done.returncode == 0, done.stdout + done.stderr
        return json.loads(done.stdout)

    return run


def test_a_needle_among_63_neighbours(run, make_model):
    trials = repeats(24, 200)
    found = run("needle", make_model("qwen3", dtype="bfloat16"), "--trials", trials)
    assert found["mismatches"] == 0 and found["needles"] == 2 * trials
    # Preemptions, prefix hits and aborts did occur.
    assert found["preemptions"] > trials / 2 and found["needles_with_prefix_hit"] > trials / 4 and found["aborted"] > trials / 2


@pytest.mark.parametrize("isa", ["scalar", "avx2", "avx512", "avx512-bf16", "neon"])
def test_a_needle_on_every_instruction_set(run, make_model, isa):
    run("needle", make_model("llama"), "--trials", 6, "--longest", 60, "--tokens", 40, isa=isa)


def test_a_needle_behind_sliding_windows(run, make_model):
    run("needle", make_model("mistral", window=24), "--trials", repeats(10, 40))


def test_a_needle_in_int8_pages_and_4_bit_weights(run, make_model):
    run("needle", make_model("qwen3", format="mlx", bits=4, group_size=32), "--kv-dtype", "int8", "--trials", repeats(10, 30))


def test_a_failed_step_ends_one_request_and_no_neighbour(run, make_model):
    # The step fails once with its neighbours and once alone, and more often if the requests arrive at different times.
    assert run("recovery", make_model("qwen3"))["failed_steps"] >= 2


def test_64_requests_on_pages_for_8(run, make_model):
    assert run("exhaustion", make_model("qwen3"))["preemptions"] > 0


def test_a_shared_prefix_is_computed_once(run, make_model):
    found = run("shared_prefix", make_model("qwen3"), 1500, 50)
    assert found["prompt_rows_at_once"] <= found["prompt_rows_allowed"]


def test_memory_stays_inside_the_plan(build_dir, make_model):
    """Does not check growth: for a tiny model, the allocator's overhead would dominate. Use a real model by hand."""
    done = subprocess.run([build_dir / "tests" / "soak", make_model("qwen3"), "400", "100"], capture_output=True, text=True)
    found = json.loads(done.stdout)
    assert found["resident_at_the_end"] < found["plan_bytes"]
    assert found["step_peak_bytes"] <= found["step_planned_bytes"]

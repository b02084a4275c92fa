"""Output is bit-identical regardless of load, for whole models.

To run 200 trials each on real shapes:
    build/release/tests/batch_trials "$(tools/smollm2_path.py)" --trials 200
"""

import json
import os
import subprocess

import pytest
from slow_tests import repeats

ISAS = ["scalar", "avx2", "avx512", "avx512-bf16", "amx", "neon"]


def trials(build_dir, model, *flags, isa=None):
    environment = os.environ | ({"OCTAVO_ISA": isa} if isa else {})
    done = subprocess.run([build_dir / "tests" / "batch_trials", model, *flags], env=environment,
                          capture_output=True, text=True)
    if isa and "this machine has" in done.stderr:
        pytest.skip(f"this machine has no {isa}")
    assert done.returncode == 0, done.stdout + done.stderr
    answer = json.loads(done.stdout)
    assert answer["mismatches"] == 0 and answer["compared"] >= 2 * answer["trials"]
    return answer


@pytest.mark.parametrize("dtype", ["float32", "bfloat16", "float16"])
def test_random_batches(build_dir, make_model, dtype):
    trials(build_dir, make_model("qwen3"), "--dtype", dtype, "--trials", str(repeats(50, 200)))


@pytest.mark.parametrize("isa", ISAS)
def test_every_instruction_set(build_dir, make_model, isa):
    answer = trials(build_dir, make_model("llama"), "--dtype", "bfloat16", "--trials", str(repeats(3 if isa == "scalar" else 10, 40)), isa=isa)
    assert answer["isa"] == isa


def test_quantised_weights(build_dir, make_model):
    model = make_model("qwen3", format="mlx", bits=4, group_size=32)
    trials(build_dir, model, "--dtype", "bfloat16", "--trials", str(repeats(20, 60)))


def test_int8_pages(build_dir, make_model):
    trials(build_dir, make_model("qwen3"), "--dtype", "bfloat16", "--kv-dtype", "int8", "--trials", str(repeats(20, 60)))


def test_long_prompts_and_windows(build_dir, make_model):
    trials(build_dir, make_model("mistral"), "--dtype", "bfloat16", "--longest", "700", "--trials", "12")

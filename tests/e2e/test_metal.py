"""Runs whole models through the Metal kernels in the simulator, with the host code and kernel sources that run on a Mac.

docs/metal.md lists the simulator's limits. OCTAVO_SLOW_TESTS=1 runs every family's cases."""

import functools

import numpy as np
import pytest
from conftest import assert_close, prompts_of, run_json
from families import CASES
from modelkit import oracle
from slow_tests import SLOW, repeats

TOLERANCE = 3e-4  # of a logit, all in float32; the CPU kernels' is 1e-4, but sums have another order here
PROMPTS = prompts_of(1, 9, 40)
# Softmax, state and latent layers, for the slower tests.
KINDS = ["qwen3", "qwen3.5", "deepseek_v2-lite"]


@functools.cache
def oracle_logits(folder):
    return oracle.folder_logits(folder, PROMPTS)


# Covers each kind of layer and the main settings; all cases would take minutes.
IN_CI = ["qwen3", "llama-biases", "smollm2", "gpt_oss", "deepseek_v3-mlx", "qwen3.5", "qwen3.5-moe-mlx", "lfm2", "gemma4", "mixtral",
         "nemotron_h"]


@pytest.fixture(params=CASES if SLOW else IN_CI)
def model(request, make_model):
    case = CASES[request.param]
    return make_model(case.family, **case.recipe)


def test_logits(model, dump_logits):
    assert_close(dump_logits(model, PROMPTS, kernels="metal", batch=True).logits, oracle_logits(model), TOLERANCE)


@pytest.fixture(params=KINDS)
def one_of_a_kind(request, make_model):
    return make_model(request.param)


@pytest.mark.parametrize("dtype", ["float16", "bfloat16"] if SLOW else ["bfloat16"])
def test_bits_depend_on_the_sequence_only(one_of_a_kind, dtype, dump_logits):
    """They do not depend on other sequences, chunks or the page size, if rows of a matrix product are independent, as here."""
    alone = dump_logits(one_of_a_kind, PROMPTS, dtype=dtype, kernels="metal").logits
    other = dump_logits(one_of_a_kind, PROMPTS, dtype=dtype, kernels="metal", block_tokens=48, chunk=7, batch=True).logits
    assert all(np.array_equal(a, b) for a, b in zip(alone, other))


def test_a_request_has_its_bits_in_company(one_of_a_kind, build_dir):
    """Runs the whole engine with a pool for three of five sequences. Nothing is preempted in so few tokens."""
    result = run_json([build_dir / "tests" / "needle", one_of_a_kind, "--metal", "--dtype", "bfloat16", "--trials", 1, "--tokens", 3,
                       "--neighbours", 4, "--longest", repeats(16, 40), "--pool-sequences", 3])
    assert result["needles"] == 2 and result["mismatches"] == 0, result
    assert any(kernel in result["launches"] for kernel in ("linear_rows.metal", "integer_vector.metal")), result
    assert "linear.cpu" not in result["launches"], result

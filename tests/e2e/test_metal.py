"""Whole models through the Metal kernels, in the simulator: the host code and the kernels' text that run on a Mac.

What the simulator cannot show is said in docs/metal.md. OCTAVO_METAL_ALL=1 runs every family's cases."""

import functools
import os

import numpy as np
import pytest
from conftest import assert_close, prompts_of, run_json
from families import CASES
from modelkit import oracle

TOLERANCE = 3e-4  # of a logit, all in float32; the CPU's kernels keep 1e-4, sums have another order here
PROMPTS = prompts_of(1, 9, 40)
# Softmax, state and latent layers, for what takes longer.
KINDS = ["qwen3", "qwen3.5", "deepseek_v2-lite"]


@functools.cache
def oracle_logits(folder):
    return oracle.folder_logits(folder, PROMPTS)


# One of each kind of layer and of the larger switches; all of them take minutes.
IN_CI = ["qwen3", "llama-biases", "smollm2", "gpt_oss", "deepseek_v3-mlx", "qwen3.5", "qwen3.5-moe-mlx", "lfm2", "gemma4", "mixtral"]


@pytest.fixture(params=CASES if "OCTAVO_METAL_ALL" in os.environ else IN_CI)
def model(request, make_model):
    case = CASES[request.param]
    return make_model(case.family, **case.recipe)


def test_logits(model, dump_logits):
    assert_close(dump_logits(model, PROMPTS, kernels="metal", batch=True).logits, oracle_logits(model), TOLERANCE)


@pytest.fixture(params=KINDS)
def one_of_a_kind(request, make_model):
    return make_model(request.param)


@pytest.mark.parametrize("dtype", ["float16", "bfloat16"])
def test_bits_depend_on_the_sequence_only(one_of_a_kind, dtype, dump_logits):
    """Not on neighbours, chunks or the page size, as far as the simulator's matrix product is a function of its rows."""
    alone = dump_logits(one_of_a_kind, PROMPTS, dtype=dtype, kernels="metal").logits
    other = dump_logits(one_of_a_kind, PROMPTS, dtype=dtype, kernels="metal", block_tokens=48, chunk=7, batch=True).logits
    assert all(np.array_equal(a, b) for a, b in zip(alone, other))


def test_a_request_has_its_bits_in_company(one_of_a_kind, build_dir):
    """The whole engine: scheduler, prefix cache and preemption over a pool that is too small."""
    result = run_json([build_dir / "tests" / "needle", one_of_a_kind, "--metal", "--dtype", "bfloat16", "--trials", 1, "--tokens", 3,
                       "--neighbours", 4, "--longest", 40, "--pool-sequences", 3])
    assert result["needles"] == 2 and result["mismatches"] == 0, result
    assert result["launches"]["linear_rows.metal"] > 0 and "linear.cpu" not in result["launches"], result

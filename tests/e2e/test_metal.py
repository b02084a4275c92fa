"""Whole models through the Metal kernels, in the simulator: the host code and the kernels' text that run on a Mac.

What the simulator cannot show is said in docs/metal.md."""

import functools
import json
import subprocess

import numpy as np
import pytest
from conftest import assert_close, prompts_of
from families import CASES
from modelkit import oracle

TOLERANCE = 3e-4  # of a logit, all in float32; the CPU's kernels keep 1e-4, sums have another order here
PROMPTS = prompts_of(1, 9, 40)
# One of each kind of layer, for what takes longer.
KINDS = ["qwen3", "gpt_oss", "deepseek_v3", "qwen3_5", "gemma3"]


@functools.cache
def oracle_logits(folder):
    return oracle.folder_logits(folder, PROMPTS)


@pytest.fixture(params=CASES)
def model(request, make_model):
    case = CASES[request.param]
    return make_model(case.family, **case.recipe)


def test_logits(model, dump_logits):
    assert_close(dump_logits(model, PROMPTS, kernels="metal", batch=True).logits, oracle_logits(model), TOLERANCE)

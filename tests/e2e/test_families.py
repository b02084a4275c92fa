"""Compares every family with its oracle: logits (prefilled whole, in chunks and token by token) and greedy output.

All run in float32 on random tiny checkpoints with every setting of the real config. TOLERANCE is the largest allowed absolute
difference of any logit at any position."""

import functools
import json

import numpy as np
import pytest
from conftest import assert_close, prompts_of, run_json
from families import CASES
from modelkit import oracle

TOLERANCE = 1e-4
PROMPTS = prompts_of(1, 63, 64, 65, 300)
GREEDY_TOKENS = 32


@functools.cache
def oracle_logits(folder):
    return oracle.folder_logits(folder, PROMPTS)


@pytest.fixture(params=CASES)
def model(request, make_model):
    case = CASES[request.param]
    return make_model(case.family, **case.recipe)


@pytest.mark.parametrize("how", [dict(), dict(chunk=64), dict(chunk=7, batch=True), dict(chunk=1)],
                         ids=["whole", "chunked", "mixed", "token-by-token"])
def test_logits(model, how, dump_logits):
    assert_close(dump_logits(model, PROMPTS, **how).logits, oracle_logits(model), TOLERANCE)


def test_reference_kernels(model, dump_logits):
    assert_close(dump_logits(model, PROMPTS, kernels="reference").logits, oracle_logits(model), TOLERANCE)


@pytest.mark.parametrize("dtype", ["float32", "bfloat16"])
def test_bits_depend_on_the_sequence_only(model, dtype, dump_logits):
    """They do not depend on other sequences, chunks or the page size."""
    alone = dump_logits(model, PROMPTS, dtype=dtype).logits
    for options in [dict(batch=True), dict(chunk=1), dict(chunk=16, batch=True), dict(block_tokens=48, chunk=100)]:
        other = dump_logits(model, PROMPTS, dtype=dtype, **options).logits
        assert all(np.array_equal(a, b) for a, b in zip(alone, other)), options


def test_greedy_tokens(model, octavo):
    """The whole engine, including pages and prefix cache, generates the oracle's most likely tokens."""
    prompt = PROMPTS[2]
    line = json.dumps({"prompt_token_ids": prompt, "max_tokens": GREEDY_TOKENS, "temperature": 0, "ignore_eos": True})
    answer = run_json([octavo, "generate", model, "--dtype", "float32", "--prompts", "-"], line)["choices"][0]["token_ids"]
    assert len(answer) == GREEDY_TOKENS
    seen = oracle.folder_logits(model, [prompt + answer])[0]
    assert seen.argmax(axis=1)[len(prompt) - 1:-1].tolist() == answer

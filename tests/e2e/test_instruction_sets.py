"""The processor does not change an answer: all instruction sets of this machine give the same bits, logits and answers."""

import json
import os
import urllib.request

import numpy as np
import pytest
from conftest import prompts_of
from families import CASES
from slow_tests import repeats

import running_server

PROMPTS = prompts_of(300)


def same_bits(found: np.ndarray, expected: np.ndarray) -> bool:
    return np.array_equal(found.view(np.uint32), expected.view(np.uint32))


@pytest.fixture
def differing_sets(instruction_sets, dump_logits):
    """differing_sets(model, dtype) returns the instruction sets whose logits differ from those of the best one."""

    def run(model, dtype: str, prompts=PROMPTS) -> list[str]:
        *others, best = (dump_logits(model, prompts, dtype=dtype, isa=isa).logits[0] for isa in instruction_sets)
        return [isa for isa, found in zip(instruction_sets, others) if not same_bits(found, best)]

    return run


@pytest.mark.parametrize("name", CASES)
def test_logits_of_every_family(name, make_model, differing_sets):
    case = CASES[name]
    assert differing_sets(make_model(case.family, **case.recipe), "bfloat16") == []


@pytest.mark.parametrize("dtype", ["bfloat16", "float32"])
def test_logits_of_smollm2(dtype, smollm2_gguf, differing_sets):
    assert differing_sets(smollm2_gguf, dtype, prompts_of(repeats(70, 300))) == []


@pytest.mark.skipif("OCTAVO_ARM64_LOGITS" not in os.environ, reason="run by tools/test_neon_models.sh")
@pytest.mark.parametrize("name", ["qwen3", "qwen3.5-mlx-4bit", "qwen3_moe-mlx", "deepseek_v3", "gemma3", "gpt_oss"])
def test_logits_on_arm64(name, make_model, dump_logits):
    case = CASES[name]
    model = make_model(case.family, **case.recipe)
    here, arm64 = (dump_logits(model, PROMPTS, dtype="bfloat16", isa=isa).logits[0] for isa in (None, "neon"))
    assert same_bits(arm64, here)


def answer(url: str, seed: int) -> dict:
    """One seeded answer of the server, with logprobs and without what differs between any two answers."""
    body = {"messages": [{"role": "user", "content": f"Tell me something about the number {seed}."}], "seed": seed,
            "temperature": 0.9, "max_tokens": 48, "logprobs": True, "top_logprobs": 3}
    request = urllib.request.Request(f"{url}/v1/chat/completions", json.dumps(body).encode(), {"Content-Type": "application/json"})
    with urllib.request.urlopen(request, timeout=300) as response:
        got = json.load(response)
    return {key: got[key] for key in ("system_fingerprint", "choices")}


def test_seeded_answers_of_two_servers(octavo, instruction_sets, smollm2_gguf):
    """Texts, logprobs and fingerprint, byte for byte."""
    answers = {}
    slower = instruction_sets[min(1, len(instruction_sets) - 2)]  # AVX2, if there are more than two
    for isa in (slower, instruction_sets[-1]):
        with running_server.running(octavo, smollm2_gguf, "--max-model-len", "1024", env={"OCTAVO_ISA": isa}) as server:
            answers[isa] = [answer(server.url, seed) for seed in range(repeats(8, 100))]
    first, second = answers.values()
    assert first == second
    assert first[0]["system_fingerprint"].startswith("fp_v1_")

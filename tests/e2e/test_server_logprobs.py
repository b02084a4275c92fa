"""Compares log probabilities of /v1/completions with mlx-lm's, which runs the same weights in float32."""

import json
import urllib.request

import mlx.core as mx
import numpy as np
import running_server
from conftest import prompts_of
from mlx.utils import tree_map
from modelkit import oracle

(PROMPT,) = prompts_of(40, seed=9)


def log_probabilities(logits: np.ndarray) -> np.ndarray:
    shifted = logits.astype(np.float64) - logits.max(axis=1, keepdims=True)
    return shifted - np.log(np.exp(shifted).sum(axis=1, keepdims=True))


def served_choice(octavo, model) -> dict:
    body = {"prompt": PROMPT, "max_tokens": 1, "temperature": 0, "echo": True, "logprobs": 20, "prompt_logprobs": 20,
            "return_token_ids": True}
    with running_server.running(octavo, model, "--max-model-len", 256) as server:
        request = urllib.request.Request(server.url + "/v1/completions", json.dumps(body).encode(),
                                         {"Content-Type": "application/json"})
        with urllib.request.urlopen(request, timeout=60) as answer:
            return json.load(answer)["choices"][0]


def told_probabilities(choice: dict) -> dict[tuple[int, int], float]:
    """Maps (position, token) to the log probability of that token after that position."""
    tokens = PROMPT + choice["token_ids"]
    scored = choice["logprobs"]["token_logprobs"]
    assert len(scored) == len(tokens) == len(PROMPT) + 1
    told = {(i - 1, tokens[i]): scored[i] for i in range(1, len(tokens))}
    for i, entry in enumerate(choice["prompt_logprobs"][1:]):
        told |= {(i, int(token)): value["logprob"] for token, value in entry.items()}
    assert len(told) > 780
    return told


def test_float32_has_mlx_lms_probabilities(octavo, make_model):
    model = make_model("llama")
    choice = served_choice(octavo, model)
    wanted = log_probabilities(oracle.folder_logits(model, [PROMPT])[0])
    assert max(abs(value - wanted[at]) for at, value in told_probabilities(choice).items()) < 1e-4
    assert choice["token_ids"] == [wanted[-1].argmax()]


def test_bfloat16_is_as_near_to_float32_as_mlx_lms_own(octavo, make_model):
    """The bound is mlx-lm's own error in bfloat16, not a constant."""
    model = make_model("llama", dtype="bfloat16")
    wanted = log_probabilities(oracle.folder_logits(model, [PROMPT])[0])
    config = json.loads((model / "config.json").read_text())
    half = oracle.load(config, oracle.folder_weights(model))
    half.update(tree_map(lambda array: array.astype(mx.bfloat16), half.parameters()))
    halves = log_probabilities(np.array(half(mx.array([PROMPT]))[0].astype(mx.float32)))
    told = told_probabilities(served_choice(octavo, model))
    errors = [abs(value - wanted[at]) for at, value in told.items()]
    theirs = [abs(halves[at] - wanted[at]) for at in told]
    assert max(theirs) > 1e-3  # bfloat16 was used
    assert max(errors) <= max(theirs) and np.mean(errors) <= np.mean(theirs), (max(errors), max(theirs))
    assert np.mean(errors) < 1e-2

"""Encoders through the server: vectors against NumPy's in float64, and the same bits alone, in company and with other threads."""

import base64
import subprocess
from concurrent.futures import ThreadPoolExecutor

import embedders
import http_json
import numpy as np
import pytest
import running_server
from conftest import prompts_of
from encoder_cases import CASES
from encoder_oracle import Encoder
from modelkit import gguf_encoder, llama_cpp

LENGTHS = (1, 2, 15, 16, 17, 64, 65, 300)
TOLERANCE = 1e-5


@pytest.fixture(scope="module", params=CASES)
def folder(request, make_model):
    return make_model(request.param)


@pytest.fixture(scope="module")
def server(octavo, folder):
    with running_server.running(octavo, folder, "--dtype", "float32") as running:
        yield running


def vectors(server, inputs: list[list[int]], **fields) -> list[np.ndarray]:
    status, answer = http_json.post(server.url + "/v1/embeddings", {"input": inputs} | fields)
    assert status == 200, answer
    return [np.array(entry["embedding"]) for entry in answer["data"]]


def bits(server, inputs: list[list[int]]) -> list[bytes]:
    status, answer = http_json.post(server.url + "/v1/embeddings", {"input": inputs, "encoding_format": "base64"})
    assert status == 200, answer
    return [base64.b64decode(entry["embedding"]) for entry in answer["data"]]


def prompts() -> list[list[int]]:
    return prompts_of(*LENGTHS, seed=9)


def test_vectors_are_numpys(server, folder):
    oracle = Encoder(folder)
    for prompt, got in zip(prompts(), vectors(server, prompts())):
        wanted = oracle.vector(prompt)  # vLLM's default: the first token, normalised
        assert np.abs(got - wanted).max() < TOLERANCE, len(prompt)
        assert abs(np.linalg.norm(got) - 1) < 1e-6
    [raw] = vectors(server, prompts()[-1:], use_activation=False)
    wanted = oracle.vector(prompts()[-1], normalize=False)
    assert np.abs(raw - wanted).max() < TOLERANCE * np.abs(wanted).max()


@pytest.mark.parametrize("mode, pooling", [("mean_tokens", "mean"), ("cls_token", "first"), ("lasttoken", "last")])
def test_pooling_follows_the_modules(octavo, folder, tmp_path, mode, pooling):
    model = embedders.dress(folder, tmp_path / "dressed", mode, ends_with_eos=False)
    oracle = Encoder(folder)
    with running_server.running(octavo, model, "--dtype", "float32") as running:
        for prompt, got in zip(prompts(), vectors(running, prompts())):
            assert np.abs(got - oracle.vector(prompt, pooling)).max() < TOLERANCE, len(prompt)


def test_a_vector_has_the_same_bits_in_any_company(octavo, server, folder):
    alone = [bits(server, [prompt])[0] for prompt in prompts()]
    assert len(set(alone)) == len(alone)
    assert bits(server, prompts()) == alone
    with ThreadPoolExecutor(8) as pool:
        assert list(pool.map(lambda prompt: bits(server, [prompt])[0], prompts())) == alone
    with running_server.running(octavo, folder, "--dtype", "float32", "--threads", 1, "--block-size", 8) as other:
        assert bits(other, prompts()[::-1])[::-1] == alone


def test_a_later_token_changes_the_first_row(server):
    prompt = prompts()[3]
    one, other = vectors(server, [prompt, [*prompt[:-1], (prompt[-1] + 1) % 480]])
    assert np.abs(one - other).max() > 1e-4


def test_bfloat16_is_near(octavo, folder):
    oracle = Encoder(folder)
    with running_server.running(octavo, folder, "--dtype", "bfloat16") as running:
        for prompt, got in zip(prompts(), vectors(running, prompts())):
            assert got @ oracle.vector(prompt) > 0.999, len(prompt)


def test_a_prompt_ends_with_the_table_of_positions(octavo, make_model):
    """320 rows, of which XLM-RoBERTa's first two are not for tokens."""
    for family in ("bert", "xlm-roberta"):
        model = make_model(family)
        with running_server.running(octavo, model, "--dtype", "float32") as running:
            [whole] = prompts_of(320, seed=4)
            [got] = vectors(running, [whole])
            assert np.abs(got - Encoder(model).vector(whole)).max() < TOLERANCE
            assert http_json.post(running.url + "/v1/embeddings", {"input": [prompts_of(321)[0]]})[0] == 400


@pytest.mark.parametrize("family", [name for name, case in CASES.items() if case.gguf])
@pytest.mark.parametrize("pooling", ["first", "mean"])
def test_gguf_files(octavo, make_model, tmp_path, family, pooling):
    """Against NumPy, and against llama.cpp, which computes GELU from a table of half-precision numbers."""
    model = make_model(family)
    kind = {"first": gguf_encoder.FIRST, "mean": gguf_encoder.MEAN}[pooling]
    path = gguf_encoder.write(tmp_path / "model.gguf", model, kind)
    oracle = Encoder(model)
    with running_server.running(octavo, path, "--dtype", "float32") as running:
        got = vectors(running, prompts(), use_activation=False)
    for prompt, one, other in zip(prompts(), got, llama_cpp.vectors(path, prompts())):
        wanted = oracle.vector(prompt, pooling, normalize=False)
        assert np.abs(one - wanted).max() < TOLERANCE * np.abs(wanted).max(), len(prompt)
        assert np.abs(one - other).max() < 5e-3, len(prompt)


def test_an_encoder_does_not_generate(octavo, make_model):
    done = subprocess.run(
        [octavo, "serve", make_model("bert"), "--port", "0", "--runner", "generate"], capture_output=True, text=True, timeout=60
    )
    assert done.returncode == 1 and "is an encoder" in done.stderr


@pytest.mark.parametrize(
    "key, value", [("position_embedding_type", "relative_key"), ("hidden_act", "quick_gelu"), ("is_decoder", True)]
)
def test_what_changes_numbers_is_refused(octavo, make_model, tmp_path, key, value):
    model = embedders.dress(make_model("bert"), tmp_path / "odd", ends_with_eos=False, **{key: value})
    done = subprocess.run([octavo, "serve", model, "--port", "0"], capture_output=True, text=True, timeout=60)
    assert done.returncode == 1 and key in done.stderr

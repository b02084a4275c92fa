"""/v1/embeddings with generated models: against mlx-lm's rows, through OpenAI's client, and bit-identical regardless of
load."""

import base64
import json
import subprocess
import urllib.request
from concurrent.futures import ThreadPoolExecutor

import embedders
import numpy as np
import openai
import pytest
import running_server
from conftest import prompts_of
from tokenizers import Tokenizer

LENGTHS = (1, 63, 64, 65, 300)
TEXT = "The capital of France is Paris."
MATRYOSHKA = ("--hf-overrides", '{"is_matryoshka": true}')


@pytest.fixture(scope="module")
def source(make_model):
    return make_model("qwen3")


@pytest.fixture(scope="module")
def oracle(source):
    return embedders.Oracle(source)


@pytest.fixture(scope="module")
def folder(source, tmp_path_factory):
    """A model in the published form of Qwen3-Embedding-0.6B."""
    return embedders.dress(source, tmp_path_factory.mktemp("last") / "embedder", flat=True)


@pytest.fixture(scope="module")
def server(octavo, folder):
    with running_server.running(octavo, folder, "--dtype", "float32", "--max-model-len", 512, *MATRYOSHKA) as running:
        yield running


@pytest.fixture(scope="module")
def mean_server(octavo, source, tmp_path_factory):
    """Mean pooling with chunked prefill: a text of 300 tokens takes many steps, which it shares with others."""
    model = embedders.dress(source, tmp_path_factory.mktemp("mean") / "embedder", "mean_tokens")
    flags = ("--max-num-batched-tokens", 48, "--max-num-seqs", 3, "--block-size", 8)
    with running_server.running(octavo, model, "--dtype", "float32", "--max-model-len", 512, *flags) as running:
        yield running


@pytest.fixture(scope="module")
def client(server):
    return openai.OpenAI(base_url=server.url + "/v1", api_key="none", max_retries=0)


def ask(server, body: dict, path: str = "/v1/embeddings"):
    """Returns the status, headers and response."""
    request = urllib.request.Request(server.url + path, json.dumps(body).encode(), {"Content-Type": "application/json"})
    try:
        with urllib.request.urlopen(request, timeout=60) as answer:
            return answer.status, answer.headers, json.loads(answer.read())
    except urllib.error.HTTPError as error:
        return error.code, error.headers, json.loads(error.read())


def vectors(server, inputs, **fields) -> list[np.ndarray]:
    status, _, answer = ask(server, {"input": inputs} | fields)
    assert status == 200, answer
    assert [entry["index"] for entry in answer["data"]] == list(range(len(answer["data"])))
    return [np.array(entry["embedding"]) for entry in answer["data"]]


def bits(server, inputs, **fields) -> list[bytes]:
    status, _, answer = ask(server, {"input": inputs, "encoding_format": "base64"} | fields)
    assert status == 200, answer
    return [base64.b64decode(entry["embedding"]) for entry in answer["data"]]


def metric(server, name: str, labels: str = "") -> float:
    with urllib.request.urlopen(server.url + "/metrics", timeout=60) as answer:
        lines = answer.read().decode().splitlines()
    return sum(float(line.split()[-1]) for line in lines if line.startswith(name) and labels in line)


@pytest.mark.parametrize("length", LENGTHS)
def test_the_last_row_is_mlx_lms(server, oracle, length):
    [prompt] = prompts_of(length, seed=length)
    [got] = vectors(server, [prompt])
    assert np.abs(got - oracle.embed(prompt)).max() < 1e-5
    assert abs(np.linalg.norm(got) - 1) < 1e-6
    [raw] = vectors(server, [prompt], use_activation=False)
    wanted = oracle.embed(prompt, normalize=False)
    assert np.abs(raw - wanted).max() < 1e-5 * np.abs(wanted).max()


@pytest.mark.parametrize("length", LENGTHS)
def test_the_mean_is_mlx_lms(mean_server, oracle, length):
    [prompt] = prompts_of(length, seed=length)
    [got] = vectors(mean_server, [prompt])
    assert np.abs(got - oracle.embed(prompt, "mean_tokens")).max() < 1e-5


def test_a_vector_has_the_same_bits_in_any_company(server, mean_server):
    """Alone, in one request, in concurrent requests, and again with prefix cache hits."""
    shared = prompts_of(200, seed=3)[0]
    prompts = prompts_of(1, 17, 40, 300, 64, seed=2) + [shared, shared[:150] + [5], shared[:150] + [6, 7]]
    for running in (server, mean_server):
        alone = [bits(running, [prompt], cache_salt=f"salt {i}")[0] for i, prompt in enumerate(prompts)]
        assert bits(running, prompts) == alone
        with ThreadPoolExecutor(8) as pool:
            for _ in range(3):
                assert list(pool.map(lambda prompt, target=running: bits(target, [prompt])[0], prompts)) == alone
        assert len(set(alone)) == len(alone)
    assert metric(server, "vllm:prefix_cache_hits_total") > 0
    assert metric(mean_server, "vllm:prefix_cache_hits_total") == 0  # the mean needs every row


def test_chunks_and_blocks_do_not_show(octavo, folder, server):
    prompts = prompts_of(1, 33, 300, seed=8)
    flags = ("--dtype", "float32", "--max-model-len", 512, "--max-num-batched-tokens", 7, "--block-size", 8,
             "--no-enable-prefix-caching")
    for config in ('{"pooling_type": "LAST"}', '{"pooling_type": "MEAN"}'):
        with running_server.running(octavo, folder, *flags, "--pooler-config", config) as other:
            chunked = bits(other, prompts)
        with running_server.running(octavo, folder, *flags[:4], "--pooler-config", config) as whole:
            assert bits(whole, prompts) == chunked
    assert chunked != bits(server, prompts)  # the mean differs


def test_a_text_ends_with_the_token_its_tokenizer_adds(server, folder, oracle):
    ids = Tokenizer.from_file(str(folder / "tokenizer.json")).encode(TEXT).ids
    assert ids[-1] == 0 and ids[:-1] == Tokenizer.from_file(str(folder / "tokenizer.json")).encode(
        TEXT, add_special_tokens=False).ids
    _, _, answer = ask(server, {"input": TEXT})
    assert answer["usage"]["prompt_tokens"] == answer["usage"]["total_tokens"] == len(ids)
    assert np.abs(np.array(answer["data"][0]["embedding"]) - oracle.embed(ids)).max() < 1e-5
    assert bits(server, TEXT) == bits(server, [ids])
    assert bits(server, TEXT, add_special_tokens=False) == bits(server, [ids[:-1]])
    assert bits(server, TEXT, truncate_prompt_tokens=5) == bits(server, [ids[:4] + ids[-1:]])


def test_openais_client(client, oracle, folder):
    model = client.models.list().data[0].id
    one = client.embeddings.create(model=model, input=TEXT)  # requests base64 and decodes it
    numbers = client.embeddings.create(model=model, input=TEXT, encoding_format="float", user="me")
    assert one.object == "list" and one.model == model and one.data[0].object == "embedding"
    assert np.array_equal(np.float32(one.data[0].embedding), np.float32(numbers.data[0].embedding))
    tokenizer = Tokenizer.from_file(str(folder / "tokenizer.json"))
    assert np.abs(numbers.data[0].embedding - oracle.embed(tokenizer.encode(TEXT).ids)).max() < 1e-5
    many = client.embeddings.create(model=model, input=[TEXT, "Another one."])
    assert [entry.index for entry in many.data] == [0, 1]
    assert many.data[0].embedding == one.data[0].embedding
    tokens = client.embeddings.create(model=model, input=[5, 6, 7])
    assert np.abs(np.array(tokens.data[0].embedding) - oracle.embed([5, 6, 7])).max() < 1e-5
    assert client.embeddings.create(model=model, input=[[5, 6, 7], [8]]).data[0] == tokens.data[0]
    assert tokens.usage.prompt_tokens == tokens.usage.total_tokens == 3


def test_fewer_dimensions(client, oracle):
    cut = client.embeddings.create(model="embedder", input=[5, 6, 7], dimensions=32)
    assert np.abs(np.array(cut.data[0].embedding) - oracle.embed([5, 6, 7], dimensions=32)).max() < 1e-5
    with pytest.raises(openai.BadRequestError, match="vectors have 128"):
        client.embeddings.create(model="embedder", input="a", dimensions=129)


def test_a_model_not_made_for_fewer_dimensions_refuses_them(mean_server):
    status, _, answer = ask(mean_server, {"input": "a", "dimensions": 32})
    assert status == 400 and answer["error"]["param"] == "dimensions" and "is_matryoshka" in answer["error"]["message"]
    assert ask(mean_server, {"input": "a", "dimensions": 128})[0] == 200


def test_errors_are_openais(client, server):
    for body, param in (({"input": ""} | {"add_special_tokens": False}, "input"), ({"input": [[]]}, "input"),
                        ({"input": [512]}, "input"), ({"input": "word " * 600}, "input"), ({}, "input"),
                        ({"input": "a", "stream": True}, "stream")):
        status, _, answer = ask(server, body)
        assert status == 400 and answer["error"]["param"] == param, answer
        assert answer["error"]["type"] == "BadRequestError" and answer["error"]["code"] == 400
    with pytest.raises(openai.NotFoundError):
        client.embeddings.create(model="other", input="a")
    _, headers, _ = ask(server, {"input": "a", "user": "me"})
    assert headers["x-octavo-ignored"] == "user"
    assert len(vectors(server, [prompts_of(512)[0]])) == 1  # a prompt may fill the context
    assert ask(server, {"input": [prompts_of(513)[0]]})[0] == 400


def test_a_server_that_embeds_does_not_generate(server):
    for path, body in (("/v1/completions", {"prompt": "a"}),
                       ("/v1/chat/completions", {"messages": [{"role": "user", "content": "a"}]})):
        status, _, answer = ask(server, body, path)
        assert status == 400 and "/v1/embeddings" in answer["error"]["message"]


def test_a_server_that_generates_does_not_embed(octavo, source):
    with running_server.running(octavo, source, "--max-model-len", 256) as running:
        status, _, answer = ask(running, {"input": "a"})
        assert status == 400 and "--runner pooling" in answer["error"]["message"]
        assert ask(running, {"prompt": "a", "max_tokens": 2}, "/v1/completions")[0] == 200


def test_requests_are_counted(server):
    names = ("vllm:prompt_tokens_total", "vllm:generation_tokens_total", "vllm:request_prefill_time_seconds_count",
             "vllm:e2e_request_latency_seconds_count", "vllm:request_prompt_tokens_sum")
    before = [metric(server, name) for name in names]
    stopped = metric(server, "vllm:request_success_total", 'finished_reason="stop"')
    vectors(server, [[5, 6, 7], [8, 9]])
    assert [metric(server, name) - b for name, b in zip(names, before)] == [5, 0, 2, 2, 5]
    assert metric(server, "vllm:request_success_total", 'finished_reason="stop"') == stopped + 2


def test_without_files_the_last_token_is_the_default(octavo, source, oracle):
    with running_server.running(octavo, source, "--runner", "pooling", "--dtype", "float32") as running:
        [got] = vectors(running, [[5, 6, 7]])
    assert np.abs(got - oracle.embed([5, 6, 7])).max() < 1e-5


def test_a_model_without_a_head(octavo, make_model, tmp_path):
    """Like Qwen3-Embedding-8B: the config has untied embeddings, but the checkpoint has no lm_head, so it cannot generate."""
    source = make_model("qwen3", tied=False)
    model = embedders.dress(source, tmp_path / "headless", flat=True, headless=True)
    with running_server.running(octavo, model, "--dtype", "float32") as running:
        [got] = vectors(running, [[5, 6, 7]])
    assert np.abs(got - embedders.Oracle(source).embed([5, 6, 7])).max() < 1e-5
    done = subprocess.run([octavo, "serve", model, "--port", "0", "--runner", "generate"], capture_output=True, text=True,
                          timeout=60)
    assert done.returncode == 1 and "lm_head" in done.stderr


def test_bfloat16_is_near(octavo, folder, oracle):
    prompts = prompts_of(5, 100, seed=4)
    with running_server.running(octavo, folder, "--dtype", "bfloat16") as running:
        for got, prompt in zip(vectors(running, prompts), prompts):
            assert got @ oracle.embed(prompt) > 0.999


def test_what_cannot_be_pooled_is_refused_at_the_start(octavo, source, tmp_path):
    def message(model, *flags) -> str:
        done = subprocess.run([octavo, "serve", model, "--port", "0", *flags], capture_output=True, text=True, timeout=60)
        assert done.returncode == 1, done
        return done.stderr

    assert "pooling_mode_cls_token" in message(embedders.dress(source, tmp_path / "cls", "cls_token"))
    dense = embedders.dress(source, tmp_path / "dense", modules=["Transformer", "Pooling", "Dense"])
    assert "Dense" in message(dense)
    assert "is_causal" in message(embedders.dress(source, tmp_path / "both", is_causal=False))
    assert "sees no other token" in message(source, "--pooler-config", '{"pooling_type": "CLS"}')

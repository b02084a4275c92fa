"""LoRA adapters through the server: names, mixed requests, loading and unloading, caches, and what does not combine."""

import json
import subprocess
import threading
import urllib.error
import urllib.request
from concurrent.futures import ThreadPoolExecutor

import pytest
import running_server
from conftest import prompts_of
from modelkit import adapters
from modelkit.adapters import Adapter

UPDATES = {"VLLM_ALLOW_RUNTIME_LORA_UPDATING": "1"}
LIMITS = ("--max-model-len", "512", "--block-size", "16", "--dtype", "float32")
PROMPTS = prompts_of(40, 9, 70, 33)


@pytest.fixture(scope="module")
def model(make_model):
    return make_model("qwen3")


@pytest.fixture(scope="module")
def folders(model, tmp_path_factory):
    root = tmp_path_factory.mktemp("adapters")
    kinds = {"one": {}, "two": {"form": "mlx", "seed": 1, "vocabulary": ("embed_tokens",)}, "three": {"modules": adapters.ATTENTION, "seed": 2}}
    return {name: adapters.make(root / name, model, Adapter(**kind)) for name, kind in kinds.items()}


@pytest.fixture(scope="module")
def server(octavo, model, folders):
    modules = [f"{name}={folder}" for name, folder in folders.items() if name != "three"]
    modules.append(json.dumps({"name": "three", "path": str(folders["three"]), "base_model_name": "tiny"}))
    with running_server.running(octavo, model, "--enable-lora", "--max-loras", "2", "--max-cpu-loras", "4", *LIMITS,
                                "--lora-modules", *modules, env=UPDATES) as server:
        yield server


def ask(server, path: str, body: dict | None = None, timeout: float = 120):
    """Returns (status, text)."""
    request = urllib.request.Request(server.url + path, json.dumps(body).encode() if body is not None else None,
                                     {"Content-Type": "application/json"})
    try:
        with urllib.request.urlopen(request, timeout=timeout) as answer:
            return answer.status, answer.read().decode()
    except urllib.error.HTTPError as error:
        return error.code, error.read().decode()


def complete(server, model: str | None, prompt: list[int], **more) -> dict:
    body = {"prompt": prompt, "max_tokens": 24, "temperature": 0, "ignore_eos": True, "logprobs": 2, **more}
    status, text = ask(server, "/v1/completions", body | ({"model": model} if model else {}))
    assert status == 200, text
    return json.loads(text)


def bits(answer: dict) -> tuple:
    choice = answer["choices"][0]
    return choice["text"], json.dumps(choice["logprobs"])


def test_models_lists_adapters_with_their_base(server, folders):
    cards = {card["id"]: card for card in json.loads(ask(server, "/v1/models")[1])["data"]}
    base = next(iter(cards))
    assert cards["one"]["parent"] == cards["two"]["parent"] == base and cards["three"]["parent"] == "tiny"
    assert cards["one"]["root"] == str(folders["one"]) and cards[base]["parent"] is None
    assert json.loads(ask(server, "/v1/models/two")[1])["id"] == "two"
    status, text = ask(server, "/v1/completions", {"model": "four", "prompt": [1], "max_tokens": 1})
    assert status == 404 and "four" in text


def test_mixed_requests_have_the_bits_of_requests_alone(octavo, model, server):
    """With fewer slots than adapters, and a base that equals a server without LoRA."""
    names = [None, "one", "two", "three"]
    cases = [(name, prompt) for prompt in PROMPTS for name in names] * 2
    with ThreadPoolExecutor(len(cases)) as pool:
        mixed = list(pool.map(lambda case: complete(server, *case), cases))
    alone = {}
    for name, prompt in cases[:len(cases) // 2]:
        alone[name, len(prompt)] = bits(complete(server, name, prompt))
    for (name, prompt), answer in zip(cases, mixed):
        assert bits(answer) == alone[name, len(prompt)], name
        assert name is None or answer["model"] == name
    assert len({alone[name, 40] for name in names}) == 4
    with running_server.running(octavo, model, *LIMITS) as plain:
        for prompt in PROMPTS:
            assert bits(complete(plain, None, prompt)) == alone[None, len(prompt)]


def test_adapters_share_no_prefixes(server):
    prompt = prompts_of(64, seed=9)[0]

    def cached(name):
        return complete(server, name, prompt)["usage"]["prompt_tokens_details"]["cached_tokens"]

    assert [cached("one"), cached("one"), cached("two"), cached(None), cached("one")] == [0, 48, 0, 0, 48]


def test_grammars_and_all_apis_take_an_adapter(server):
    formed = complete(server, "one", PROMPTS[0], structured_outputs={"regex": "[ab]{6}"}, ignore_eos=False)
    assert set(formed["choices"][0]["text"]) <= {"a", "b"} and len(formed["choices"][0]["text"]) == 6
    chat = [{"role": "user", "content": "hello"}]
    for path, body in [("/v1/chat/completions", {"messages": chat, "max_tokens": 4}),
                       ("/v1/responses", {"input": "hello", "max_output_tokens": 4}),
                       ("/v1/messages", {"messages": chat, "max_tokens": 4})]:
        status, text = ask(server, path, body | {"model": "one"})
        assert status == 200 and json.loads(text)["model"] == "one", text


def test_an_answer_resumes_only_with_its_adapter(server):
    begun = complete(server, "one", PROMPTS[0], resumable=True, logprobs=None, max_tokens=12)
    facts = begun["resume"]
    assert "_lora_" in facts["system_fingerprint"] == begun["system_fingerprint"]
    tokens = begun["choices"][0]["token_ids"][:5]
    again = dict(resume=facts, resume_token_ids=[tokens], logprobs=None, max_tokens=12)
    assert complete(server, "one", PROMPTS[0], **again)["choices"][0]["text"] == begun["choices"][0]["text"]
    body = {"prompt": PROMPTS[0], "max_tokens": 12, "model": "two", "resume": facts, "resume_token_ids": [tokens]}
    assert ask(server, "/v1/completions", body)[0] == 409


def test_loading_and_unloading(server, model, folders, tmp_path):
    new = adapters.make(tmp_path / "new", model, Adapter(seed=7))
    other = adapters.make(tmp_path / "other", model, Adapter(seed=8))
    load = {"lora_name": "new", "lora_path": str(new)}
    assert ask(server, "/v1/load_lora_adapter", load) == (200, "Success: LoRA adapter 'new' added successfully.")
    status, text = ask(server, "/v1/load_lora_adapter", load)
    assert status == 400 and "already been loaded" in text
    status, text = ask(server, "/v1/load_lora_adapter", load | {"lora_name": "fifth"})
    assert status == 400 and "--max-cpu-loras" in text
    before = bits(complete(server, "new", PROMPTS[2]))
    assert bits(complete(server, "new", PROMPTS[2])) == before

    # An open request ends with the adapter it began with.
    done = {}
    streaming = threading.Thread(target=lambda: done.update(complete(server, "new", PROMPTS[1], max_tokens=400)))
    streaming.start()
    while 'running_lora_adapters="new"' not in ask(server, "/metrics")[1] and streaming.is_alive():
        pass
    assert ask(server, "/v1/unload_lora_adapter", {"lora_name": "new"}) == (
        200, "Success: LoRA adapter 'new' removed successfully.")
    assert ask(server, "/v1/completions", {"model": "new", "prompt": [1]})[0] == 404
    streaming.join()
    assert done["usage"]["completion_tokens"] == 400
    assert ask(server, "/v1/unload_lora_adapter", {"lora_name": "new"})[0] == 404

    # Another adapter under the same name uses none of the first one's pages.
    assert ask(server, "/v1/load_lora_adapter", {"lora_name": "new", "lora_path": str(other)})[0] == 200
    replaced = complete(server, "new", PROMPTS[2])
    assert bits(replaced) != before and replaced["usage"]["prompt_tokens_details"]["cached_tokens"] == 0
    assert ask(server, "/v1/unload_lora_adapter", {"lora_name": "new"})[0] == 200


def test_metrics_name_the_adapters(server):
    text = ask(server, "/metrics")[1]
    line = next(line for line in text.split("\n") if line.startswith("vllm:lora_requests_info{"))
    assert 'max_lora="2"' in line and 'running_lora_adapters=""' in line


def test_loading_is_off_by_default(octavo, model, folders):
    with running_server.running(octavo, model, "--enable-lora", *LIMITS) as server:
        body = {"lora_name": "one", "lora_path": str(folders["one"])}
        assert ask(server, "/v1/load_lora_adapter", body)[0] == 404
        assert any("adapters" in line for line in server.lines)


@pytest.mark.parametrize("flags, reason", [
    (["--lora-modules", "a=b"], "--enable-lora"),
    (["--enable-lora", "--lora-modules", "a=/nowhere"], "--lora-modules a: /nowhere"),
    (["--enable-lora", "--lora-modules", '{"name": "a"}'], "path is missing"),
    (["--enable-lora", "--lora-modules", "a"], "name=path"),
    (["--enable-lora", "--max-loras", "2", "--max-cpu-loras", "1"], "--max-cpu-loras"),
    (["--enable-lora", "--max-lora-rank", "300"], "--max-lora-rank"),
    (["--enable-lora", "--speculative-config", '{"model": "MODEL", "num_speculative_tokens": 2}'], "draft model"),
])
def test_refused_at_start_up(octavo, model, flags, reason):
    words = [flag.replace("MODEL", str(model)) for flag in flags]
    done = subprocess.run([octavo, "serve", model, "--port", "0", *LIMITS, *words], capture_output=True, text=True, timeout=60)
    assert done.returncode != 0 and reason in done.stderr, done.stderr

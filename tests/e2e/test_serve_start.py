"""Start-up output and errors of `octavo serve`, its config file and its logs."""

import json
import subprocess
import urllib.error
import urllib.request

import pytest
from running_server import running


@pytest.fixture(scope="module")
def tiny(make_model):
    return make_model("llama")


def get(url: str) -> dict:
    with urllib.request.urlopen(url) as response:
        return json.load(response)


def post(url: str, **body) -> dict:
    request = urllib.request.Request(url, json.dumps(body).encode(), {"Content-Type": "application/json"})
    with urllib.request.urlopen(request) as response:
        return json.load(response)


def refused(octavo, *arguments) -> str:
    done = subprocess.run([octavo, "serve", *map(str, arguments)], capture_output=True, text=True, timeout=60)
    assert done.returncode == 1, done
    return done.stderr


def test_start_names_model_memory_and_address(octavo, tiny):
    with running(octavo, tiny) as server:
        text = "".join(server.lines)
        assert tiny.name in text and "pages" in text and "CPU" in text and server.url in text


def test_models_lists_the_path_only_if_it_is_a_served_name(octavo, tiny):
    ask = {"prompt": [5, 6, 7], "max_tokens": 1}
    with running(octavo, tiny) as server:
        models = get(server.url + "/v1/models")["data"]
        assert [model["id"] for model in models] == [tiny.name] and models[0]["root"] == str(tiny)
        assert post(server.url + "/v1/completions", **ask, model=str(tiny))["model"] == tiny.name
    with running(octavo, tiny, "--served-model-name", tiny) as server:
        assert [model["id"] for model in get(server.url + "/v1/models")["data"]] == [str(tiny)]


def test_config_file_has_the_flags_names(octavo, tiny, tmp_path):
    config = tmp_path / "serve.toml"
    config.write_text('max-model-len = 96\nserved-model-name = ["a", "b"]\nlog-format = "json"\n')
    with running(octavo, tiny, "--config", config, "--max-num-seqs", 3) as server:
        assert [model["id"] for model in get(server.url + "/v1/models")["data"]] == ["a", "b"]
        assert get(server.url + "/v1/octavo/memory")["max_model_len"] == 96
        assert any("up to 3 sequences" in line for line in server.lines)
        answer = post(server.url + "/v1/completions", prompt=[5, 6, 7], max_tokens=2, model="b", request_id="mine")
        assert answer["id"] == "cmpl-mine" and answer["model"] == "a"
    logged = [json.loads(line) for line in server.lines if line.startswith("{")]
    lines = [line for line in logged if line.get("path") == "/v1/completions"]
    assert len(lines) == 1 and lines[0]["status"] == 200 and lines[0]["completion_tokens"] == 2


def test_config_file_mistakes_are_named(octavo, tiny, tmp_path):
    config = tmp_path / "serve.toml"
    config.write_text("no-such-flag = 1\n")
    done = subprocess.run([octavo, "serve", tiny, "--config", config], capture_output=True, text=True, timeout=60)
    assert done.returncode != 0 and "no-such-flag" in done.stderr + done.stdout
    assert "cannot read" in refused(octavo, tiny, "--config", tmp_path / "none.toml")


def test_other_machines_need_a_key(octavo, tiny):
    assert "--api-key-file" in refused(octavo, tiny, "--host", "0.0.0.0")


def test_allowed_hosts_come_from_flags_and_the_config_file(octavo, tiny, tmp_path):
    config = tmp_path / "serve.toml"
    config.write_text('allowed-hosts = ["one.test", "two.test,three.test"]\n')

    def status(url: str, host: str) -> int:
        try:
            with urllib.request.urlopen(urllib.request.Request(url + "/version", headers={"Host": host})) as response:
                return response.status
        except urllib.error.HTTPError as error:
            return error.code

    hosts = ("one.test", "two.test:1", "three.test", "127.0.0.1", "other.test")
    for flags in (("--config", config), ("--allowed-hosts", "one.test,two.test", "--allowed-hosts", "three.test")):
        with running(octavo, tiny, *flags) as server:
            assert [status(server.url, host) for host in hosts] == [200, 200, 200, 200, 403]


@pytest.mark.parametrize("host", ["0.0.0.0", "127.0.0.1"])
def test_an_empty_key_is_refused(octavo, tiny, tmp_path, host, monkeypatch):
    address = ("--host", host, "--port", 0)
    for key in ("", " "):
        assert "--api-key: the key is empty" in refused(octavo, tiny, *address, "--api-key", key)
    file = tmp_path / "keys.txt"
    file.write_text("\n  \n\t\n# a comment\n")
    assert "--api-key-file: no key in" in refused(octavo, tiny, *address, "--api-key-file", file)
    assert "--api-key-file: no key in" in refused(octavo, tiny, *address, "--api-key-file", file, "--api-key", "right")
    monkeypatch.setenv("OCTAVO_API_KEY", "")
    assert "OCTAVO_API_KEY: the key is empty" in refused(octavo, tiny, *address)


def test_a_taken_port_is_known_before_the_model_is_loaded(octavo, tiny):
    with running(octavo, tiny) as server:
        port = server.url.rsplit(":", 1)[1]
        assert "--port" in refused(octavo, "/no/such/model", "--port", port)


def test_defaults_come_from_the_models_own_config(octavo, tiny, tmp_path):
    """top_k 1 makes sampling greedy at any temperature."""
    own = tmp_path / "model"
    own.mkdir()
    for file in tiny.iterdir():
        (own / file.name).symlink_to(file)
    config = own / "generation_config.json"
    kept = json.loads(config.read_text()) if config.exists() else {}
    config.unlink(missing_ok=True)
    config.write_text(json.dumps(kept | {"top_k": 1, "temperature": 2.0}))
    ask = {"prompt": [5, 6, 7], "max_tokens": 16, "return_token_ids": True, "ignore_eos": True}
    with running(octavo, own) as server:
        [card] = get(server.url + "/v1/models")["data"]
        assert card["default_sampling_params"].items() >= {"top_k": 1, "temperature": 2.0}.items()
        url = server.url + "/v1/completions"
        greedy = post(url, **ask, temperature=0)["choices"][0]["token_ids"]
        assert post(url, **ask)["choices"][0]["token_ids"] == greedy
        assert post(url, **ask, top_k=0)["choices"][0]["token_ids"] != greedy


def test_default_sampling_is_shown_and_used(octavo, tiny, smollm2_gguf, tmp_path):
    """The defaults of a model without generation_config.json, of one whose file has only token ids, and of OpenAI."""
    own = "temperature 0.7, top_p 0.95, min_p 0.05"
    bare = tmp_path / "bare"
    bare.mkdir()
    for file in tiny.iterdir():
        if file.name != "generation_config.json":
            (bare / file.name).symlink_to(file)
    (bare / "generation_config.json").write_text('{"eos_token_id": 2}')
    for model, flags, shown in ((smollm2_gguf, (), own), (bare, (), own), (tiny, (), "temperature 0.7, top_p 0.95"),
                                (smollm2_gguf, ("--generation-config", "vllm"), "temperature 1")):
        with running(octavo, model, *flags) as server:
            [line] = [line for line in server.lines if line.strip().startswith("sampling")]
            assert line.split(None, 1)[1].strip() == f"{shown} unless a request sets it"
            answer = post(server.url + "/v1/responses", input="Hi", max_output_tokens=1)
            assert answer["temperature"] == pytest.approx(1.0 if flags else 0.7)


def test_vllms_lists_of_names_and_origins(octavo, tiny):
    flags = ("--served-model-name", "a", "b", "--allowed-origins", '["https://one.test", "https://two.test"]')
    with running(octavo, tiny, *flags) as server:
        assert [model["id"] for model in get(server.url + "/v1/models")["data"]] == ["a", "b"]
        for origin, allowed in (("https://one.test", True), ("https://two.test", True), ("https://three.test", False)):
            request = urllib.request.Request(server.url + "/v1/models", headers={"Origin": origin})
            with urllib.request.urlopen(request) as response:
                assert (response.headers["Access-Control-Allow-Origin"] == origin) == allowed
    assert "--allowed-origins" in refused(octavo, tiny, "--port", 0, "--allowed-origins", "[oops")


def test_a_longer_context_needs_an_override(octavo, tiny):
    assert "more than the model's own context of 2048 tokens" in refused(octavo, tiny, "--port", 0, "--max-model-len", "3k")
    with running(octavo, tiny, "--max-model-len", "3k", "--hf-overrides", '{"max_position_embeddings": 4096}') as server:
        assert get(server.url + "/v1/models")["data"][0]["max_model_len"] == 3000

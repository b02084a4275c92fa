"""What routers ask a replica for: token ids of requests, limits, load, and the internal listener without keys."""

import json
import urllib.error
import urllib.request

import pytest
import running_server

KEY = "secret"
MESSAGES = [{"role": "user", "content": "What is the capital of France?"}]


@pytest.fixture(scope="module")
def server(octavo, smollm2_gguf):
    with running_server.running(octavo, smollm2_gguf, "--max-model-len", "2048", "--kv-memory", "256MiB", "--api-key", KEY,
                                "--internal-port", "0") as server:
        yield server


@pytest.fixture(scope="module")
def internal(server):
    return next(line.split()[-1] for line in server.lines if line.split()[:1] == ["internal"])


def ask(url: str, body: dict | None = None, key: str | None = KEY):
    """Returns (status, JSON or text)."""
    headers = {"Content-Type": "application/json"} | ({"Authorization": f"Bearer {key}"} if key else {})
    request = urllib.request.Request(url, json.dumps(body).encode() if body is not None else None, headers)
    try:
        with urllib.request.urlopen(request, timeout=60) as answer:
            status, text = answer.status, answer.read().decode()
    except urllib.error.HTTPError as error:
        status, text = error.code, error.read().decode()
    return status, json.loads(text) if text.startswith(("{", "[")) else text


def test_rendered_chats_have_the_tokens_of_the_prompt(server):
    body = {"messages": MESSAGES, "max_tokens": 1, "temperature": 0}
    status, rendered = ask(server.url + "/v1/chat/completions/render", body)
    assert status == 200 and rendered["request_id"].startswith("chatcmpl-")
    _, answer = ask(server.url + "/v1/chat/completions", body | {"return_token_ids": True})
    assert rendered["token_ids"] == answer["prompt_token_ids"]
    assert rendered["model"] == answer["model"] and rendered["sampling_params"]["max_tokens"] == 1
    # The ids are a prompt, with the same answer.
    _, again = ask(server.url + "/v1/completions", {"prompt": rendered["token_ids"], "max_tokens": 1, "temperature": 0})
    assert again["choices"][0]["text"] == answer["choices"][0]["message"]["content"]


def test_rendered_completions_are_a_list_with_one_entry_per_prompt(server):
    status, rendered = ask(server.url + "/v1/completions/render", {"prompt": ["One", "Two and"], "max_tokens": 3, "cache_salt": "s"})
    assert status == 200 and len(rendered) == 2
    for prompt, one in zip(["One", "Two and"], rendered):
        assert one["token_ids"] == ask(server.url + "/tokenize", {"prompt": prompt})[1]["tokens"]
        assert one["cache_salt"] == "s" and one["stream"] is False


def test_rendered_messages_count_as_many_tokens(server):
    body = {"messages": MESSAGES, "max_tokens": 5, "model": ask(server.url + "/v1/models")[1]["data"][0]["id"]}
    status, rendered = ask(server.url + "/v1/messages/render", body)
    counted = ask(server.url + "/v1/messages/count_tokens", body)[1]["input_tokens"]
    assert status == 200 and len(rendered["token_ids"]) == counted


def test_bad_requests_are_refused_as_by_the_route_itself(server):
    for body in ({}, {"messages": MESSAGES, "top_p": 9}, {"messages": MESSAGES, "model": "other"}):
        refused = ask(server.url + "/v1/chat/completions", body)
        assert refused[0] >= 400 and ask(server.url + "/v1/chat/completions/render", body) == refused


def test_server_info_and_loads(server):
    info = ask(server.url + "/server_info")[1]
    assert info["max_model_len"] == 2048 and info["dp_size"] == 1 and info["served_model_name"]
    assert (info["runner_type"], info["supported_tasks"], info["is_embedding"]) == ("generate", ["generate"], False)
    loads = ask(server.url + "/v1/loads")[1]
    assert loads["dp_rank_count"] == 1 and loads["loads"][0]["num_running_reqs"] == 0
    assert loads["loads"][0]["max_total_num_tokens"] == info["max_total_num_tokens"] > 0


def test_the_internal_listener_needs_no_key_and_has_few_routes(server, internal):
    assert internal.startswith("http://127.0.0.1:") and internal != server.url
    assert ask(internal + "/health", key=None) == (200, {"status": "ok"})
    assert "vllm:num_requests_running" in ask(internal + "/metrics", key=None)[1]
    assert ask(internal + "/kv_event_sources", key=None) == (200, {})
    body = {"messages": MESSAGES}
    status, rendered = ask(internal + "/v1/chat/completions/render", body, key=None)
    assert status == 200
    assert rendered["token_ids"] == ask(server.url + "/v1/chat/completions/render", body)[1]["token_ids"]
    for path, sent in (("/v1/chat/completions", body), ("/v1/models", None), ("/", None), ("/server_info", None)):
        assert ask(internal + path, sent, key=None)[0] == 404, path
    assert ask(server.url + "/v1/chat/completions/render", body, key=None)[0] == 401


def test_an_internal_port_in_use_is_named(octavo, smollm2_gguf, internal):
    port = internal.rsplit(":", 1)[1]
    with pytest.raises(AssertionError, match="choose another with --internal-port"):
        with running_server.running(octavo, smollm2_gguf, "--internal-port", port):
            pass

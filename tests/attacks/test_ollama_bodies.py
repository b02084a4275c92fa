"""Bodies of Ollama's API that are short to send and long to read."""

import json

import pytest
from attack_kit import bounded, post

CALL = {"function": {"name": "f", "arguments": {}}}


def chat(**message) -> list[dict]:
    return [{"role": "assistant", **message}]


@pytest.mark.parametrize("path, body, says", [
    ("/api/chat", {"messages": chat(images=["A" * 8_000_000])}, "images may be in messages of the roles user and tool"),
    ("/api/chat", {"messages": [{"role": "user", "content": "x", "images": ["A" * 8_000_000]}]}, "takes no images"),
    ("/api/generate", {"prompt": "hi", "images": ["A"] * 400_000}, "images[0]: is not valid base64"),
    ("/api/generate", {"prompt": "hi", "images": ["AAAA"] * 400_000}, "more than 1024 images"),
    ("/api/generate", {"prompt": "hi", "context": [1] * 400_000}, "context: is not supported"),
    ("/api/chat", {"messages": chat(tool_calls=[CALL] * 80_000)}, "at most 512 calls"),
    ("/api/chat", {"messages": chat(content="x") * 4097}, "at most 4096 are allowed"),
    ("/api/chat", {"messages": chat(content="x"), "options": {f"k{i}": 1 for i in range(4000)}}, "options.k0: is not a known"),
    ("/api/chat", {"messages": chat(content="x"), "options": {"stop": ["x"] * 400_000}}, "options.stop: has 400000"),
    ("/api/chat", {"messages": chat(content="x"), "keep_alive": "1" * 1_000_000}, "keep_alive"),
    ("/api/chat", {"messages": chat(content="x"), "format": "x" * 1_000_000}, "format"),
    ("/api/embed", {"input": ["x"] * 400_000}, "this server generates text"),
])
def test_a_large_body_is_refused_at_once(fake_server, path, body, says):
    text = json.dumps(body)
    with bounded(fake_server, growth_mb=150):
        status, answer = post(fake_server, path, text)
    assert status == 400 and says in answer["error"] and len(answer["error"]) <= 1000


def test_many_results_find_their_calls(fake_server):
    turn = [{"role": "assistant", "tool_calls": [CALL] * 100}, *[{"role": "tool", "tool_name": "g", "content": ""}] * 100]
    text = json.dumps({"messages": turn * 20})
    with bounded(fake_server, growth_mb=150):
        status, answer = post(fake_server, "/api/chat", text)
    assert status == 400 and "tokens" in answer["error"]

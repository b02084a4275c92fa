"""Texts that are expensive to tokenize: encoding 8 MB of digits takes 350 bytes of memory per byte of text."""

import json

import pytest
from attack_kit import bounded, post

DIGITS = "7" * 8_000_000  # each digit is a word of its own
DENSE = "a!" * 4_000_000
SPACES = " " * 8_000_000
TEXTS = {"digits": DIGITS, "dense": DENSE, "spaces": SPACES}

CHAT = [{"role": "user", "content": "TEXT"}]
BODIES = {
    "/v1/completions": {"prompt": "TEXT", "max_tokens": 1},
    "/v1/chat/completions": {"messages": CHAT, "max_tokens": 1},
    "/v1/responses": {"input": "TEXT", "max_output_tokens": 16},
    "/v1/messages": {"messages": CHAT, "max_tokens": 1},
    "/v1/messages/count_tokens": {"messages": CHAT},
    "/tokenize": {"prompt": "TEXT"},
}


def body_of(path: str, text: str, **fields) -> bytes:
    return (json.dumps(BODIES[path] | fields)).replace("TEXT", text).encode()


@pytest.mark.parametrize("path", BODIES)
@pytest.mark.parametrize("kind", ["digits", "dense"])
def test_a_text_that_cannot_fit_is_refused_before_it_is_tokenized(server, path, kind):
    body = body_of(path, TEXTS[kind])
    with bounded(server, seconds=4, growth_mb=300):
        reply = post(server, path, body)
    assert reply.status == 400
    assert "tokens" in reply.json["error"]["message"], reply.json


def test_truncation_has_a_limit_too(server):
    body = body_of("/v1/completions", DIGITS, truncate_prompt_tokens=16)
    with bounded(server, seconds=4, growth_mb=300):
        reply = post(server, "/v1/completions", body)
    assert reply.status == 400
    assert "has more than 262144 tokens" in reply.json["error"]["message"]


def test_long_texts_that_can_be_used_still_are(server):
    text = "word " * 20_000  # 100 KB, 20,000 tokens: too long for the context of 8192, but not to be truncated
    whole = post(server, "/v1/completions", {"prompt": text, "max_tokens": 1})
    assert whole.status == 400 and "tokens; at most 8191 fit" in whole.json["error"]["message"]
    cut = post(server, "/v1/completions", {"prompt": text, "max_tokens": 1, "truncate_prompt_tokens": 16})
    assert cut.status == 200 and cut.json["usage"]["prompt_tokens"] == 16
    counted = post(server, "/tokenize", {"prompt": text})
    assert counted.status == 200 and counted.json["count"] >= 20_000


def test_a_stored_input_that_is_repeated(server):
    """Repeating what was stored costs no more than sending it."""
    first = post(server, "/v1/responses", {"input": "Say hi.", "max_output_tokens": 16})
    assert first.status == 200
    body = json.dumps({"input": DIGITS, "previous_response_id": first.json["id"], "max_output_tokens": 16}).encode()
    with bounded(server, seconds=4, growth_mb=300):
        replies = [post(server, "/v1/responses", body) for _ in range(3)]
    assert [reply.status for reply in replies] == [400] * 3

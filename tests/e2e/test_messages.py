"""/v1/messages and /v1/messages/count_tokens through Anthropic's client and against its types, with the fake engine."""

import contextlib
import json
import time

import anthropic
import anthropic.types as types
import pytest
from sdk_types import checked, named_events
from server_kit import Server, request_bytes

PATH = "/v1/messages"
HELLO = {"model": "fake", "max_tokens": 20, "messages": [{"role": "user", "content": "hello"}]}
DRAWN = {"seed": 3, "temperature": 1, "ignore_eos": True}  # every request gives the same output
READ_FILE = {"name": "read_file", "description": "Reads a file", "input_schema": {
    "type": "object", "properties": {"path": {"type": "string"}}, "required": ["path"]}}


@pytest.fixture(scope="module")
def server():
    with Server.start(step_ms=1, max_model_len=4096, pages=2048) as running:
        yield running


@pytest.fixture(scope="module")
def client(server):
    return anthropic.Anthropic(base_url=f"http://127.0.0.1:{server.port}", api_key="none", max_retries=0)


def blocks(message) -> list[dict]:
    return [block.model_dump(exclude_none=True) for block in message.content]


def test_a_whole_message_has_the_sdks_types(server):
    answer = server.ask("POST", PATH, HELLO | DRAWN)
    assert answer.status == 200
    message = checked(types.Message, answer.json())
    assert message.role == "assistant" and message.model == "fake" and message.stop_reason == "max_tokens"
    assert message.usage.output_tokens == 20 and message.usage.input_tokens > 0
    assert [block.type for block in message.content] == ["text"] and message.content[0].text


def test_every_event_has_the_sdks_types_and_the_stream_adds_up_to_the_whole(server, client):
    whole = client.messages.create(**HELLO, extra_body=DRAWN)
    events = named_events(server.ask("POST", PATH, HELLO | DRAWN | {"stream": True}).body)
    for name, data in events:
        assert data["type"] == name
        if name != "ping":
            checked(types.RawMessageStreamEvent, data)
    names = [name for name, _ in events]
    assert names[:3] == ["message_start", "content_block_start", "ping"]
    assert names[-3:] == ["content_block_stop", "message_delta", "message_stop"]
    assert set(names[3:-3]) == {"content_block_delta"}
    with client.messages.stream(**HELLO, extra_body=DRAWN) as stream:
        text = "".join(stream.text_stream)
        final = stream.get_final_message()
    assert text == whole.content[0].text and blocks(final) == blocks(whole)
    assert final.usage.output_tokens == whole.usage.output_tokens and final.stop_reason == whole.stop_reason


def test_the_beta_client_and_its_headers_work(client):
    message = client.beta.messages.create(**HELLO, betas=["context-management-2025-06-27"], extra_body=DRAWN)
    assert message.content[0].text == client.messages.create(**HELLO, extra_body=DRAWN).content[0].text


def test_a_stop_sequence_ends_the_answer_and_is_named(client):
    text = client.messages.create(**HELLO, extra_body=DRAWN).content[0].text
    stop = next(letter for letter in text[1:] if letter.isascii() and letter.isprintable() and letter != " ")
    message = client.messages.create(**HELLO, stop_sequences=[stop], extra_body=DRAWN)
    assert message.stop_reason == "stop_sequence" and message.stop_sequence == stop
    assert message.content[0].text == text[:text.index(stop)] if message.content else text.startswith(stop)


def test_cached_tokens_are_counted_apart(client):
    conversation = HELLO | {"messages": [{"role": "user", "content": "the same long beginning " * 20}]}
    first = client.messages.create(**conversation, extra_body=DRAWN).usage
    second = client.messages.create(**conversation, extra_body=DRAWN).usage
    assert first.cache_read_input_tokens == 0 and second.cache_read_input_tokens > 300
    assert first.input_tokens == second.input_tokens + second.cache_read_input_tokens
    assert second.cache_creation_input_tokens == 0


def test_system_blocks_come_first(client):
    def count(**fields):
        return client.messages.count_tokens(**{"model": "fake", "messages": HELLO["messages"]} | fields).input_tokens

    plain = count()
    assert count(system="abc") == count(system=[{"type": "text", "text": "abc", "cache_control": {"type": "ephemeral"}}])
    assert count(system="abc") == plain + len("system: abc\n")
    message = client.messages.create(**HELLO, system="abc", extra_body=DRAWN)
    usage = message.usage
    assert usage.input_tokens + usage.cache_read_input_tokens == count(system="abc")


def test_count_tokens_counts_beyond_the_context(server):
    body = {"model": "fake", "messages": [{"role": "user", "content": "x" * 10_000}]}
    counted = server.ask("POST", PATH + "/count_tokens", body)
    assert counted.status == 200
    assert checked(types.MessageTokensCount, counted.json()).input_tokens > 10_000
    assert server.ask("POST", PATH, body | {"max_tokens": 1}).status == 400


def test_a_last_message_of_the_assistant_is_continued(client):
    prefilled = HELLO["messages"] + [{"role": "assistant", "content": "I say"}]
    counted = client.messages.count_tokens(model="fake", messages=prefilled).input_tokens
    assert counted == len("user: hello\nassistant: I say") - 2  # "he" and "ll" are one token each


def test_ignored_hints_are_listed(server):
    answer = server.ask("POST", PATH + "?beta=true", HELLO | {
        "metadata": {"user_id": "u"}, "service_tier": "auto", "context_management": {"edits": []},
        "system": [{"type": "text", "text": "s", "cache_control": {"type": "ephemeral"}}],
        "tools": [{"type": "web_search_20250305", "name": "web_search"}, {"type": "bash_20250124", "name": "bash"}],
        "tool_choice": {"type": "auto"}, "thinking": {"type": "adaptive", "display": "summarized"}})
    assert answer.status == 200, answer.body
    assert set(answer.headers["x-octavo-ignored"].split(", ")) == {
        "metadata", "service_tier", "context_management", "content.cache_control", "tools.web_search_20250305",
        "tools.bash_20250124", "thinking.display"}


@pytest.mark.parametrize("fields, named", [
    ({"messages": []}, "messages"),
    ({"messages": [{"role": "user", "content": [{"type": "image", "source": {"type": "base64"}}]}]}, "messages[0].content[0].source.data"),
    ({"messages": [{"role": "user", "content": [{"type": "document", "source": {}}]}]}, "messages[0].content[0]"),
    ({"max_tokens": -1}, "max_tokens"),
    ({"temperature": 1000}, "temperature"),
    ({"thinking": {"type": "enabled"}}, "thinking.budget_tokens"),
    ({"tool_choice": {"type": "any"}}, "tool_choice"),
    ({"mcp_servers": [{"type": "url", "url": "https://example.org"}]}, "mcp_servers"),
    ({"no_such_field": 1}, "no_such_field"),
])
def test_what_is_refused_is_named(fields, named, server, client):
    answer = server.ask("POST", PATH, HELLO | fields)
    assert answer.status == 400
    error = checked(types.shared.ErrorResponse, answer.json())
    assert error.error.type == "invalid_request_error" and error.error.message.startswith(named + ": ")
    with pytest.raises(anthropic.BadRequestError, match="invalid_request_error"):
        client.post(PATH, body=HELLO | fields, cast_to=object)


def test_errors_have_the_sdks_types(server, client):
    with pytest.raises(anthropic.NotFoundError) as missing:
        client.messages.create(**HELLO | {"model": "claude"})
    assert missing.value.body["error"]["type"] == "not_found_error"
    for method, path, body, status, kind in (
            ("GET", PATH, None, 405, "invalid_request_error"), ("POST", PATH + "/batches", "{}", 404, "not_found_error"),
            ("POST", PATH, "{", 400, "invalid_request_error"), ("POST", PATH, "x" * 9_000_000, 413, "request_too_large")):
        answer = server.ask(method, path, body)
        assert answer.status == status and answer.json()["type"] == "error" and answer.error["type"] == kind, (path, answer)
    assert server.ask("POST", PATH, json.dumps(HELLO), {"Content-Type": "text/plain"}).error["type"] == "invalid_request_error"


def test_both_headers_carry_the_key():
    with Server.start(api_key="secret") as server:
        url = f"http://127.0.0.1:{server.port}"
        for client in (anthropic.Anthropic(base_url=url, api_key="secret", max_retries=0),
                       anthropic.Anthropic(base_url=url, auth_token="secret", max_retries=0)):
            assert client.messages.create(**HELLO).type == "message"
        with pytest.raises(anthropic.AuthenticationError) as refused:
            anthropic.Anthropic(base_url=url, api_key="wrong", max_retries=0).messages.create(**HELLO)
        assert refused.value.body["error"]["type"] == "authentication_error"


def test_a_full_queue_says_when_to_come_back():
    with Server.start(max_open_requests=1, step_ms=5) as server, server.wire() as held:
        endless = HELLO | DRAWN | {"max_tokens": 900, "stream": True}
        held.send(request_bytes("POST", PATH, endless)).head()
        for path in (PATH, PATH + "/count_tokens"):
            answer = server.ask("POST", path, HELLO)
            assert answer.status == 429 and answer.error["type"] == "rate_limit_error"
            assert int(answer.headers["retry-after"]) >= 1
        held.close()
        server.wait_for_baseline()
        assert server.ask("POST", PATH, HELLO).status == 200


def test_a_server_that_ends_says_so_in_the_stream_and_in_its_log(tmp_path):
    log = tmp_path / "log"
    with log.open("w") as stderr, Server.start(
            step_ms=5, drain_timeout=200, access_log=True, stderr=stderr) as server, server.wire() as wire:
        wire.send(request_bytes("POST", PATH, HELLO | DRAWN | {"max_tokens": 900, "stream": True})).head()
        server.terminate()
        body = b""
        with contextlib.suppress(ValueError):
            while chunk := wire.chunk():
                body += chunk
        name, data = named_events(body)[-1]
        assert name == "error" and checked(types.shared.ErrorResponse, data).error.type == "overloaded_error"
        server.process.wait(30)  # leaving the block would end it at once, before its last lines are written
    assert "ended_by=shutdown" in log.read_text()


def test_a_client_that_leaves_is_noticed(server):
    server.wait_for_baseline()
    wire = server.wire()
    wire.send(request_bytes("POST", PATH, HELLO | DRAWN | {"max_tokens": 3000, "stream": True})).head()
    steps = server.steps()
    wire.close()
    server.wait_for_baseline()
    assert server.steps() - steps < 2000
    time.sleep(0.05)
    assert server.metric("octavo:http_requests_total", 'route="/v1/messages"') > 0

"""Ollama's own API (/api/...) through its Python client, with the fake engine."""

import asyncio
import contextlib
import datetime
import json

import ollama
import pytest
from sdk_types import checked
from server_kit import Server, request_bytes

ASK = [{"role": "user", "content": "hello"}]
DRAWN = {"seed": 3, "temperature": 1, "num_predict": 20}  # every request gives the same output
SCHEMA = {"type": "object", "properties": {"name": {"type": "string", "maxLength": 6}, "size": {"enum": [1, 22, 333]}},
          "required": ["name", "size"], "additionalProperties": False}


@pytest.fixture(scope="module")
def server():
    with Server.start(step_ms=1, max_model_len=4096, pages=2048) as running:
        yield running


@pytest.fixture(scope="module")
def embedder():
    with Server.start(pooling="last", max_model_len=512) as running:
        yield running


def client_of(server: Server, **options) -> ollama.Client:
    return ollama.Client(host=f"http://127.0.0.1:{server.port}", **options)


@pytest.fixture(scope="module")
def client(server):
    return client_of(server)


def get_weather(city: str, days: int = 1) -> str:
    """The weather in a city.

    Args:
      city: The city
      days: How many days
    """
    return f"{city} {days}"


def lines(body: bytes) -> list[dict]:
    assert body.endswith(b"\n")
    return [json.loads(line) for line in body.splitlines()]


def test_a_chat_has_the_clients_types_and_counts(server):
    answer = server.ask("POST", "/api/chat", {"model": "fake", "messages": ASK, "stream": False, "options": DRAWN, "ignore_eos": True})
    assert answer.status == 200 and answer.headers["content-type"] == "application/json"
    chat = checked(ollama.ChatResponse, answer.json())
    assert chat.message.role == "assistant" and chat.message.content and chat.done and chat.done_reason == "length"
    assert chat.eval_count == 20 and chat.prompt_eval_count > 0 and chat.load_duration == 0
    assert chat.total_duration >= chat.prompt_eval_duration + chat.eval_duration > 0
    created = datetime.datetime.fromisoformat(chat.created_at)
    assert abs((datetime.datetime.now(datetime.UTC) - created).total_seconds()) < 60


def test_a_stream_is_lines_that_add_up_to_the_whole(server, client):
    body = {"model": "fake", "messages": ASK, "options": DRAWN, "ignore_eos": True}
    whole = server.ask("POST", "/api/chat", body | {"stream": False}).json()
    streamed = server.ask("POST", "/api/chat", body)  # the default
    assert streamed.headers["content-type"] == "application/x-ndjson"
    parts = lines(streamed.body)
    assert [part["done"] for part in parts] == [False] * (len(parts) - 1) + [True]
    assert "".join(part["message"]["content"] for part in parts) == whole["message"]["content"]
    assert parts[-1]["eval_count"] == 20 and "eval_count" not in parts[0] and "done_reason" not in parts[0]
    for part in parts:
        checked(ollama.ChatResponse, part)
    texts = [part.message.content for part in client.chat("fake", ASK, stream=True, options=DRAWN)]
    assert "".join(texts) == client.chat("fake", ASK, options=DRAWN).message.content


def test_generate_is_a_chat_of_one_message(client):
    chat = client.chat("fake", [{"role": "system", "content": "be short"}, *ASK], options=DRAWN)
    whole = client.generate("fake", "hello", system="be short", options=DRAWN)
    assert whole.response == chat.message.content and whole.prompt_eval_count == chat.prompt_eval_count
    parts = list(client.generate("fake", "hello", system="be short", options=DRAWN, stream=True))
    assert "".join(part.response for part in parts) == whole.response and parts[-1].done_reason == whole.done_reason


def test_a_raw_prompt_is_a_completion(server, client):
    fields = {"seed": 3, "temperature": 1, "max_tokens": 20}
    completion = server.complete(prompt="once", **fields).json()
    raw = client.generate("fake", "once", raw=True, options=DRAWN)
    assert raw.response == completion["choices"][0]["text"]
    assert raw.prompt_eval_count == completion["usage"]["prompt_tokens"]


def test_the_answer_is_that_of_the_other_apis(server, client):
    body = {"messages": ASK, "seed": 3, "temperature": 1, "max_tokens": 20}
    text = server.ask("POST", "/v1/chat/completions", body).json()["choices"][0]["message"]["content"]
    assert client.chat("fake:latest", ASK, options=DRAWN).message.content == text


@pytest.mark.parametrize("form", ["json", SCHEMA])
def test_format_constrains_the_output(client, form):
    options = {"seed": 1, "temperature": 1, "num_predict": 2000}
    for stream in (False, True):
        answer = client.chat("fake", ASK, format=form, options=options, stream=stream)
        text = "".join(part.message.content for part in answer) if stream else answer.message.content
        value = json.loads(text)
        assert isinstance(value, dict) and (form == "json" or value["size"] in (1, 22, 333))


@pytest.mark.parametrize("stream", [False, True])
def test_tool_calls_have_arguments_as_objects(client, stream):
    body = {"model": "fake", "messages": ASK, "tools": [{"type": "function", "function": {
        "name": "f", "parameters": {"type": "object", "properties": {"a": {"type": "string", "maxLength": 5}},
                                    "required": ["a"], "additionalProperties": False}}}],
            "tool_choice": {"type": "function", "function": {"name": "f"}}, "stream": stream,
            "options": {"seed": 3, "temperature": 1, "num_predict": 2000}}
    answer = client._request(ollama.ChatResponse, "POST", "/api/chat", json=body, stream=stream)
    parts = list(answer) if stream else [answer]
    calls = [call for part in parts for call in part.message.tool_calls or []]
    assert [call.function.name for call in calls] == ["f"] and set(calls[0].function.arguments) == {"a"}
    assert parts[-1].done_reason == "stop" and not any(part.message.content for part in parts)


def test_functions_as_tools_and_their_results_are_taken(client):
    messages = [*ASK, ollama.Message(role="assistant", thinking="hm", tool_calls=[ollama.Message.ToolCall(
        function=ollama.Message.ToolCall.Function(name="get_weather", arguments={"city": "Rome"}))]),
                {"role": "tool", "tool_name": "get_weather", "content": "sunny"}]
    assert client.chat("fake", messages, tools=[get_weather], options=DRAWN).done


def test_logprobs_come_with_the_text(client):
    for stream in (False, True):
        answer = client.chat("fake", ASK, options=DRAWN, logprobs=True, top_logprobs=2, stream=stream)
        parts = list(answer) if stream else [answer]
        tokens = [token for part in parts for token in part.logprobs or []]
        assert len(tokens) == parts[-1].eval_count and all(token.logprob <= 0 for token in tokens)
    raw = client.generate("fake", "once", raw=True, options=DRAWN, logprobs=True)
    assert len(raw.logprobs) == raw.eval_count and raw.logprobs[0].top_logprobs is None


def test_embeddings_are_normalized_and_the_earlier_route_has_one(embedder):
    client = client_of(embedder)
    both = client.embed("fake", ["hello", "there"])
    assert len(both.embeddings) == 2 and both.prompt_eval_count > 0 and both.total_duration > 0
    assert sum(value * value for value in both.embeddings[0]) == pytest.approx(1, abs=1e-5)
    assert client.embed("fake", "hello").embeddings == both.embeddings[:1]
    assert len(client.embeddings("fake", "hello").embedding) == len(both.embeddings[0])
    assert client.embed("fake", "x" * 2000).prompt_eval_count == 512  # truncated
    with pytest.raises(ollama.ResponseError, match="^input: has 2000 tokens; at most 512 fit") as refused:
        client.embed("fake", "x" * 2000, truncate=False)
    assert refused.value.status_code == 400
    assert client.embed("fake", "").embeddings == []
    assert client.show("fake").capabilities == ["embedding"]
    with pytest.raises(ollama.ResponseError, match="runs an embedding model"):
        client.chat("fake", ASK)


def test_the_model_is_listed_running_and_described(server, client):
    listed = client.list().models
    assert [model.model for model in listed] == ["fake", "fake/alias"] and listed[0].details.format == "gguf"
    running = client.ps().models
    assert [model.name for model in running] == ["fake"] and running[0].context_length == 4096
    assert running[0].expires_at.year > 2200
    shown = client.show("fake:latest")
    assert shown.capabilities == ["completion", "tools"] and shown.modelinfo["fake.context_length"] == 4096
    assert "num_ctx" in shown.parameters and "messages" in shown.template and shown.details.quantization_level == "Q8_0"
    version = server.ask("GET", "/api/version").json()["version"]
    assert tuple(map(int, version.split("."))) >= (0, 6, 4)
    for path in ("/", "/api/tags", "/api/version"):
        assert server.ask("HEAD", path).status == 200


def test_a_request_without_text_only_loads(server, client):
    assert client.generate("fake").done_reason == "load"
    assert client.chat("fake").done_reason == "load"
    assert [part.done_reason for part in client.generate("fake", stream=True)] == ["load"]
    answer = server.ask("POST", "/api/generate", {"model": "fake", "keep_alive": 0})
    assert answer.json()["done_reason"] == "unload" and answer.headers["x-octavo-ignored"] == "keep_alive"
    assert client.ps().models  # a server of one model keeps it


def test_pulling_the_served_model_succeeds(client):
    assert client.pull("fake").status == "success"
    assert [part.status for part in client.pull("fake:latest", stream=True)] == ["success"]


def test_models_are_not_changed_by_requests(client, tmp_path):
    file = tmp_path / "blob"
    file.write_bytes(b"x")
    for change, says in ((lambda: client.pull("llama3"), "octavo pull"), (lambda: client.push("fake"), "octavo rm"),
                         (lambda: client.delete("fake"), "octavo rm"), (lambda: client.copy("fake", "b"), "--served-model-name"),
                         (lambda: client.create("b", from_="fake"), "flags of `octavo serve`"),
                         (lambda: client.create_blob(file), "octavo pull"),
                         (lambda: list(client.pull("llama3", stream=True)), "octavo pull")):
        with pytest.raises(ollama.ResponseError, match=says) as refused:
            change()
        assert refused.value.status_code == 403


def test_ignored_options_are_listed(server):
    answer = server.ask("POST", "/api/chat", {
        "messages": ASK, "keep_alive": "5m", "truncate": True, "stream": False,
        "options": {"num_predict": 1, "num_gpu": 1, "num_ctx": 100_000, "num_thread": 4}})
    assert answer.status == 200
    assert set(answer.headers["x-octavo-ignored"].split(", ")) == {
        "keep_alive", "truncate", "options.num_gpu", "options.num_ctx", "options.num_thread"}


@pytest.mark.parametrize("fields, named", [
    ({"messages": [{"role": "user", "content": "a", "images": ["aGk="]}]}, "messages[0].images[0]"),
    ({"messages": "hi"}, "messages"), ({"format": "xml"}, "format"), ({"think": True}, "think"),
    ({"options": {"mirostat": 2}}, "options.mirostat"), ({"options": {"temperature": "hot"}}, "options.temperature"),
    ({"options": {"repeat_penalty": 1.1, "repeat_last_n": 64}}, "options.repeat_last_n"),
    ({"options": {"num_ctx": 3}}, "messages"), ({"keep_alive": "soon"}, "keep_alive"), ({"no_such_field": 1}, "no_such_field"),
])
def test_what_is_refused_is_named(fields, named, server, client):
    answer = server.ask("POST", "/api/chat", {"messages": ASK} | fields)
    assert answer.status == 400 and list(answer.json()) == ["error"] and answer.error.startswith(named + ": ")
    with pytest.raises(ollama.ResponseError) as refused:
        client._request(ollama.ChatResponse, "POST", "/api/chat", json={"messages": ASK} | fields)
    assert refused.value.error == answer.error and refused.value.status_code == 400


def test_errors_have_ollamas_form(server, client):
    with pytest.raises(ollama.ResponseError, match="does not exist; this server serves `fake`") as missing:
        client.chat("llama3", ASK)
    assert missing.value.status_code == 404
    with pytest.raises(ollama.ResponseError, match="does not exist"):
        list(client.generate("llama3", "hi", stream=True))
    for method, path, body, status in (("GET", "/api/chat", None, 405), ("POST", "/api/nothing", "{}", 404), ("POST", "/api/chat", "{", 400),
                                       ("POST", "/api/chat", "x" * 9_000_000, 413)):
        answer = server.ask(method, path, body)
        assert answer.status == status and isinstance(answer.error, str), (path, answer)
    assert server.ask("POST", "/api/chat", json.dumps({"messages": ASK}), {"Content-Type": "text/plain"}).status == 415


def test_the_key_is_needed_and_taken():
    with Server.start(api_key="secret") as server:
        assert client_of(server, headers={"Authorization": "Bearer secret"}).chat("fake", ASK, options=DRAWN).done
        with pytest.raises(ollama.ResponseError, match="missing or invalid API key") as refused:
            client_of(server).list()
        assert refused.value.status_code == 401


def test_the_async_client_streams(server):
    async def ask() -> str:
        client = ollama.AsyncClient(host=f"http://127.0.0.1:{server.port}")
        return "".join([part.message.content async for part in await client.chat("fake", ASK, stream=True, options=DRAWN)])

    assert asyncio.run(ask()) == client_of(server).chat("fake", ASK, options=DRAWN).message.content


def test_silence_is_filled_with_empty_lines():
    """The format has no comments, and clients parse every line."""
    with Server.start(step_ms=300, sse_keepalive=50) as server:
        parts = list(client_of(server).chat("fake", ASK, stream=True, options=DRAWN | {"num_predict": 2}))
    assert sum(not part.done and not part.message.content for part in parts) >= 3 and parts[-1].done


def test_an_interrupted_answer_goes_on(server):
    body = {"messages": ASK, "options": {"seed": 3, "temperature": 1, "num_predict": 20}, "ignore_eos": True, "resumable": True}
    whole = lines(server.ask("POST", "/api/chat", body).body)
    for cut in (1, 7, len(whole) - 2):
        tokens = [token for part in whole[:cut] for token in part["token_ids"]]
        rest = lines(server.ask("POST", "/api/chat", body | {"resume": whole[0]["resume"], "resume_token_ids": [tokens]}).body)
        text = [[part["message"] for part in parts] for parts in (whole[cut:], rest)]
        assert text[0] == text[1] and rest[-1]["eval_count"] == 20


def test_a_server_that_ends_says_so_in_the_stream():
    with Server.start(step_ms=5, drain_timeout=200) as server, server.wire() as wire:
        wire.send(request_bytes("POST", "/api/chat", {"messages": ASK, "options": {"num_predict": 900}, "ignore_eos": True})).head()
        server.terminate()
        body = b""
        with contextlib.suppress(ValueError):
            while chunk := wire.chunk():
                body += chunk
        assert lines(body)[-1] == {"error": "the server is shutting down"}
        server.process.wait(30)

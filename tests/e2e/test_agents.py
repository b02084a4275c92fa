"""Requests of coding agents, including hints and tools that they cannot disable. Each response must match the types of the SDK
that the agent uses.

agents/recorded has what real agents sent (tests/agents/run_agents.py --record), with long texts cut. The other files were written
by hand, for requests that those runs do not make."""

import json
import sys
from pathlib import Path

import anthropic.types as anthropic_types
import ollama
import openai.types.chat as chat_types
import openai.types.responses as response_types
import pytest
import running_server
from agent_fields import KNOWN, unexplained
from conftest import REPO
from sdk_types import checked, named_events
from server_kit import Server, fake_server_path

sys.path.insert(0, str(REPO / "tests" / "agents"))

import run_agents  # noqa: E402
from fixtures import field_paths  # noqa: E402

HERE = Path(__file__).parent
WRITTEN = sorted((HERE / "agents").glob("*.json"))
RECORDED = sorted((HERE / "agents" / "recorded").glob("*.json"))
TEMPLATES = sorted((HERE / "templates").glob("*.jinja"))


@pytest.fixture(scope="module")
def server(octavo, smollm2_gguf):
    with running_server.running(octavo, smollm2_gguf, "--max-model-len", 4096, "--served-model-name", "agent") as running:
        yield Server.at(running.url)


@pytest.fixture(scope="module", params=TEMPLATES, ids=lambda path: path.stem)
def scripted(request, tmp_path_factory):
    """The server with a chat template of another family and an engine that says one sentence."""
    script = tmp_path_factory.mktemp("script") / "script.json"
    # The model itself answers this question, by the grammar of the request.
    script.write_text(json.dumps([{"lacks": ["Is 7 prime?"], "answers": ["It is done."]}]))
    with Server.start(fake_server_path(), script=script, chat_template=request.param, api_key="KEY", max_model_len=200_000,
                      pages=20_000, max_num_batched_tokens=4096) as running:
        yield running


@pytest.mark.parametrize("path", WRITTEN, ids=lambda path: path.stem)
def test_what_an_agent_sends_is_answered(path, server):
    recorded = json.loads(path.read_text())
    body = recorded["body"] | {"model": "agent"}
    answer = server.ask("POST", recorded["path"], body, recorded["headers"], timeout=120)
    assert answer.status == 200, answer.body.decode()
    check_answer(recorded["path"], answer, body)


@pytest.mark.parametrize("path", RECORDED, ids=lambda path: path.stem)
def test_what_an_agent_was_seen_to_send_is_answered(path, scripted):
    recorded = json.loads(path.read_text())
    assert recorded["version"] and recorded["date"]
    for request in recorded["requests"]:
        body = request.get("body")
        answer = scripted.ask(request["method"], request["path"], body, request["headers"], timeout=120)
        assert answer.status == 200, answer.body.decode()
        if body is None:
            continue
        check_answer(request["path"], answer, body)
        ignored = [name for name in answer.headers.get("x-octavo-ignored", "").split(", ") if name]
        assert not unexplained(request["path"].partition("?")[0].split("/")[2], field_paths(body), ignored)


def test_an_unknown_field_is_noticed():
    assert unexplained("chat", {"model", "messages[].content[text].new"}, []) == {"messages[].content[text].new"}
    assert not unexplained("messages", {"system[text].cache_control.type"}, ["content.cache_control"])
    assert not unexplained("responses", {"tools[namespace].tools[function].name"}, ["tools.namespace"])
    assert unexplained("responses", {"tools[function].name2"}, ["tools.namespace"])


def test_every_known_field_was_seen():
    seen = {api: set() for api in KNOWN}
    for path in RECORDED:
        for request in json.loads(path.read_text())["requests"]:
            if "body" in request:
                seen[request["path"].partition("?")[0].split("/")[2]] |= field_paths(request["body"])
    for api, fields in KNOWN.items():
        assert not {field for field in fields - seen[api] if not any(field in other for other in seen.values())}


def check_answer(path: str, answer, body: dict) -> None:
    _, version, api, *_ = path.partition("?")[0].split("/")
    check = {"messages": check_message, "responses": check_response, "chat": check_chat}.get(api)
    (check_ollama if version == "api" else check)(answer, body)


def check_message(answer, body) -> None:
    if "max_tokens" not in body:
        assert checked(anthropic_types.MessageTokensCount, answer.json()).input_tokens > 50
    elif not body.get("stream"):
        message = checked(anthropic_types.Message, answer.json())
        if (body.get("output_config") or {}).get("format") and message.stop_reason != "max_tokens":
            assert set(json.loads(message.content[0].text)) == {"title"}
    else:
        events = [data for name, data in named_events(answer.body) if name != "ping"]
        made = [checked(anthropic_types.RawMessageStreamEvent, data) for data in events]
        assert made[0].type == "message_start" and made[-1].type == "message_stop"


def check_response(answer, body) -> None:
    if not body.get("stream"):
        response = checked(response_types.Response, answer.json())
        if response.status == "completed" and response.output_text:
            assert set(json.loads(response.output_text)) == {"prime"}
        return
    events = [checked(response_types.ResponseStreamEvent, data) for _, data in named_events(answer.body)]
    assert events[0].type == "response.created" and events[-1].type in ("response.completed", "response.incomplete")
    assert [event.sequence_number for event in events] == list(range(len(events)))


def check_chat(answer, body) -> None:
    if not body.get("stream"):
        message = chat_types.ChatCompletion.model_validate(answer.json()).choices[0].message
        if message.tool_calls:
            assert message.tool_calls[0].function.name == "Verdict"
        return
    events = answer.events()
    assert events.pop() == "[DONE]"
    chunks = [chat_types.ChatCompletionChunk.model_validate(event) for event in events]
    if (body.get("stream_options") or {}).get("include_usage"):
        assert chunks.pop().usage.completion_tokens > 0
    assert chunks[-1].choices[0].finish_reason in ("stop", "length", "tool_calls")


def check_ollama(answer, body) -> None:
    kind = ollama.ChatResponse if "messages" in body else ollama.GenerateResponse
    parts = [checked(kind, json.loads(line)) for line in answer.body.splitlines()]
    assert len(parts) == 1 or body["stream"]
    assert parts[-1].done and parts[-1].eval_count > 0 and not any(part.done for part in parts[:-1])


def test_agents_are_installed_in_an_absolute_folder():
    """Their installers run in folders of their own."""
    assert run_agents.parse(["build/agents"]).prefix.is_absolute()

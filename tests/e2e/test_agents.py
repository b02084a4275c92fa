"""Requests as coding agents send them, including hints and tools that they cannot disable. Each response must match the types of
the SDK that the agent uses."""

import json
from pathlib import Path

import anthropic.types as anthropic_types
import ollama
import openai.types.chat as chat_types
import openai.types.responses as response_types
import pytest
import running_server
from sdk_types import checked, named_events
from server_kit import Server

RECORDED = sorted((Path(__file__).parent / "agents").glob("*.json"))


@pytest.fixture(scope="module")
def server(octavo, smollm2_gguf):
    with running_server.running(octavo, smollm2_gguf, "--max-model-len", 4096, "--served-model-name", "agent") as running:
        yield Server.at(running.url)


@pytest.mark.parametrize("path", RECORDED, ids=lambda path: path.stem)
def test_what_an_agent_sends_is_answered(path, server):
    recorded = json.loads(path.read_text())
    body = recorded["body"] | {"model": "agent"}
    answer = server.ask("POST", recorded["path"], body, recorded["headers"], timeout=120)
    assert answer.status == 200, answer.body.decode()
    _, version, api, *_ = recorded["path"].partition("?")[0].split("/")
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
        if response.status == "completed":
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

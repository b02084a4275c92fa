"""Tools and reasoning on the real model, with OpenAI's client. SmolLM2's own template does not support tools, so any dialect can
be selected."""

import json

import openai
import pytest
import running_server
import tool_schemas

COUNT = 2  # random tools per dialect; `tools/battery.sh tool_schemas` runs 200
DIALECTS = ["hermes", "qwen3_coder", "llama3_json", "openai", "deepseek_v3", "deepseek_v31", "mistral", "gemma4",
            "functiongemma"]
WEATHER = {"type": "function", "function": {
    "name": "get_weather", "description": "The weather in a city",
    "parameters": {"type": "object", "additionalProperties": False, "required": ["city", "days"], "properties": {
        "city": {"type": "string", "maxLength": 12}, "days": {"type": "integer", "minimum": 1, "maximum": 9}}}}}
TIME = {"type": "function", "function": {"name": "get_time", "parameters": {
    "type": "object", "additionalProperties": False, "properties": {}}}}
ASK = [{"role": "user", "content": "What is the weather in Rome?"}]


@pytest.fixture(scope="module")
def server(octavo, smollm2_gguf):
    with running_server.running(octavo, smollm2_gguf, "--max-model-len", 4096) as running:
        yield running


@pytest.fixture(scope="module")
def chat(server):
    return asker(server)


def asker(server):
    client = openai.OpenAI(base_url=server.url + "/v1", api_key="none", max_retries=0)
    name = client.models.list().data[0].id

    def ask(messages=ASK, **fields):
        return client.chat.completions.create(
            model=name, messages=messages, **{"temperature": 1, "seed": 3, "tools": [WEATHER, TIME]} | fields)

    return ask


@pytest.mark.parametrize("dialect", DIALECTS)
def test_calls_of_random_tools_match_their_schemas(octavo, smollm2_gguf, dialect):
    flags = ("--tool-call-parser", dialect, "--max-model-len", 8192, "--max-num-seqs", 32)
    with running_server.running(octavo, smollm2_gguf, *flags) as running:
        figures = tool_schemas.run(running.url, COUNT, seed=5)
    assert figures["wrong"] == []
    assert figures["valid"] >= COUNT // 2


def test_startup_logs_the_detected_dialect(server):
    assert any("hermes (in a system message" in line for line in server.lines)


def test_a_named_tool_is_called(chat):
    choice = {"type": "function", "function": {"name": "get_weather"}}
    answer = chat(tool_choice=choice).choices[0]
    assert answer.finish_reason == "tool_calls"
    assert answer.message.content is None
    (call,) = answer.message.tool_calls
    assert call.function.name == "get_weather" and call.id.startswith("call_")
    assert 1 <= json.loads(call.function.arguments)["days"] <= 9


def test_streaming_gives_the_same_call(chat):
    fields = {"tool_choice": "required", "extra_body": {"request_id": "the same"}}
    whole = chat(**fields).choices[0].message.tool_calls
    calls = {}
    pieces = 0
    for chunk in chat(stream=True, **fields):
        for part in chunk.choices[0].delta.tool_calls or []:
            call = calls.setdefault(part.index, {"id": "", "name": "", "arguments": ""})
            call["id"] += part.id or ""
            call["name"] += part.function.name or ""
            call["arguments"] += part.function.arguments or ""
            pieces += 1
    assert [(call.id, call.function.name, call.function.arguments) for call in whole] == [
        (call["id"], call["name"], call["arguments"]) for call in calls.values()]
    assert pieces > 2 * len(calls)  # arguments are streamed


def test_tool_results_continue_the_conversation(chat):
    called = chat(tool_choice="required").choices[0].message
    messages = ASK + [called.model_dump(exclude_none=True)]
    messages += [{"role": "tool", "tool_call_id": call.id, "content": "Sunny"} for call in called.tool_calls]
    answer = chat(messages, tool_choice="none", max_tokens=16).choices[0]
    assert answer.message.tool_calls is None and answer.message.content


def test_unconstrained_answers_keep_their_text(chat):
    plain = chat(tools=openai.NOT_GIVEN, max_tokens=20, temperature=0)
    assert plain.choices[0].message.content and plain.choices[0].finish_reason in ("stop", "length")


def test_thinking_ends_at_its_budget(octavo, smollm2_gguf):
    flags = ("--reasoning-parser", "deepseek_r1", "--max-model-len", 1024)
    with running_server.running(octavo, smollm2_gguf, *flags) as running:
        ask = asker(running)
        budget = {"extra_body": {"thinking_token_budget": 10}}
        answer = ask(tools=openai.NOT_GIVEN, max_tokens=60, **budget).choices[0].message
        assert answer.reasoning and answer.content
        forced = ask(tool_choice="required", **budget).choices[0].message
        assert forced.reasoning and forced.tool_calls and forced.content is None
        json.loads(forced.tool_calls[0].function.arguments)

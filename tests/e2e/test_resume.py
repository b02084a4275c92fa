"""Interrupted streams go on byte for byte: with the fake engine at every event, and with SmolLM2 after SIGKILL."""

import json

import pytest
import resume_kills
from resuming import Received, split_events
from server_kit import Server

CHAT = [{"role": "user", "content": "hello"}]
TOOL = {"name": "f", "parameters": {"type": "object", "properties": {"a": {"type": "string", "maxLength": 5}},
                                    "required": ["a"], "additionalProperties": False}}
SCHEMA = {"type": "object", "properties": {"name": {"type": "string", "maxLength": 6}, "size": {"enum": [1, 22, 333]}},
          "required": ["name", "size"], "additionalProperties": False}
DRAWN = {"temperature": 1, "max_tokens": 24, "ignore_eos": True}
FORMED = {"temperature": 1, "max_tokens": 300}  # ended by a grammar

CASES = {
    "completion": ("/v1/completions", {"prompt": "once", "stream_options": {"include_usage": True}} | DRAWN),
    "greedy": ("/v1/completions", {"prompt": "once", "temperature": 0, "max_tokens": 24, "ignore_eos": True}),
    "penalties": ("/v1/completions", {"prompt": "once", "repetition_penalty": 1.3, "presence_penalty": 0.5,
                                      "frequency_penalty": 0.5, "min_tokens": 12} | DRAWN),
    "echo and logprobs": ("/v1/completions", {"prompt": "once", "logprobs": 2, "echo": True} | DRAWN),
    "usage in every chunk": ("/v1/completions", {"prompt": "once", "stream_options": {
        "include_usage": True, "continuous_usage_stats": True}} | DRAWN),
    "choices": ("/v1/completions", {"prompt": "once", "n": 3} | DRAWN),
    "choices that end": ("/v1/completions", {"prompt": "once", "n": 4, "temperature": 1, "seed": 1, "max_tokens": 24,
                                             "stop_token_ids": list(range(0, 256, 12))}),
    "prompts": ("/v1/completions", {"prompt": ["once", "twice"], "n": 2} | DRAWN),
    "stop strings": ("/v1/completions", {"prompt": "once", "stop": ["a", "ee", "zzz"], "seed": 1} | DRAWN),
    "grammar": ("/v1/completions", {"prompt": "once", "structured_outputs": {"json": SCHEMA}} | FORMED),
    "chat": ("/v1/chat/completions", {"messages": CHAT, "logprobs": True, "top_logprobs": 1} | DRAWN),
    "chat with tools": ("/v1/chat/completions", {"messages": CHAT, "tools": [{"type": "function", "function": TOOL}],
                                                 "tool_choice": "required"} | FORMED),
    "message": ("/v1/messages", {"messages": CHAT} | DRAWN),
    "message with tools": ("/v1/messages", {"messages": CHAT, "tools": [{"name": "f", "input_schema": TOOL["parameters"]}],
                                            "tool_choice": {"type": "any"}} | FORMED),
    "response": ("/v1/responses", {"input": "hello", "temperature": 1, "max_output_tokens": 24, "ignore_eos": True}),
    "response with a form": ("/v1/responses", {"input": "hello", "temperature": 1, "max_output_tokens": 300, "text": {
        "format": {"type": "json_schema", "name": "x", "schema": SCHEMA}}}),
}


@pytest.fixture(scope="module")
def servers():
    with Server.start(max_model_len=2048, pages=2048) as one, Server.start(max_model_len=2048, pages=2048) as other:
        yield one, other


def ask(server: Server, path: str, body: dict) -> bytes:
    answer = server.ask("POST", path, body, timeout=120)
    assert answer.status == 200, answer.body
    return answer.body


def choices_of(body: dict) -> int:
    prompts = body.get("prompt")
    return body.get("n", 1) * (len(prompts) if isinstance(prompts, list) else 1)


@pytest.mark.parametrize("name", CASES)
def test_a_stream_continues_at_every_event(servers, name):
    path, body = CASES[name]
    body = body | {"stream": True, "resumable": True}
    one, other = servers
    choices = choices_of(body)
    uncut = ask(one, path, body)
    whole = Received.of(uncut)
    assert whole.resume["seed"] >= 0 and len(whole.ids) == choices
    events = split_events(uncut)
    cuts = 0
    for count in range(1, len(events)):
        cut = Received.of(b"".join(events[:count]))
        if cut.ids == whole.ids:
            continue  # all has been generated
        rest = Received.of(ask(other, path, cut.request(body, choices)))
        assert cut.with_rest(rest) == whole.whole(), f"cut after {count} events"
        cuts += 1
    assert cuts > 5


# Not with several prompts, whose cached tokens are those of the last attempt.
@pytest.mark.parametrize("name", [name for name in CASES if "logprobs" not in CASES[name][1] and name != "prompts"])
def test_the_rest_may_come_whole(servers, name):
    path, body = CASES[name]
    body = {field: value for field, value in body.items() if field != "stream_options"} | {"resumable": True}
    events = split_events(ask(servers[0], path, body | {"stream": True}))
    cut = Received.of(b"".join(events[:len(events) // 2]))
    fresh = ask(servers[1], path, body | {"resume": cut.resume})
    assert ask(servers[1], path, cut.request(body, choices_of(body))) == fresh


def test_a_stream_may_be_cut_again_and_again(servers):
    path, body = CASES["chat with tools"]
    body = body | {"stream": True, "resumable": True}
    uncut = ask(servers[0], path, body)
    whole = Received.of(uncut)
    kept, resume, rounds = Received(), whole.resume, 0
    while True:
        kept.resume = resume
        events = split_events(ask(servers[1], path, kept.request(body)))
        part = Received.of(b"".join(events[:5]))
        finished = kept.ids.get(0, []) + part.ids.get(0, []) == whole.ids[0]  # nothing is left to generate
        if finished:
            part = Received.of(b"".join(events))
        kept.events = kept.with_rest(part) if finished else {0: kept.events.get(0, []) + part.events.get(0, [])}
        kept.ids = {0: kept.ids.get(0, []) + part.ids.get(0, [])}
        rounds += 1
        if finished:
            break
    assert kept.events == whole.whole() and rounds > 5


def test_usage_counts_the_resumed_tokens(servers):
    path, body = CASES["greedy"]
    events = split_events(ask(servers[0], path, body | {"stream": True, "resumable": True}))
    cut = Received.of(b"".join(events[:10]))
    usage = json.loads(ask(servers[0], path, cut.request(body)))["usage"]
    assert usage["completion_tokens"] == 24 and usage["prompt_tokens_details"]["cached_tokens"] == 0


def test_nothing_is_said_unless_asked(servers):
    for path, body in CASES.values():
        for stream in (False, True):
            plain = {field: value for field, value in body.items() if stream or field != "stream_options"}
            answer = ask(servers[0], path, plain | {"stream": stream})
            assert b"resume" not in answer and b"token_ids" not in answer


def test_the_usage_at_the_start_does_not_depend_on_the_load(servers):
    body = {"messages": CHAT, "max_tokens": 40, "stream": True, "ignore_eos": True}
    for _ in range(20):
        event = split_events(ask(servers[0], "/v1/messages", body))[0]
        assert json.loads(event.split(b"data: ", 1)[1])["message"]["usage"]["output_tokens"] == 1


def test_streams_of_a_killed_server_continue_on_another(octavo, smollm2_gguf):
    figures = resume_kills.run(octavo, smollm2_gguf, streams=8, together=6, seed=1)
    assert figures["resumed"] >= 8 and figures["kills"] >= 1 and figures["different"] == 0, figures

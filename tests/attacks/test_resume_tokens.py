"""Token ids of interrupted answers come from the client: forged, too many, or chosen to be expensive."""

import json

import pytest
from attack_kit import bounded, post

END = 2  # SmolLM2's <|im_end|>
TEXT = list(range(100, 140))


def completion(ids: list, **fields) -> dict:
    return {"prompt": "Once", "max_tokens": 64, "temperature": 0, "resume_token_ids": ids} | fields


def tokens_of(server, text: str) -> list[int]:
    return post(server, "/tokenize", {"prompt": text, "add_special_tokens": False}).json["tokens"]


FORGED = {
    "not a list": 5,
    "not a list of lists": TEXT,
    "no list": [],
    "a list too many": [TEXT, TEXT],
    "not a number": [["a"]],
    "a fraction": [[1.5]],
    "negative": [[-1]],
    "outside the vocabulary": [[10_000_000]],
    "beyond 32 bits": [[1 << 40]],
    "a stop token": [[*TEXT, END]],
    "tokens after a stop token": [[END, *TEXT]],
    "as many as max_tokens": [[100] * 64],
    "more than max_tokens": [[100] * 65],
    "more than the context": [[100] * 400_000],
}


@pytest.mark.parametrize("name", FORGED)
def test_forged_ids_are_refused(server, name):
    with bounded(server):
        reply = post(server, "/v1/completions", completion(FORGED[name]))
    assert reply.status == 400 and reply.json["error"]["param"] == "resume_token_ids", reply


@pytest.mark.parametrize(("path", "body"), [
    ("/v1/chat/completions", {"messages": [{"role": "user", "content": "a"}]}),
    ("/v1/messages", {"messages": [{"role": "user", "content": "a"}], "max_tokens": 64}),
    ("/v1/responses", {"input": "a"})])
def test_every_api_refuses_them(server, path, body):
    for ids in ([[*TEXT, END]], [[10_000_000]], [TEXT, TEXT]):
        reply = post(server, path, body | {"resume_token_ids": ids})
        assert reply.status == 400 and "resume_token_ids" in json.dumps(reply.json), reply
    reply = post(server, path, body | {"resume": {"system_fingerprint": "fp_0"}})
    assert reply.status == 409, reply


@pytest.mark.parametrize("resume", [
    5, {"seed": "a"}, {"seed": 1 << 70}, {"id": "a" * 2000}, {"created": -1}, {"prompt_token_ids": [[10_000_000]]},
    {"prompt_token_ids": [[]]}, {"prompt_token_ids": [[1], [2]]}, {"prompt_token_ids": [[1] * 300_000]},
    {"cached_tokens": 1_000}, {"more": 1}])
def test_forged_facts_are_refused(server, resume):
    with bounded(server):
        reply = post(server, "/v1/completions", {"prompt": "Once", "max_tokens": 4, "resume": resume})
    assert reply.status == 400, reply


def test_tokens_that_do_not_fit_the_grammar(server):
    schema = {"type": "object", "properties": {"a": {"type": "integer"}}, "required": ["a"], "additionalProperties": False}
    for text, status in [('{"a', 200), ("hello", 400), ('{"b', 400)]:
        body = completion([tokens_of(server, text)], structured_outputs={"json": schema})
        assert post(server, "/v1/completions", body).status == status, text


def test_text_that_ends_the_answer(server):
    body = completion([tokens_of(server, "one two three")], stop=["two"])
    assert post(server, "/v1/completions", body).status == 400


def test_long_outputs_of_many_choices_do_not_delay_others(server):
    """Every choice continues an output as long as the context, under a grammar."""
    ids = tokens_of(server, " word" * 1800)
    body = completion([ids] * 64, n=64, max_tokens=len(ids) + 1, structured_outputs={"regex": "( word){1,4000}"})
    with bounded(server, seconds=60):
        reply = post(server, "/v1/completions", body, timeout=120)
    assert reply.status in (200, 400), reply


def test_long_outputs_are_parsed_in_linear_time(server):
    """Text that looks like the beginning of a call, a stop string and a character, without end."""
    ids = tokens_of(server, '<tool_call>\n{"name": "f", "arguments": {"a": "' + "\\\\" * 1500)
    tool = {"type": "function", "function": {"name": "f", "parameters": {"type": "object"}}}
    body = {"messages": [{"role": "user", "content": "a"}], "tools": [tool], "max_tokens": len(ids) + 1,
            "resume_token_ids": [ids], "stop": ["\\" * 100]}
    with bounded(server, seconds=20):
        assert post(server, "/v1/chat/completions", body, timeout=60).status == 200

"""The scripted engine that coding agents are run against (tests/agents): its answers pass the template, the parser and the grammar."""

import json

import pytest
from conftest import REPO
from server_kit import Server, fake_server_path

CALL = '<tool_call>\n{"name": "look", "arguments": {"path": "a.txt"}}\n</tool_call>'
TOOL = {"type": "function", "function": {"name": "look", "parameters": {
    "type": "object", "properties": {"path": {"type": "string"}}, "required": ["path"], "additionalProperties": False}}}
RULES = [{"contains": ["wrong"], "answers": ["This is no call."]},
         {"contains": ["<tools>", "question"], "turn": "<tool_response>", "answers": [CALL, "It says hello."]},
         {"contains": ["question"], "lacks": ["<tools>"], "answers": ["A title"]}]


@pytest.fixture(scope="module")
def server(tmp_path_factory):
    script = tmp_path_factory.mktemp("script") / "script.json"
    script.write_text(json.dumps(RULES))
    template = REPO / "tests" / "e2e" / "templates" / "qwen3_style.jinja"
    with Server.start(fake_server_path(), script=script, chat_template=template, max_model_len=4096) as running:
        yield running


def ask(server, messages, **fields) -> dict:
    answer = server.ask("POST", "/v1/chat/completions", {"messages": messages, "tools": [TOOL]} | fields)
    assert answer.status == 200, answer.body
    return answer.json()["choices"][0]


@pytest.mark.parametrize("choice", ["auto", "required"])
def test_an_answer_of_the_script_becomes_a_tool_call(server, choice):
    answer = ask(server, [{"role": "user", "content": "question"}], tool_choice=choice)
    assert answer["finish_reason"] == "tool_calls"
    [call] = answer["message"]["tool_calls"]
    assert json.loads(call["function"]["arguments"]) == {"path": "a.txt"}


def test_the_next_turn_gets_the_next_answer(server):
    history = [{"role": "user", "content": "question"}, ask(server, [{"role": "user", "content": "question"}])["message"]]
    history.append({"role": "tool", "tool_call_id": history[1]["tool_calls"][0]["id"], "content": "hello"})
    answer = ask(server, history)
    assert (answer["finish_reason"], answer["message"]["content"]) == ("stop", "It says hello.")


def test_a_request_without_tools_has_its_own_rule(server):
    assert ask(server, [{"role": "user", "content": "question"}], tools=None)["message"]["content"] == "A title"


def test_an_answer_that_the_grammar_forbids_is_not_given(server):
    answer = ask(server, [{"role": "user", "content": "wrong"}], tool_choice="required", max_tokens=200)
    assert "This is no call" not in json.dumps(answer)

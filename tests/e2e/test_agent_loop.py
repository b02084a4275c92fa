"""A scripted agent with three tools on SmolLM2, through OpenAI's and Anthropic's SDKs, streamed and not: a grammar ensures that
every call names an existing tool and has valid arguments. The same conversation gives the same calls through every API, streamed
or not."""

import json
import subprocess
from pathlib import Path

import agent_tools
import anthropic
import anthropic.types
import openai
import openai.types.responses
import pytest
import running_server
from conftest import REPO
from sdk_types import checked

GREEDY = {"temperature": 0, "seed": 1}


@pytest.fixture(scope="module")
def server(octavo, smollm2_gguf):
    with running_server.running(octavo, smollm2_gguf, "--max-model-len", 4096, "--served-model-name", "agent") as running:
        yield running


@pytest.fixture(scope="module")
def openai_client(server):
    return openai.OpenAI(base_url=server.url + "/v1", api_key="none", max_retries=0, timeout=300)


@pytest.fixture(scope="module")
def anthropic_client(server):
    return anthropic.Anthropic(base_url=server.url, api_key="none", max_retries=0, timeout=300)


def loop_by_chat(client: openai.OpenAI, stream: bool) -> list[tuple[str, dict]]:
    tools = [{"type": "function", "function": {"name": name, "description": agent_tools.ABOUT[name], "parameters": schema}}
             for name, schema in agent_tools.SPECS.items()]
    messages = [{"role": "user", "content": agent_tools.QUESTION}]
    done = []
    for wanted in agent_tools.SCRIPT:
        choice = {"type": "function", "function": {"name": wanted}} if wanted else "required"
        asked = dict(model="agent", messages=messages, tools=tools, tool_choice=choice, parallel_tool_calls=False,
                     max_tokens=200, **GREEDY)
        if stream:
            with client.chat.completions.stream(**asked) as events:
                for _ in events:
                    pass
                choice = events.get_final_completion().choices[0]
        else:
            choice = client.chat.completions.create(**asked).choices[0]
        assert choice.finish_reason == "tool_calls" and not choice.message.content
        [call] = choice.message.tool_calls
        arguments = json.loads(call.function.arguments)
        messages += [{"role": "assistant", "content": None, "tool_calls": [
            {"id": call.id, "type": "function", "function": {"name": call.function.name, "arguments": call.function.arguments}}]},
            {"role": "tool", "tool_call_id": call.id, "content": agent_tools.run(call.function.name, arguments)}]
        done.append((call.function.name, arguments))
    return done


def loop_by_responses(client: openai.OpenAI, stream: bool, stored: bool = False) -> list[tuple[str, dict]]:
    tools = [{"type": "function", "name": name, "description": agent_tools.ABOUT[name], "parameters": schema, "strict": True}
             for name, schema in agent_tools.SPECS.items()]
    history = [{"role": "user", "content": agent_tools.QUESTION}]
    previous = None
    done = []
    for wanted in agent_tools.SCRIPT:
        asked = dict(model="agent", input=history, tools=tools, parallel_tool_calls=False, max_output_tokens=200, store=stored,
                     tool_choice={"type": "function", "name": wanted} if wanted else "required",
                     previous_response_id=previous, temperature=0, extra_body={"seed": 1})
        if stream:
            events = list(client.responses.create(**asked, stream=True))
            for event in events:
                checked(openai.types.responses.ResponseStreamEvent, event.model_dump(exclude_unset=True))
            response = events[-1].response
            streamed = "".join(event.delta for event in events if event.type == "response.function_call_arguments.delta")
            assert streamed == response.output[-1].arguments
        else:
            response = client.responses.create(**asked)
        assert response.status == "completed"
        [call] = [item for item in response.output if item.type == "function_call"]
        arguments = json.loads(call.arguments)
        output = {"type": "function_call_output", "call_id": call.call_id, "output": agent_tools.run(call.name, arguments)}
        if stored:
            previous, history = response.id, [output]
        else:
            history = history + [item.model_dump(exclude_none=True) for item in response.output] + [output]
        done.append((call.name, arguments))
    return done


def loop_by_messages(client: anthropic.Anthropic, stream: bool) -> list[tuple[str, dict]]:
    tools = [{"name": name, "description": agent_tools.ABOUT[name], "input_schema": schema}
             for name, schema in agent_tools.SPECS.items()]
    messages = [{"role": "user", "content": agent_tools.QUESTION}]
    done = []
    for wanted in agent_tools.SCRIPT:
        choice = {"type": "tool", "name": wanted} if wanted else {"type": "any"}
        asked = dict(model="agent", messages=messages, tools=tools, max_tokens=200, extra_body=GREEDY,
                     tool_choice=choice | {"disable_parallel_tool_use": True})
        if stream:
            with client.messages.stream(**asked) as events:
                for event in events:
                    assert event.type
                message = events.get_final_message()
        else:
            message = checked(anthropic.types.Message, client.messages.create(**asked).model_dump(exclude_unset=True))
        assert message.stop_reason == "tool_use"
        [call] = [block for block in message.content if block.type == "tool_use"]
        result = agent_tools.run(call.name, call.input)
        messages += [{"role": "assistant", "content": [block.model_dump(exclude_none=True) for block in message.content]},
                     {"role": "user", "content": [{"type": "tool_result", "tool_use_id": call.id, "content": result}]}]
        done.append((call.name, call.input))
    return done


@pytest.fixture(scope="module")
def expected(openai_client):
    """The calls of chat completions without streaming, which all other APIs must match."""
    calls = loop_by_chat(openai_client, stream=False)
    for wanted, (name, _) in zip(agent_tools.SCRIPT, calls, strict=True):
        assert wanted is None or name == wanted
    return calls


def test_chat_streamed(openai_client, expected):
    assert loop_by_chat(openai_client, stream=True) == expected


@pytest.mark.parametrize("stream", [False, True])
def test_responses(stream, openai_client, expected):
    assert loop_by_responses(openai_client, stream) == expected


@pytest.mark.parametrize("stream", [False, True])
def test_responses_that_are_stored(stream, openai_client, expected):
    assert loop_by_responses(openai_client, stream, stored=True) == expected


@pytest.mark.parametrize("stream", [False, True])
def test_messages(stream, anthropic_client, expected):
    assert loop_by_messages(anthropic_client, stream) == expected


def test_node(server, expected, tmp_path):
    """OpenAI's client for Node, if tests/clients/run_node.sh has installed it."""
    folder = REPO / "build" / "clients-node"
    if not (folder / "node_modules" / "openai").exists():
        pytest.skip("run tests/clients/run_node.sh once: it installs the client")
    script = folder / "agent.mjs"
    script.write_text((REPO / "tests" / "clients" / "node" / "agent.mjs").read_text())
    tools = Path(tmp_path / "tools.json")
    tools.write_text(json.dumps({"specs": agent_tools.SPECS, "about": agent_tools.ABOUT, "question": agent_tools.QUESTION,
                                 "script": agent_tools.SCRIPT, "results": [agent_tools.run(*call) for call in expected]}))
    done = subprocess.run(["node", script, server.url, tools], capture_output=True, text=True, timeout=600)
    assert done.returncode == 0, done.stderr[-2000:]
    for way, calls in json.loads(done.stdout).items():
        assert [(name, arguments) for name, arguments in calls] == expected, way

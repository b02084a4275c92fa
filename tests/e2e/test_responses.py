"""/v1/responses through OpenAI's client and against its types, with the fake engine."""

import contextlib

import openai
import openai.types.responses as types
import pytest
from sdk_types import checked, named_events
from server_kit import Server, request_bytes

PATH = "/v1/responses"
HELLO = {"model": "fake", "input": "hello", "max_output_tokens": 20}
DRAWN = {"seed": 3, "temperature": 1, "ignore_eos": True}  # every request gives the same output


@pytest.fixture(scope="module")
def server():
    with Server.start(step_ms=1, max_model_len=4096, pages=2048) as running:
        yield running


def client_of(server: Server, key: str = "none") -> openai.OpenAI:
    return openai.OpenAI(base_url=f"http://127.0.0.1:{server.port}/v1", api_key=key, max_retries=0)


@pytest.fixture(scope="module")
def client(server):
    return client_of(server)


def texts(response) -> list[str]:
    return [part.text for item in response.output for part in item.content]


def test_a_whole_response_has_the_sdks_types(server):
    answer = server.ask("POST", PATH, HELLO | DRAWN | {
        "instructions": "be short", "metadata": {"a": "b"}, "reasoning": {"effort": "low", "summary": "auto"},
        "text": {"format": {"type": "text"}}, "truncation": "disabled", "parallel_tool_calls": False, "user": "me"})
    assert answer.status == 200, answer.body
    response = checked(types.Response, answer.json())
    assert response.status == "incomplete" and response.incomplete_details.reason == "max_output_tokens"
    assert response.usage.output_tokens == 20 and response.usage.total_tokens == 20 + response.usage.input_tokens
    assert [item.type for item in response.output] == ["message"] and response.output_text
    assert response.metadata == {"a": "b"} and response.instructions == "be short" and response.max_output_tokens == 20
    assert response.reasoning.effort == "low" and response.parallel_tool_calls is False
    assert answer.headers["x-octavo-ignored"] == "user, reasoning.summary"


def test_every_event_has_the_sdks_types_and_the_stream_adds_up_to_the_whole(server, client):
    whole = client.responses.create(**HELLO, extra_body=DRAWN)
    events = named_events(server.ask("POST", PATH, HELLO | DRAWN | {"stream": True}).body)
    for number, (name, data) in enumerate(events):
        assert data["type"] == name and data["sequence_number"] == number
        checked(types.ResponseStreamEvent, data)
    names = [name.removeprefix("response.") for name, _ in events]
    assert names[:4] == ["created", "in_progress", "output_item.added", "content_part.added"]
    assert names[-4:] == ["output_text.done", "content_part.done", "output_item.done", "incomplete"]
    assert set(names[4:-4]) == {"output_text.delta"}
    streamed = "".join(data["delta"] for name, data in events if name == "response.output_text.delta")
    last = checked(types.Response, events[-1][1]["response"])
    assert [streamed] == texts(whole) == texts(last) and last.usage.output_tokens == 20
    done = next(data["item"] for name, data in events if name == "response.output_item.done")
    assert done == events[-1][1]["response"]["output"][0]


def test_the_stream_helper_gives_the_whole(client):
    whole = client.responses.create(**HELLO, extra_body=DRAWN)
    with client.responses.stream(**HELLO, extra_body=DRAWN) as stream:
        deltas = [event.delta for event in stream if event.type == "response.output_text.delta"]
    assert "".join(deltas) == whole.output_text


def test_a_conversation_goes_on_from_a_stored_response(client):
    first = client.responses.create(**HELLO, extra_body=DRAWN)
    second = client.responses.create(**HELLO | {"input": "and on"}, previous_response_id=first.id, extra_body=DRAWN)
    told = [{"role": "user", "content": "hello"}, {"role": "assistant", "content": first.output_text},
            {"role": "user", "content": "and on"}]
    same = client.responses.create(**HELLO | {"input": told}, extra_body=DRAWN)
    assert second.output_text == same.output_text and second.usage.input_tokens == same.usage.input_tokens
    third = client.responses.create(**HELLO | {"input": "still"}, previous_response_id=second.id, extra_body=DRAWN)
    assert third.usage.input_tokens > second.usage.input_tokens + second.usage.output_tokens
    assert third.previous_response_id == second.id


def test_a_streamed_response_is_stored_before_its_end_is_sent(client):
    for event in client.responses.create(**HELLO, stream=True, extra_body=DRAWN):
        last = event
    assert client.responses.retrieve(last.response.id).output_text == texts(last.response)[0]


def test_stored_responses_are_read_and_forgotten(server, client):
    made = client.responses.create(**HELLO, extra_body=DRAWN)
    assert checked(types.Response, server.ask("GET", f"{PATH}/{made.id}").json()).output_text == made.output_text
    items = checked(types.ResponseItemList, server.ask("GET", f"{PATH}/{made.id}/input_items").json())
    assert items.data[0].content[0].text == "hello"
    assert list(client.responses.input_items.list(made.id))[0].role == "user"
    with pytest.raises(openai.BadRequestError):
        client.responses.cancel(made.id)
    client.responses.delete(made.id)
    for gone in (lambda: client.responses.retrieve(made.id), lambda: client.responses.delete(made.id),
                 lambda: client.responses.cancel(made.id),
                 lambda: client.responses.create(**HELLO, previous_response_id=made.id)):
        with pytest.raises(openai.NotFoundError, match="not stored or has been evicted"):
            gone()


def test_what_is_not_to_be_stored_is_not(client):
    made = client.responses.create(**HELLO, store=False)
    with pytest.raises(openai.NotFoundError) as missing:
        client.responses.create(**HELLO, previous_response_id=made.id)
    assert missing.value.body["param"] == "previous_response_id"


def test_the_store_is_bounded_and_the_last_used_stay():
    with Server.start(max_stored_responses=3) as server:
        client = client_of(server)
        ids = [client.responses.create(**HELLO).id for _ in range(3)]
        client.responses.retrieve(ids[0])
        ids.append(client.responses.create(**HELLO).id)
        for number, made in enumerate(ids):
            with pytest.raises(openai.NotFoundError) if number == 1 else contextlib.nullcontext():
                client.responses.retrieve(made)


def test_a_key_sees_its_own_responses():
    with Server.start(api_key="one") as server:
        made = client_of(server, "one").responses.create(**HELLO)
        assert client_of(server, "one").responses.retrieve(made.id).id == made.id
        with pytest.raises(openai.AuthenticationError):
            client_of(server, "two").responses.retrieve(made.id)


def test_ids_a_client_chose_do_not_overwrite(server):
    made = [server.ask("POST", PATH, HELLO | {"request_id": "mine"}).json()["id"] for _ in range(2)]
    assert made[0] == "resp_mine" != made[1]
    assert all(server.ask("GET", f"{PATH}/{id}").status == 200 for id in made)


def test_input_tokens_are_counted(client):
    counted = client.responses.input_tokens.count(model="fake", input="hello", instructions="abc").input_tokens
    assert counted == client.responses.create(**HELLO, instructions="abc").usage.input_tokens


@pytest.mark.parametrize("fields, named", [
    ({"background": True}, "background"),
    ({"input": []}, "input"),
    ({"input": [{"role": "user", "content": [{"type": "input_image", "image_url": "x"}]}]}, "input[0].content[0].image_url"),
    ({"input": [{"type": "item_reference", "id": "x"}]}, "input[0]"),
    ({"input": "x" * 5000}, "input"),
    ({"max_output_tokens": 0}, "max_output_tokens"),
    ({"text": {"format": {"type": "grammar"}}}, "text.format"),
    ({"conversation": "conv_1"}, "conversation"),
    ({"prompt": {"id": "x"}}, "prompt"),
    ({"tool_choice": "required"}, "tool_choice"),
    ({"tool_choice": {"type": "web_search"}}, "tool_choice"),
    ({"include": ["message.output_text.logprobs"]}, "include"),
    ({"no_such_field": 1}, "no_such_field"),
])
def test_what_is_refused_is_named(fields, named, client):
    with pytest.raises(openai.BadRequestError) as refused:
        client.post("/responses", body=HELLO | fields, cast_to=object)
    assert refused.value.param == named


def test_a_full_queue_says_when_to_come_back():
    with Server.start(max_open_requests=1, step_ms=5) as server, server.wire() as held:
        held.send(request_bytes("POST", PATH, HELLO | DRAWN | {"max_output_tokens": 900, "stream": True})).head()
        answer = server.ask("POST", PATH, HELLO)
        assert answer.status == 429 and answer.error["type"] == "RateLimitError" and int(answer.headers["retry-after"]) >= 1


def test_a_server_that_ends_says_so_in_the_stream():
    with Server.start(step_ms=5, drain_timeout=200) as server, server.wire() as wire:
        wire.send(request_bytes("POST", PATH, HELLO | DRAWN | {"max_output_tokens": 900, "stream": True})).head()
        server.terminate()
        body = b""
        with contextlib.suppress(ValueError):
            while chunk := wire.chunk():
                body += chunk
        error, failed = named_events(body)[-2:]
        checked(types.ResponseStreamEvent, error[1])
        assert error[0] == "error" and failed[0] == "response.failed"
        assert checked(types.ResponseStreamEvent, failed[1]).response.status == "failed"


def test_a_client_that_leaves_is_noticed(server):
    server.wait_for_baseline()
    wire = server.wire()
    wire.send(request_bytes("POST", PATH, HELLO | DRAWN | {"max_output_tokens": 3000, "stream": True})).head()
    steps = server.steps()
    wire.close()
    server.wait_for_baseline()
    assert server.steps() - steps < 2000

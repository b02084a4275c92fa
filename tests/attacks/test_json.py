"""JSON bodies that are short to send and long to read."""

import pytest
from attack_kit import bounded, post

BODY_BYTES = 8 << 20  # the server's limit


def listing(value: str, count: int) -> str:
    """A body with a list in a field that is accepted and ignored."""
    return '{"prompt": "hi", "max_tokens": 1, "metadata": {"x": [' + ",".join([value] * count) + "]}}"


def filled(value: str) -> str:
    """As long as a body may be."""
    return listing(value, (BODY_BYTES - 100) // (len(value) + 1))


@pytest.mark.parametrize("count", [100_000, 400_000])
@pytest.mark.parametrize("value", ["{}", "[]"])
def test_a_list_of_many_containers_is_read_in_linear_time(server, value, count):
    body = listing(value, count)
    with bounded(server, seconds=1.5, growth_mb=150):
        status, _ = post(server, "/v1/completions", body)
    assert status == 200


@pytest.mark.parametrize("value", ["{}", "[]", '""', "0", '{"a":{}}', '{"a":""}', "[[[[]]]]"])
def test_a_full_body_of_small_values_is_refused(server, value):
    body = filled(value)
    with bounded(server, growth_mb=150):
        status, answer = post(server, "/v1/completions", body)
    assert status == 400 and "too many values; at most 500000" in answer["error"]["message"]


def test_template_arguments_of_many_strings_are_refused(server):
    kwargs = '{"x": [' + ",".join(['""'] * 2_700_000) + "]}"
    body = '{"messages": [{"role": "user", "content": "hi"}], "max_tokens": 1, "chat_template_kwargs": ' + kwargs + "}"
    with bounded(server, growth_mb=150):
        status, answer = post(server, "/v1/chat/completions", body)
    assert status == 400 and "too many values" in answer["error"]["message"]


def test_many_keys_are_refused(server):
    one = "{" + ",".join(f'"{i}":0' for i in range(4000)) + "}"
    body = listing(one, BODY_BYTES // len(one) - 1)
    with bounded(server, growth_mb=150):
        status, answer = post(server, "/v1/completions", body)
    assert status == 400 and "too many keys" in answer["error"]["message"]


def test_deep_nesting_is_refused(server):
    with bounded(server):
        status, answer = post(server, "/v1/completions", '{"metadata": ' + "[" * 4_000_000)
    assert status == 400 and "nested more than 128" in answer["error"]["message"]


def test_two_large_bodies_do_not_delay_a_small_one(server):
    bodies = [listing("{}", 499_000)] * 2
    with bounded(server), server.wire() as one, server.wire() as two:
        for wire, body in zip((one, two), bodies):
            head = f"POST /v1/completions HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\n" \
                   f"Content-Length: {len(body)}\r\n\r\n"
            wire.send(head.encode() + body.encode())
        assert post(server, "/v1/completions", {"prompt": "hi", "max_tokens": 1}, timeout=1).status == 200

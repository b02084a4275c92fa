"""Grammars and schemas that took seconds, gigabytes, or the steps of other requests."""

import json
import os
import signal
import time
from pathlib import Path

import pytest
from attack_kit import bounded, post


def intersections(count: int) -> str:
    """Terminals that are intersections of each other, so that the product grows with each of them."""
    terms = "".join(f"R{i}: R{i + 1} & /(.*[a-z]{{{i % 17}}}.{{{i % 13}}})*/\n" for i in range(count))
    return f"start: R0\n{terms}R{count}: /.*/\n"


def all_of(count: int) -> dict:
    patterns = [{"pattern": f"^(.*[a-z]{{{i % 17}}}.{{{i % 13}}})*$"} for i in range(count)]
    return {"type": "string", "allOf": patterns}


def completion(constraint: dict, **fields) -> dict:
    return {"prompt": "Once", "max_tokens": 8, "temperature": 0, "structured_outputs": constraint} | fields


def works(server) -> bool:
    return post(server, "/v1/completions", completion({"choice": ["yes", "no"]})).status == 200


def test_many_optional_words_with_many_choices(server):
    # Each choice took as long as its grammar may, one after the other: a second in all, for which the neighbour waited.
    body = completion({"grammar": "start:" + " a?" * 1000 + '\na: "a" | /b+/\n'}, n=16, temperature=1)
    with bounded(server):
        reply = post(server, "/v1/completions", body)
    assert reply.status in (200, 400), reply
    assert works(server)


@pytest.mark.parametrize("count", [10, 64, 200])
def test_intersections_in_lark(server, count):
    with bounded(server):
        reply = post(server, "/v1/completions", completion({"grammar": intersections(count)}))
    assert reply.status == 400, reply
    assert works(server)


@pytest.mark.parametrize("count", [16, 200])
def test_intersections_in_a_schema(server, count):
    with bounded(server):
        reply = post(server, "/v1/completions", completion({"json": all_of(count)}))
    assert reply.status == 400 or count == 16, reply
    assert works(server)


@pytest.mark.parametrize("n", [1, 16])
def test_a_large_divisor(server, n):
    schema = {"type": "integer", "multipleOf": 999_983}
    with bounded(server):
        reply = post(server, "/v1/completions", completion({"json": schema}, n=n, temperature=1))
    assert reply.status == 400, reply
    assert "too large" in json.dumps(reply.json)


def test_an_ambiguous_grammar_with_many_choices(server):
    # It ends by itself, or with an error: what counts is that the neighbour does not wait for it.
    body = completion({"grammar": 'start: s\ns: s s | "a"'}, n=64, temperature=1, max_tokens=600, ignore_eos=True)
    with bounded(server, seconds=60):
        post(server, "/v1/completions", body, timeout=60)
    assert works(server)


@pytest.mark.parametrize("count", [509, 510, 1_000])
def test_many_optional_properties(server, count):
    schema = {"type": "object", "properties": {f"p{i}": {"type": "integer"} for i in range(count)}, "additionalProperties": False}
    with bounded(server):
        reply = post(server, "/v1/completions", completion({"json": schema}))
    assert reply.status == 200, reply


def test_too_many_optional_properties(server):
    schema = {"type": "object", "properties": {f"p{i}": {} for i in range(1_001)}}
    with bounded(server):
        reply = post(server, "/v1/completions", completion({"json": schema}))
        inner = post(server, "/v1/completions", completion({"grammar": f"start: %json {json.dumps(schema)}"}))
    assert (reply.status, inner.status) == (400, 400)


def test_options_of_the_engine_in_a_nested_schema(server):
    schema = {"x-guidance": {"lenient": True}, "not": {"type": "string"}}
    reply = post(server, "/v1/completions", completion({"grammar": f"start: %json {json.dumps(schema)}"}))
    assert reply.status == 400
    assert "x-guidance" in json.dumps(reply.json)


def helpers_of(server) -> list[int]:
    children = [task.read_text().split() for task in Path(f"/proc/{server.pid}/task").glob("*/children")]
    return [int(pid) for pids in children for pid in pids]


def test_killed_helpers_are_replaced(server):
    assert works(server)
    killed = helpers_of(server)
    assert killed
    for pid in killed:
        os.kill(pid, signal.SIGKILL)
    chat = {"messages": [{"role": "user", "content": "hi"}], "max_tokens": 2}
    assert post(server, "/v1/chat/completions", chat).status == 200
    new = completion({"regex": f"[a-z]{{3}}{time.time_ns()}"})  # not compiled before
    assert post(server, "/v1/completions", new).status == 200
    assert not set(helpers_of(server)) & set(killed)


def test_helpers_hold_no_descriptors_and_no_environment(server):
    assert works(server)
    for pid in helpers_of(server):
        assert sorted(int(fd.name) for fd in Path(f"/proc/{pid}/fd").iterdir()) == [0, 1, 2, 3]
        names = {line.partition(b"=")[0] for line in Path(f"/proc/{pid}/environ").read_bytes().split(b"\0") if line}
        assert names <= {b"LD_LIBRARY_PATH", b"ASAN_OPTIONS", b"TSAN_OPTIONS", b"UBSAN_OPTIONS", b"LSAN_OPTIONS"}

"""Grammars and schemas that are short to send and long to compile or to follow."""

import json

import pytest
from attack_kit import bounded, post


def chain(count: int) -> str:
    """A Lark grammar of intersections, whose automata multiply."""
    rows = "\n".join(f"R{i}: R{i + 1} & /(.*[a-z]{{{i % 17}}}.{{{i % 13}}})*/" for i in range(count))
    return f"start: R0\n{rows}\nR{count}: /.*/"


def patterns(count: int) -> dict:
    return {"type": "string", "allOf": [{"pattern": f"^(.*[a-z]{{{i % 17}}}.{{{i % 13}}})*$"} for i in range(count)]}


def ask(server, constraint: dict, **fields) -> int:
    """The status: an expensive constraint may be refused or followed, but not end in a 500."""
    body = json.dumps({"prompt": "Once", "max_tokens": 4, "temperature": 1, "structured_outputs": constraint} | fields)
    reply = post(server, "/v1/completions", body, timeout=20)
    assert reply.status in (200, 400), reply
    return reply.status


@pytest.mark.parametrize("count", [2, 10, 50, 200])
def test_intersections_of_terminals(server, count):
    with bounded(server):
        status = ask(server, {"grammar": chain(count)})
    assert count <= 16 or status == 400


@pytest.mark.parametrize("count", [2, 10, 50])
def test_intersections_of_patterns(server, count):
    with bounded(server):
        status = ask(server, {"json": patterns(count)})
    assert count <= 16 or status == 400


@pytest.mark.parametrize("n", [1, 16])
def test_multiples_of_a_large_number(server, n):
    with bounded(server, seconds=4):
        ask(server, {"json": {"type": "integer", "multipleOf": 999_983}}, n=n)


@pytest.mark.parametrize("grammar", ['start: s\ns: s s | "a"', 'start: s\ns: s s s | s s | "a" | ""'])
def test_an_ambiguous_grammar_with_many_choices(server, grammar):
    with bounded(server, seconds=20):
        ask(server, {"grammar": grammar}, n=64, max_tokens=12)


@pytest.mark.parametrize("count", [510, 1000])
def test_many_optional_properties(server, count):
    properties = {f"p{i}": {"type": "integer"} for i in range(count)}
    with bounded(server, seconds=4):
        assert ask(server, {"json": {"type": "object", "properties": properties}}, max_tokens=16) == 200


def test_json_inside_a_grammar_has_the_same_limits(server):
    many = {"type": "object", "properties": {f"p{i}": {} for i in range(1001)}}
    for schema in (many, {"type": "object", "x-guidance": {"coerce_one_of": True}}, patterns(50)):
        with bounded(server):
            assert ask(server, {"grammar": "start: %json " + json.dumps(schema)}) == 400, schema

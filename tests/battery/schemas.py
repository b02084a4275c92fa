#!/usr/bin/env python3
"""Requests output for random JSON schemas at temperature 1: every answer must end, parse and be valid.

    tests/battery/schemas.py --url http://127.0.0.1:8000 [--count 1000] [--seed 1] [--at-once 32]

Schemas nest to depth 5 and are bounded (lengths, items, no additional properties), so that every answer is finite: a
truncated answer counts as wrong. Half of the answers are streamed. Prints each wrong answer and one JSON line of figures;
exits with status 1 if any answer is wrong."""

import argparse
import decimal
import http.client
import json
import random
import sys
import time
from concurrent.futures import ThreadPoolExecutor
from urllib.parse import urlsplit

import jsonschema

DEPTH = 5
NAMES = ["name", "id", "tags", "größe", "user name", "items", "a\"b", "city", "score", "日付", "x", "config", "parent", "url"]
PATTERNS = ["^[A-Z]{2}-[0-9]{1,4}$", "^(red|green|blue)$", "^[a-z]{1,8}(_[a-z]{1,8}){0,2}$", r"^\d{4}-\d{2}$",
            r"^[\w.]{1,10}@[a-z]{2,8}\.(com|org)$", "^#[0-9a-fA-F]{6}$", "^(?:[^aeiou\"\\\\\\x00-\\x1f]){3,6}$"]
VALUES = ["red", "a \"quoted\" one", "日本\n", "", 0, -7, 3.25, 1e6, True, False, None, [], [1, "two"], {"k": None}]
PROMPTS = ["Make up an example of the data.", "Describe a customer of a small shop.", "Invent a strange animal.",
           "Write a log entry of a web server.", "What is the weather like?", "Fill in the form for John Smith."]


class Schemas:
    """An infinite sequence of schemas, determined by the seed."""

    def __init__(self, seed: int):
        self.random = random.Random(seed)

    def next(self) -> dict:
        self.random = random.Random(self.random.getrandbits(64))  # each schema has its own generator
        schema = self.object(DEPTH)
        if self.random.random() < 0.2:
            schema["$defs"] = {"shared": self.scalar()}
            schema["properties"]["shared"] = {"$ref": "#/$defs/shared"}
        return schema

    def any(self, depth: int) -> dict:
        if depth <= 1:
            return self.scalar()
        kinds = [self.object, self.array, self.any_of, self.tuple, self.all_of]
        return self.random.choice(kinds)(depth) if self.random.random() < 0.45 else self.scalar()

    def object(self, depth: int) -> dict:
        names = self.random.sample(NAMES, self.random.randint(1, 4))
        return {"type": "object", "properties": {name: self.any(depth - 1) for name in names},
                "required": [name for name in names if self.random.random() < 0.6], "additionalProperties": False}

    def array(self, depth: int) -> dict:
        least = self.random.randint(0, 2)
        return {"type": "array", "items": self.any(depth - 1), "minItems": least,
                "maxItems": least + self.random.randint(0, 2)}

    def tuple(self, depth: int) -> dict:
        items = [self.any(depth - 2) for _ in range(self.random.randint(1, 3))]
        return {"type": "array", "prefixItems": items, "items": False, "minItems": len(items)}

    def any_of(self, depth: int) -> dict:
        return {"anyOf": [self.any(depth - 1) for _ in range(self.random.randint(2, 3))]}

    def all_of(self, depth: int) -> dict:
        low = self.random.randint(-50, 50)
        return {"allOf": [{"type": "integer", "minimum": low}, {"maximum": low + self.random.randint(0, 99)}]}

    def scalar(self) -> dict:
        kinds = [self.string, self.string, self.pattern, self.integer, self.number, self.enum, self.const, self.simple]
        return self.random.choice(kinds)()

    def string(self) -> dict:
        least = self.random.choice([0, 0, 1, 4])
        return {"type": "string", "minLength": least, "maxLength": least + self.random.choice([0, 5, 12, 30])}

    def pattern(self) -> dict:
        if self.random.random() < 0.25:
            return {"type": "string", "format": self.random.choice(["ipv4", "uuid"])}
        return {"type": "string", "pattern": self.random.choice(PATTERNS)}

    def integer(self) -> dict:
        low = self.random.choice([0, 1, -5, -1000, 10**9])
        high = low + self.random.choice([0, 1, 9, 255, 10**6])
        schema = {"type": "integer", self.random.choice(["minimum", "exclusiveMinimum"]): low, "maximum": high + 12}
        if self.random.random() < 0.2:
            schema["multipleOf"] = self.random.choice([2, 3, 10])
        return schema

    def number(self) -> dict:
        return {"type": "number", "enum": self.random.sample([0, 1.5, -2.25, 1e-3, 6.02e23, 100, -0.5], 3)}

    def enum(self) -> dict:
        return {"enum": self.random.sample(VALUES, self.random.randint(1, 4))}

    def const(self) -> dict:
        return {"const": self.random.choice(VALUES)}

    def simple(self) -> dict:
        return {"type": self.random.choice(["boolean", "null", ["boolean", "null"]]), "description": "anything"}


def body(number: int, schema: dict) -> dict:
    return {"messages": [{"role": "user", "content": PROMPTS[number % len(PROMPTS)]}], "temperature": 1, "seed": number,
            "stream": number % 2 == 1,
            "response_format": {"type": "json_schema", "json_schema": {"name": "data", "strict": True, "schema": schema}}}


def read(answer: http.client.HTTPResponse, stream: bool) -> tuple[str, str]:
    """Returns the text and the finish reason."""
    data = answer.read().decode()
    if answer.status != 200:
        raise ValueError(f"status {answer.status}: {data}")
    if not stream:
        choice = json.loads(data)["choices"][0]
        return choice["message"]["content"], choice["finish_reason"]
    text, reason = "", ""
    for line in data.splitlines():
        for choice in json.loads(line[6:]).get("choices", []) if line.startswith("data: {") else []:
            text += choice["delta"].get("content") or ""
            reason = choice["finish_reason"] or reason
    return text, reason


def exact(text: str):
    """Parses fractions as decimals: 6.02e23 is the integer 602000000000000000000000, which a float could not represent."""
    return json.loads(text, parse_float=decimal.Decimal)


def fault(url: str, number: int, schema: dict) -> tuple[str, int]:
    """Returns what is wrong with the answer (empty if it is valid) and its length."""
    connection = http.client.HTTPConnection(urlsplit(url).netloc, timeout=600)
    request = body(number, schema)
    connection.request("POST", "/v1/chat/completions", json.dumps(request), {"Content-Type": "application/json"})
    text = ""
    try:
        text, reason = read(connection.getresponse(), request["stream"])
        if reason != "stop":
            return f"it ended with {reason}: {text!r}", len(text)
        validator = jsonschema.Draft202012Validator(exact(json.dumps(schema)), format_checker=jsonschema.FormatChecker())
        validator.validate(exact(text))
    except (ValueError, jsonschema.ValidationError) as error:
        return f"{error}: {text!r}", len(text)
    finally:
        connection.close()
    return "", len(text)


def run(url: str, count: int, seed: int = 1, at_once: int = 32) -> dict:
    made = Schemas(seed)
    schemas = [made.next() for _ in range(count)]
    started = time.monotonic()
    with ThreadPoolExecutor(at_once) as pool:
        found = list(pool.map(lambda one: fault(url, *one), enumerate(schemas)))
    wrong = [{"number": i, "schema": schemas[i], "fault": why} for i, (why, _) in enumerate(found) if why]
    return {"schemas": count, "valid": count - len(wrong), "characters": sum(length for _, length in found),
            "seconds": round(time.monotonic() - started, 1), "wrong": wrong}


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--url", default="http://127.0.0.1:8000")
    parser.add_argument("--count", type=int, default=1000)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--at-once", type=int, default=32)
    options = parser.parse_args()
    figures = run(options.url, options.count, options.seed, options.at_once)
    wrong = figures.pop("wrong")
    for each in wrong:
        print(json.dumps(each))
    print(json.dumps(figures))
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main())

#!/usr/bin/env python3
"""Forces calls of random tools at temperature 1: every call must parse and match its tool's schema, and the content must
not contain any of the dialect's markers.

    tests/battery/tool_schemas.py --url http://127.0.0.1:8000 [--count 200] [--seed 1] [--at-once 32]

Each request has three tools with schemas from schemas.py; half of the answers are streamed, and a quarter of the requests name
the tool. Some dialects cannot express every schema: a 400 for `tools` is counted as refused. Prints each wrong answer and one
JSON line of figures; exits with status 1 if any answer is wrong."""

import argparse
import http.client
import json
import sys
import time
from concurrent.futures import ThreadPoolExecutor
from urllib.parse import urlsplit

import jsonschema
import schemas

NAMES = ["get_weather", "search-files", "db.query"]


def body(number: int, tools: dict[str, dict]) -> dict:
    choice = "required" if number % 4 else {"type": "function", "function": {"name": NAMES[number % 3]}}
    return {"messages": [{"role": "user", "content": schemas.PROMPTS[number % len(schemas.PROMPTS)]}], "temperature": 1,
            "seed": number, "stream": number % 2 == 1, "tool_choice": choice, "parallel_tool_calls": number % 3 == 0,
            "tools": [{"type": "function", "function": {"name": name, "parameters": schema}}
                      for name, schema in tools.items()]}


def read(data: str, stream: bool) -> tuple[str, list[dict], str]:
    """Returns the content, the calls and the finish reason."""
    if not stream:
        choice = json.loads(data)["choices"][0]
        calls = [call["function"] for call in choice["message"].get("tool_calls", [])]
        return choice["message"]["content"] or "", calls, choice["finish_reason"]
    content, calls, reason = "", [], ""
    for line in data.splitlines():
        for choice in json.loads(line[6:]).get("choices", []) if line.startswith("data: {") else []:
            content += choice["delta"].get("content") or ""
            reason = choice["finish_reason"] or reason
            for part in choice["delta"].get("tool_calls", []):
                if part["index"] == len(calls):
                    calls.append({"name": part["function"]["name"], "arguments": ""})
                calls[part["index"]]["arguments"] += part["function"]["arguments"]
    return content, calls, reason


def check(request: dict, tools: dict[str, dict], data: str) -> None:
    content, calls, reason = read(data, request["stream"])
    if reason != "tool_calls":
        raise ValueError(f"it ended with {reason}")
    if content:
        raise ValueError(f"it has content: {content!r}")
    if not calls or (len(calls) > 1 and not request["parallel_tool_calls"]):
        raise ValueError(f"it has {len(calls)} calls")
    for call in calls:
        if request["tool_choice"] != "required" and call["name"] != request["tool_choice"]["function"]["name"]:
            raise ValueError(f"it called {call['name']}")
        schema = schemas.exact(json.dumps(tools[call["name"]]))
        validator = jsonschema.Draft202012Validator(schema, format_checker=jsonschema.FormatChecker())
        validator.validate(schemas.exact(call["arguments"]))


def fault(url: str, number: int, tools: dict[str, dict]) -> str | None:
    """Returns what is wrong with the answer ("" if it is valid), or None if the tools were refused."""
    connection = http.client.HTTPConnection(urlsplit(url).netloc, timeout=900)
    request = body(number, tools)
    connection.request("POST", "/v1/chat/completions", json.dumps(request), {"Content-Type": "application/json"})
    answer = connection.getresponse()
    data = answer.read().decode()
    connection.close()
    if answer.status == 400 and json.loads(data)["error"]["param"] == "tools":
        return None
    try:
        if answer.status != 200:
            raise ValueError(f"status {answer.status}")
        check(request, tools, data)
    except (ValueError, KeyError, jsonschema.ValidationError) as error:
        return f"{error}: {data!r}"
    return ""


def run(url: str, count: int, seed: int = 1, at_once: int = 32) -> dict:
    made = schemas.Schemas(seed)
    tools = [{name: made.next() for name in NAMES} for _ in range(count)]
    started = time.monotonic()
    with ThreadPoolExecutor(at_once) as pool:
        found = list(pool.map(lambda one: fault(url, *one), enumerate(tools)))
    wrong = [{"number": i, "tools": tools[i], "fault": why} for i, why in enumerate(found) if why]
    return {"asked": count, "refused": found.count(None), "valid": found.count(""),
            "seconds": round(time.monotonic() - started, 1), "wrong": wrong}


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--url", default="http://127.0.0.1:8000")
    parser.add_argument("--count", type=int, default=200)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--at-once", type=int, default=32)
    options = parser.parse_args()
    figures = run(options.url, options.count, options.seed, options.at_once)
    for each in figures.pop("wrong"):
        print(json.dumps(each))
    print(json.dumps(figures))
    return 0 if figures["valid"] + figures["refused"] == figures["asked"] else 1


if __name__ == "__main__":
    sys.exit(main())

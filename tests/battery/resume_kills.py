#!/usr/bin/env python3
"""Kills servers while they stream, and continues their streams on another server: every byte equals the uncut answer's.

    tests/battery/resume_kills.py [--streams 500] [--together 10] [--seed 1] [--isas amx,avx2]

Runs `octavo serve` with SmolLM2. --isas (or OCTAVO_RESUME_ISAS) names the instruction sets of the server that is killed and of
the one that continues; by default both use the best one. Prints one JSON line."""

import argparse
import contextlib
import http.client
import json
import os
import random
import signal
import subprocess
import sys
import threading
from pathlib import Path

REPO = Path(__file__).parents[2]
for folder in ("tests/support_py", "tests/e2e", "tools"):
    sys.path.insert(0, str(REPO / folder))

import running_server  # noqa: E402
import smollm2_path  # noqa: E402
from resuming import Received  # noqa: E402

FLAGS = ("--max-model-len", 1024, "--kv-memory", "256MiB", "--no-access-log")
SUBJECTS = ["the sea", "a small town", "prime numbers", "a lost key", "the moon", "bread", "a train at night", "tea"]
SCHEMA = {"type": "object", "properties": {"title": {"type": "string", "maxLength": 30}, "year": {"type": "integer"},
                                           "tags": {"type": "array", "items": {"enum": ["a", "bb", "ccc"]}, "maxItems": 5}},
          "required": ["title", "year", "tags"], "additionalProperties": False}
PARAMETERS = {"type": "object", "properties": {"city": {"type": "string", "maxLength": 20}, "days": {"type": "integer"}},
              "required": ["city", "days"], "additionalProperties": False}
TOOL = {"type": "function", "function": {"name": "weather", "parameters": PARAMETERS}}


def random_request(rng: random.Random) -> tuple[str, dict]:
    """A path and a body: any API, sampling, penalties, grammars, tools, stop strings, log probabilities, choices."""
    about = f"Write about {rng.choice(SUBJECTS)}, number {rng.randrange(1000)}."
    messages = [{"role": "user", "content": about}]
    length = rng.randrange(20, 100)
    body = {"stream": True, "resumable": True}
    body |= rng.choice([{"temperature": 0}, {"temperature": 1}, {"temperature": 0.8, "top_p": 0.9, "min_p": 0.02},
                        {"temperature": 1, "top_k": 40, "seed": rng.randrange(1 << 50)}])
    if rng.random() < 0.4:
        body["repetition_penalty"] = rng.choice([1.1, 1.3])
    api = rng.choice(["completions", "chat", "messages", "responses"])
    if api == "messages":
        body |= {"messages": messages, "max_tokens": length}
        if rng.random() < 0.3:
            body["stop_sequences"] = [".\n", " the", "ing "]
        if rng.random() < 0.3:
            body |= {"tools": [{"name": "weather", "input_schema": PARAMETERS}], "tool_choice": {"type": "any"}}
        return "/v1/messages", body
    if api == "responses":
        body |= {"input": about, "max_output_tokens": length, "store": False}
        if rng.random() < 0.4:
            body["text"] = {"format": {"type": "json_schema", "name": "book", "schema": SCHEMA}}
        return "/v1/responses", body
    body |= {"max_tokens": length, "stream_options": {"include_usage": True}}
    if rng.random() < 0.4:
        body |= {"presence_penalty": 0.5, "frequency_penalty": 0.3}
    if rng.random() < 0.3:
        body["stop"] = [".\n", " the", "ing "]
    if rng.random() < 0.3:
        body["n"] = rng.randrange(2, 4)
    form = rng.random()
    if form < 0.3:
        body["structured_outputs"] = rng.choice([{"json": SCHEMA}, {"regex": "([A-Z][a-z]{1,9} ){1,12}"}])
    if api == "completions":
        if rng.random() < 0.3:
            body["logprobs"] = rng.randrange(4)
        return "/v1/completions", body | {"prompt": about}
    if rng.random() < 0.3:
        body |= {"logprobs": True, "top_logprobs": rng.randrange(3)}
    if form >= 0.6:
        body |= {"tools": [TOOL], "tool_choice": rng.choice(["auto", "required"])}
    return "/v1/chat/completions", body | {"messages": messages}


def stream(url: str, path: str, body: dict, on_data=lambda: None) -> bytes:
    """The bytes of a streamed answer, up to where it is cut."""
    host = url.removeprefix("http://")
    connection = http.client.HTTPConnection(host, timeout=600)
    got = b""
    with contextlib.closing(connection), contextlib.suppress(ConnectionError, http.client.HTTPException):
        connection.request("POST", path, json.dumps(body), {"Content-Type": "application/json"})
        answer = connection.getresponse()
        if answer.status != 200:
            raise AssertionError(f"{answer.status}: {answer.read()[:500]!r}")
        while data := answer.read1(65536):
            got += data
            on_data()
    return got


class Killed:
    """Streams of one server, which is killed after a random number of reads."""

    def __init__(self, process: subprocess.Popen, reads: int):
        self.process, self.left = process, reads
        self.lock = threading.Lock()

    def on_data(self) -> None:
        with self.lock:
            self.left -= 1
            if self.left == 0:
                self.process.send_signal(signal.SIGKILL)

    def run(self, url: str, requests: list[tuple[str, dict]]) -> list[bytes]:
        answers = [b""] * len(requests)

        def read(number: int) -> None:
            path, body = requests[number]
            answers[number] = stream(url, path, body, self.on_data)

        threads = [threading.Thread(target=read, args=(number,)) for number in range(len(requests))]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        return answers


def environment(isa: str) -> dict:
    return {"OCTAVO_ISA": isa} if isa else {}


def continue_stream(url: str, path: str, body: dict, cut: bytes) -> str:
    """Continues a stream and compares it with the whole answer. Returns what happened."""
    received = Received.of(cut)
    if received.resume is None:
        return "not begun"
    if b"[DONE]" in cut or b"message_stop" in cut or b"response.completed" in cut or b"response.incomplete" in cut:
        return "ended before"
    choices = body.get("n", 1)
    whole = Received.of(stream(url, path, body | {"resume": received.resume})).whole()
    ended = all(event in received.whole().get(choice, []) for choice in range(choices) for event in whole[choice][-1:])
    if ended:
        return "ended before"  # only the usage is missing
    rest = Received.of(stream(url, path, received.request(body, choices)))
    if received.with_rest(rest) == whole:
        return "resumed"
    print(json.dumps({"path": path, "body": body, "cut": cut.decode(), "ids": received.ids}), file=sys.stderr)
    return "different"


def run(octavo, model, streams: int, together: int, seed: int, isas: tuple[str, str] = ("", "")) -> dict:
    rng = random.Random(seed)
    figures = {"streams": 0, "kills": 0, "resumed": 0, "ended before": 0, "not begun": 0, "different": 0}
    with running_server.running(octavo, model, *FLAGS, env=environment(isas[1])) as survivor:
        while figures["resumed"] + figures["different"] < streams:
            requests = [random_request(rng) for _ in range(together)]
            with running_server.running(octavo, model, *FLAGS, env=environment(isas[0])) as victim:
                killed = Killed(victim.process, rng.randrange(len(requests), 40 * len(requests)))
                cuts = killed.run(victim.url, requests)
            figures["kills"] += victim.process.wait() == -signal.SIGKILL
            for (path, body), cut in zip(requests, cuts):
                figures[continue_stream(survivor.url, path, body, cut)] += 1
            figures["streams"] += len(requests)
    return figures


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--streams", type=int, default=500, help="streams to continue; those that end before are not counted")
    parser.add_argument("--together", type=int, default=10, help="streams per killed server")
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--isas", default=os.environ.get("OCTAVO_RESUME_ISAS", ","), help="two instruction sets")
    flags = parser.parse_args()
    octavo = Path(os.environ.get("OCTAVO_BUILD", REPO / "build" / "release")) / "src" / "cli" / "octavo"
    first, second = flags.isas.split(",")
    figures = run(octavo, smollm2_path.find(), flags.streams, flags.together, flags.seed, (first, second))
    print(json.dumps({"test": "resume_kills", "isas": flags.isas} | figures))
    sys.exit(figures["different"] > 0)


if __name__ == "__main__":
    main()

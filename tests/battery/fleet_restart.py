#!/usr/bin/env python3
"""Restarts all replicas behind the router smg, one after another, under load: no request may fail.

    tests/battery/fleet_restart.py [--servers 4] [--clients 8] [--rounds 2]

Half of the requests are streamed. A replica gets SIGTERM, drains, is started again and must be ready before the next one. Every answer
must have the bytes of the first answer to the same request. Prints one JSON line; exits with status 77 if smg cannot be installed."""

import argparse
import contextlib
import http.client
import json
import os
import random
import sys
import tempfile
import threading
import time
from pathlib import Path

REPO = Path(__file__).parents[2]
for folder in ("tests/support_py", "tools"):
    sys.path.insert(0, str(REPO / folder))

import smg_router  # noqa: E402
import smollm2_path  # noqa: E402
from fleet import Fleet  # noqa: E402

DRAIN = ["--drain-delay", "3"]  # longer than the router takes to notice
HEALTH = ("--health-check-interval-secs", "1", "--health-failure-threshold", "1", "--health-success-threshold", "1")
SUBJECTS = ["the sea", "a small town", "prime numbers", "a lost key", "the moon", "bread", "a train at night", "tea"]


def ask(url: str, subject: str, streamed: bool) -> str:
    """The text of the answer. Raises if anything but a whole answer arrives."""
    body = {"model": "model", "messages": [{"role": "user", "content": f"Write about {subject}."}], "max_tokens": 40, "temperature": 0,
            "ignore_eos": True, "stream": streamed}
    connection = http.client.HTTPConnection(url.removeprefix("http://"), timeout=120)
    with contextlib.closing(connection):
        connection.request("POST", "/v1/chat/completions", json.dumps(body), {"Content-Type": "application/json"})
        answer = connection.getresponse()
        data = answer.read().decode()
    assert answer.status == 200, f"{answer.status}: {data[:300]}"
    if not streamed:
        return json.loads(data)["choices"][0]["message"]["content"]
    lines = [line[6:] for line in data.split("\n") if line.startswith("data: ")]
    assert lines and lines[-1] == "[DONE]", f"a stream was cut: {data[-300:]}"
    chunks = [json.loads(line) for line in lines[:-1]]
    return "".join(chunk["choices"][0]["delta"].get("content") or "" for chunk in chunks if chunk["choices"])


class Load:
    """Clients that ask until they are told to stop."""

    def __init__(self, url: str, clients: int, expected: dict[str, str]):
        self.url, self.expected = url, expected
        self.answered, self.failed, self.different = 0, [], 0
        self.lock, self.stopping = threading.Lock(), threading.Event()
        self.threads = [threading.Thread(target=self._run, args=(random.Random(number),)) for number in range(clients)]

    def _run(self, rng: random.Random) -> None:
        while not self.stopping.is_set():
            subject, error, text = rng.choice(SUBJECTS), None, ""
            try:
                text = ask(self.url, subject, rng.random() < 0.5)
            except (AssertionError, OSError, http.client.HTTPException) as problem:
                error = repr(problem)
            with self.lock:
                self.answered += error is None
                self.failed += [error] if error else []
                self.different += error is None and text != self.expected[subject]

    def __enter__(self) -> "Load":
        for thread in self.threads:
            thread.start()
        return self

    def __exit__(self, *_) -> None:
        self.stopping.set()
        for thread in self.threads:
            thread.join()


def run(octavo: Path, model: Path, servers: int, clients: int, rounds: int, logs: Path) -> dict:
    flags = ["--max-model-len", 1024, "--kv-memory", "128MiB", *DRAIN]
    with Fleet(octavo, model, servers, logs, lambda _: flags, lambda _: {"OCTAVO_THREADS": "1"}) as fleet, \
            smg_router.running(fleet.urls, "round_robin", logs / "smg.log", *HEALTH) as url:
        expected = {subject: ask(fleet.urls[0], subject, False) for subject in SUBJECTS}
        restarts = 0
        with Load(url, clients, expected) as load:
            time.sleep(3)
            for number in [*range(servers)] * rounds:
                assert fleet.terminate(number) == 0
                fleet.start(number)
                fleet.wait(number)
                restarts += 1
                time.sleep(4)  # until the router uses it again
    return {"restarts": restarts, "answered": load.answered, "failed": len(load.failed), "different": load.different,
            "first_failures": load.failed[:3]}


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--servers", type=int, default=4)
    parser.add_argument("--clients", type=int, default=8)
    parser.add_argument("--rounds", type=int, default=2)
    options = parser.parse_args()
    if smg_router.python() is None:
        return 77
    octavo = Path(os.environ.get("OCTAVO_BUILD", REPO / "build" / "release")) / "src" / "cli" / "octavo"
    with tempfile.TemporaryDirectory() as folder:
        figures = run(octavo, smollm2_path.find(), options.servers, options.clients, options.rounds, Path(folder))
    print(json.dumps({"test": "fleet_restart"} | figures))
    return 1 if figures["failed"] or figures["different"] else 0


if __name__ == "__main__":
    sys.exit(main())

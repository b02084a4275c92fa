#!/usr/bin/env python3
"""Several servers publish KV events to Dynamo's indexer, whose predictions are then compared with what the servers report.

    tests/battery/kv_indexer.py [--servers 4] [--requests 10000] [--checks 200]

Random requests, several at a time, with more prefixes than the caches hold. Then prompts are sent to each server one by one: the
tokens that the indexer predicts must be those that the server reuses. The same again after one server was killed and restarted, and
for a server of which the indexer gets only part of the events and asks for the rest. Prints one JSON line; exits with status 1 if a
prediction was wrong, and with 77 if the indexer cannot be installed."""

import argparse
import contextlib
import json
import random
import sys
import tempfile
import threading
import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

REPO = Path(__file__).parents[2]
for folder in ("tools", "tests/e2e", "tests/support_py"):
    sys.path.insert(0, str(REPO / folder))

import dynamo_indexer  # noqa: E402
import running_server  # noqa: E402
import zmq  # noqa: E402
from fleet import free_port  # noqa: E402
from kv_events_kit import complete, source_of  # noqa: E402

BLOCK = 16


def prompt_of(rng: random.Random) -> list[int]:
    beginning = random.Random(rng.randrange(6))
    tokens = [beginning.randrange(100, 400) for _ in range(64)]
    for part in range(rng.randrange(4)):
        middle = random.Random(100 + 10 * part + rng.randrange(3))
        tokens += [middle.randrange(100, 400) for _ in range(40)]
    return tokens + [rng.randrange(100, 400) for _ in range(1 + rng.randrange(30))]


class LossyRelay:
    """Passes a server's events on, but not all of them."""

    def __init__(self, source: dict, rng: random.Random):
        self.rng, self.dropped, self.lost_the_last, self.stopping = rng, 0, False, False
        self.context = zmq.Context()
        self.input = self.context.socket(zmq.SUB)
        self.input.setsockopt(zmq.SUBSCRIBE, b"")
        self.input.connect(source["endpoint"])
        self.output = self.context.socket(zmq.PUB)
        self.endpoint = f"tcp://127.0.0.1:{self.output.bind_to_random_port('tcp://127.0.0.1')}"
        self.thread = threading.Thread(target=self._run, daemon=True)
        self.thread.start()

    def _run(self) -> None:
        while not self.stopping:
            if self.input.poll(50):
                frames = self.input.recv_multipart()
                lost = self.rng.random() < 0.2
                self.dropped += lost
                if not lost:
                    self.output.send_multipart(frames)
                self.lost_the_last = lost

    def close(self) -> None:
        self.stopping = True
        self.thread.join()
        self.context.destroy(linger=0)


class Fleet:
    def __init__(self, octavo: Path, model: Path, count: int, indexer: dynamo_indexer.Indexer, stack: contextlib.ExitStack):
        self.octavo, self.model, self.indexer, self.stack = octavo, model, indexer, stack
        self.ports = [(free_port(), free_port()) for _ in range(count)]
        self.contexts, self.servers = [None] * count, [None] * count
        self.relay = None
        for number in range(count):
            self.start(number)
        self.relay = LossyRelay(source_of(self.servers[-1].url), random.Random(3))
        stack.callback(self.relay.close)
        for number in range(count):
            self.register(number)
        time.sleep(0.5)

    def start(self, number: int) -> None:
        pub, replay = self.ports[number]
        # Of each form, so that both are tested.
        config = {"enable_kv_cache_events": True, "endpoint": f"tcp://127.0.0.1:{pub}", "replay_endpoint": f"tcp://127.0.0.1:{replay}",
                  "event_form": ("map", "array")[number % 2]}
        context = running_server.running(self.octavo, self.model, "--block-size", BLOCK, "--max-model-len", 512, "--kv-memory", "1MiB",
                                         "--max-num-seqs", 8, "--no-access-log", "--kv-events-config", json.dumps(config),
                                         env={"OCTAVO_THREADS": "1"})
        self.servers[number] = context.__enter__()
        self.contexts[number] = context
        self.stack.callback(lambda: self.contexts[number] is context and context.__exit__(None, None, None))

    def register(self, number: int) -> None:
        last = number == len(self.servers) - 1
        self.indexer.register(number + 1, source_of(self.servers[number].url), self.relay.endpoint if last and self.relay else None)

    def kill(self, number: int) -> None:
        self.servers[number].process.kill()
        self.servers[number].process.wait()
        self.contexts[number] = None

    def load(self, requests: int, rng: random.Random) -> int:
        """Sends random requests, several at a time; returns how many found part of their prompt cached."""
        jobs = [(rng.randrange(len(self.servers)), prompt_of(rng), rng.choice([1, 2, 20])) for _ in range(requests)]
        with ThreadPoolExecutor(4 * len(self.servers)) as pool:
            cached = list(pool.map(lambda job: complete(self.servers[job[0]].url, job[1], job[2])[0], jobs))
        return sum(1 for tokens in cached if tokens)

    def compare(self, checks: int, rng: random.Random) -> dict:
        """Returns how many predictions were compared, and those that were wrong."""
        figures = {"compared": 0, "with_hits": 0, "wrong": []}
        time.sleep(0.5)
        for _ in range(checks):
            number, prompt = rng.randrange(len(self.servers)), prompt_of(rng)
            self.reveal_losses()
            predicted = min(self.indexer.hits(prompt).get(number + 1, 0), (len(prompt) - 1) // BLOCK * BLOCK)
            cached, _ = complete(self.servers[number].url, prompt)
            figures["compared"] += 1
            figures["with_hits"] += cached > 0
            if cached != predicted or not self.settled(number, prompt):
                figures["wrong"].append((number, len(prompt), predicted, cached))
        return figures

    def reveal_losses(self) -> None:
        """The indexer notices a missing event only when it gets a later one."""
        time.sleep(0.05)
        while self.relay.lost_the_last:
            self.ping()
            time.sleep(0.1)

    def ping(self) -> None:
        """Makes the server with the relay send events."""
        complete(self.servers[-1].url, [random.randrange(100, 400) for _ in range(BLOCK + 1)])

    def settled(self, number: int, prompt: list[int]) -> bool:
        """Waits until the indexer knows all blocks of a prompt that was just computed."""
        end = time.monotonic() + 10
        while self.indexer.hits(prompt).get(number + 1, 0) != len(prompt) // BLOCK * BLOCK:
            if number == len(self.servers) - 1 and self.relay.lost_the_last:
                self.ping()
            if time.monotonic() > end:
                return False
            time.sleep(0.01)
        return True


def run(octavo: Path, model: Path, servers: int, requests: int, checks: int, log: Path) -> dict:
    rng = random.Random(1)
    with contextlib.ExitStack() as stack:
        indexer = stack.enter_context(dynamo_indexer.running_indexer(BLOCK, log))
        fleet = Fleet(octavo, model, servers, indexer, stack)
        figures = {"requests_with_hits": fleet.load(requests, rng), "compared": fleet.compare(checks, rng)}
        fleet.kill(0)
        fleet.indexer.unregister(1)
        fleet.start(0)
        fleet.register(0)
        time.sleep(0.5)
        fleet.load(requests // 10, rng)
        figures["after_restart"] = fleet.compare(checks // 2, rng)
        figures["events_dropped_by_the_relay"] = fleet.relay.dropped
        return figures


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--servers", type=int, default=4)
    parser.add_argument("--requests", type=int, default=10_000)
    parser.add_argument("--checks", type=int, default=200)
    parser.add_argument("--octavo", type=Path, default=REPO / "build" / "release" / "src" / "cli" / "octavo")
    options = parser.parse_args()
    if dynamo_indexer.python() is None:
        return 77
    from prefix_replay import make_long_context

    with tempfile.TemporaryDirectory() as folder:
        model = make_long_context(Path(folder) / "model", "llama", context=2048)
        figures = run(options.octavo, model, options.servers, options.requests, options.checks, Path(folder) / "indexer.log")
    print(json.dumps(figures))
    return 1 if figures["compared"]["wrong"] or figures["after_restart"]["wrong"] else 0


if __name__ == "__main__":
    sys.exit(main())

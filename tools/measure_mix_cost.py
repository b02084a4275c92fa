#!/usr/bin/env python3
"""Measures what a feature costs in throughput: the headline mix against a plain server of one model, and against one with the feature,
in turns.

usage: measure_mix_cost.py OCTAVO MODEL --front OTHER_MODEL
       measure_mix_cost.py OCTAVO MODEL --events            [--requests 100] [--rounds 4] [--serve-flag=--threads=2]

--front compares with a front that serves the same model; OTHER_MODEL makes the server a front and is never loaded. --events compares
with a server that publishes KV events to one subscriber. Both servers keep running; the one that is not measured is idle.
Prints one JSON line per round, with output tokens per second, how many percent fewer came with the feature, and the processor time of
the front process or of the threads that publish, also as percent of both cores' time (Linux only): this is steadier than the
throughput. A last line has the medians."""

import argparse
import contextlib
import json
import os
import statistics
import subprocess
import sys
import time
from pathlib import Path

REPO = Path(__file__).parents[1]
sys.path[:0] = [str(REPO / "tests" / "e2e"), str(REPO / "tests" / "support_py")]

import running_server  # noqa: E402
from kv_events_kit import source_of  # noqa: E402
from processes import processor_seconds, thread_seconds  # noqa: E402

EVENTS = {"enable_kv_cache_events": True, "endpoint": "tcp://127.0.0.1:*", "replay_endpoint": "tcp://127.0.0.1:*"}
# Reads everything and keeps nothing.
SUBSCRIBER = """
import sys, zmq
socket = zmq.Context().socket(zmq.SUB)
socket.connect(sys.argv[1])
socket.setsockopt(zmq.SUBSCRIBE, b"")
while True: socket.recv_multipart()
"""


class Front:
    def __init__(self, options: argparse.Namespace, flags: list[str], stack: contextlib.ExitStack):
        models = [options.model, options.front]
        self.server = stack.enter_context(running_server.running(options.octavo, models, *flags))

    def seconds(self) -> float:
        return processor_seconds(self.server.process.pid)


class Events:
    def __init__(self, options: argparse.Namespace, flags: list[str], stack: contextlib.ExitStack):
        config = ["--kv-events-config", json.dumps(EVENTS)]
        self.server = stack.enter_context(running_server.running(options.octavo, options.model, *flags, *config))
        subscriber = subprocess.Popen([sys.executable, "-c", SUBSCRIBER, source_of(self.server.url)["endpoint"]])
        stack.callback(subscriber.kill)

    def seconds(self) -> float:
        return sum(thread_seconds(self.server.process.pid, name) for name in ("kv-events", "ZMQ"))


def tokens_per_second(octavo: Path, url: str, requests: int, seed: int) -> float:
    mix = ["--dataset-name", "lengths", "--dataset-path", str(REPO / "bench" / "headline_mix.json"), "--num-prompts", str(requests),
           "--request-rate", "10", "--max-concurrency", "32", "--seed", str(seed)]  # a new seed: nothing is cached
    command = [str(octavo), "bench", "serve", "--base-url", url, *mix, "--json"]
    return json.loads(subprocess.run(command, stdout=subprocess.PIPE, check=True).stdout)["output_throughput"]


def arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("octavo", type=Path)
    parser.add_argument("model", type=Path)
    feature = parser.add_mutually_exclusive_group(required=True)
    feature.add_argument("--front", type=Path, metavar="OTHER_MODEL")
    feature.add_argument("--events", action="store_true")
    parser.add_argument("--requests", type=int, default=100)
    parser.add_argument("--rounds", type=int, default=4)
    parser.add_argument("--serve-flag", action="append", default=[])
    return parser.parse_args()


def main() -> None:
    options = arguments()
    flags = ["--max-model-len", "2048", "--kv-memory", "4GiB", "--no-access-log", *options.serve_flag]
    with contextlib.ExitStack() as stack:
        plain = stack.enter_context(running_server.running(options.octavo, options.model, *flags))
        feature = (Events if options.events else Front)(options, flags, stack)
        costs, shares = [], []
        for number in range(options.rounds + 1):
            # In each round the other one goes first.
            order = (plain, feature.server) if number % 2 else (feature.server, plain)
            rates, elapsed, before = {}, 0.0, feature.seconds()
            for server in order:
                began = time.monotonic()
                rates[server.url] = tokens_per_second(options.octavo, server.url, options.requests, number)
                elapsed = time.monotonic() - began if server is feature.server else elapsed
            if number == 0:  # a front loads the model
                continue
            used = feature.seconds() - before
            costs.append(1 - rates[feature.server.url] / rates[plain.url])
            shares.append(used / elapsed / (os.cpu_count() or 1))
            print(json.dumps({"round": number, "plain_tok_s": round(rates[plain.url], 1),
                              "feature_tok_s": round(rates[feature.server.url], 1), "cost_percent": round(100 * costs[-1], 2),
                              "processor_s": round(used, 3), "processor_percent": round(100 * shares[-1], 3)}), flush=True)
    print(json.dumps({"median_cost_percent": round(100 * statistics.median(costs), 2),
                      "median_processor_percent": round(100 * statistics.median(shares), 3)}))


if __name__ == "__main__":
    main()

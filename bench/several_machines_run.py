#!/usr/bin/env python3
"""Measures a model divided over two processes on this machine against the model of costs.

    bench/several_machines_run.py MODEL [--rate 1gbit] [--rounds 3] [--streams 8]

Each process has one thread and a network namespace of its own, whose interface carries `--rate`. The costs are computed from measured parts: the
step and prompt times of one process with one thread, and a round trip and the bandwidth between the namespaces. Needs root (network namespaces)
and a machine with two free cores: nothing else may run. Rounds of one process and of the two ways to divide it take turns. Prints a table of
tokens per second, measured and computed, and their ratio."""

import argparse
import concurrent.futures
import json
import os
import statistics
import subprocess
import sys
import tempfile
import time
from dataclasses import dataclass, field
from pathlib import Path

REPO = Path(__file__).parents[1]
sys.path.insert(0, str(REPO / "tests/support_py"))

from cluster_kit import Cluster, Setup  # noqa: E402
from network_places import Namespaces  # noqa: E402

PROMPT, CHUNK, TOKENS = 1024, 128, 48
FLAGS = ("--threads", 1, "--max-model-len", 2048, "--kv-memory", "512MiB", "--max-num-batched-tokens", CHUNK, "--no-enable-prefix-caching",
         "--speculative-config", '{"method": "none"}')
NUMBER, LOGIT = 2, 4  # bytes of a bfloat16 number of a row, and of a logit
WAYS = ("one", "layers", "matrices")


@dataclass(frozen=True)
class Model:
    layers: int
    hidden: int
    gathered: int  # columns of a token that both ranks need whole
    vocab: int
    largest_share: float  # of the heads and strips, on the rank with the most

    @staticmethod
    def read(path: Path) -> "Model":
        config = json.loads((path / "config.json").read_text())
        head = config.get("head_dim") or config["hidden_size"] // config["num_attention_heads"]
        heads, kv = config["num_attention_heads"], config["num_key_value_heads"]
        hidden, layers = config["hidden_size"], config["num_hidden_layers"]
        gathered = layers * (heads * head + 2 * hidden + config["intermediate_size"])
        return Model(layers, hidden, gathered, config["vocab_size"], -(-kv // 2) / kv)


@dataclass(frozen=True)
class Link:
    rate: float  # bytes per second
    round_trip: float  # seconds


@dataclass
class Rates:
    """Seconds per step of one and of several streams, and per prompt."""
    one: list[float] = field(default_factory=list)
    several: list[float] = field(default_factory=list)
    prompt: list[float] = field(default_factory=list)

    def medians(self) -> tuple[float, float, float]:
        return statistics.median(self.one), statistics.median(self.several), statistics.median(self.prompt)


PING = """
import socket, struct, sys
with socket.create_server((sys.argv[1], 0)) as server:
    print(server.getsockname()[1], flush=True)
    peer, _ = server.accept()
    peer.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
    while head := peer.recv(4, socket.MSG_WAITALL):
        left, wanted = struct.unpack("<I", head)[0], b"x"
        while left:
            left -= len(peer.recv(min(left, 1 << 20)))
        peer.sendall(wanted)
"""
ASK = """
import socket, statistics, struct, sys, time
with socket.create_connection((sys.argv[1], int(sys.argv[2]))) as peer:
    peer.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
    def send(size):
        begin = time.perf_counter()
        peer.sendall(struct.pack("<I", size) + bytes(size))
        peer.recv(1)
        return time.perf_counter() - begin
    small = statistics.median(send(256) for _ in range(500))
    large = 32 << 20
    print(small, large / (send(large) - small))
"""


def measure_link(place: Namespaces) -> Link:
    server = subprocess.Popen(place.command(1, [sys.executable, "-c", PING, place.address(1)]), stdout=subprocess.PIPE, text=True)
    try:
        port = server.stdout.readline().strip()
        asked = subprocess.run(place.command(0, [sys.executable, "-c", ASK, place.address(1), port]), capture_output=True, text=True, check=True)
    finally:
        server.kill()
        server.wait()
    round_trip, rate = map(float, asked.stdout.split())
    return Link(rate, round_trip)


def seconds(cluster: Cluster, **body) -> float:
    begin = time.perf_counter()
    answer = cluster.complete(model="model", temperature=0, ignore_eos=True, **body)
    assert answer.status == 200, answer.body
    return time.perf_counter() - begin


def step_seconds(cluster: Cluster, streams: int) -> float:
    """Of a decode step of so many sequences, without what happens once per request."""

    def of(tokens: int) -> float:
        with concurrent.futures.ThreadPoolExecutor(streams) as pool:
            begin = time.perf_counter()
            list(pool.map(lambda i: seconds(cluster, prompt=[3 + i, 5, 7, 11], max_tokens=tokens), range(streams)))
            return time.perf_counter() - begin

    return (of(8 + TOKENS) - of(8)) / TOKENS


def prompt_seconds(cluster: Cluster) -> float:
    def of(length: int) -> float:
        return seconds(cluster, prompt=[3 + i % 200 for i in range(length)], max_tokens=1)

    return of(PROMPT) - of(1)


def measure(cluster: Cluster, streams: int, rates: Rates) -> None:
    step_seconds(cluster, 1)  # warm
    rates.one.append(step_seconds(cluster, 1))
    rates.several.append(step_seconds(cluster, streams))
    rates.prompt.append(prompt_seconds(cluster))


def computed(way: str, model: Model, link: Link, alone: tuple[float, float, float], streams: int) -> tuple[float, float, float]:
    """Seconds as in Rates, on two ranks."""
    one, several, prompt = alone
    if way == "layers":
        def hop(rows: int) -> float:
            return link.round_trip / 2 + rows * model.hidden * NUMBER / link.rate
        chunks = PROMPT / CHUNK
        slowest = max(prompt / chunks / 2, CHUNK * model.hidden * NUMBER / link.rate)
        # Two groups of half the streams are in flight, each on another rank.
        half = one + (several - one) * (streams / 2 - 1) / (streams - 1)
        return one + hop(1) + link.round_trip / 2, half + hop(streams // 2) + link.round_trip / 2, (chunks + 1) * slowest + hop(CHUNK)
    calls = (4 * model.layers + 2) * link.round_trip / 2

    def sent(rows: float, logits: float) -> float:
        return (rows * model.gathered * NUMBER + logits * model.vocab * LOGIT) / 2 / link.rate
    share = model.largest_share
    return (one * share + calls + sent(1, 1), several * share + calls + sent(streams, streams),
            prompt * share + PROMPT / CHUNK * calls + sent(PROMPT, 1))


def print_table(streams: int, model: Model, link: Link, rates: dict[str, Rates]) -> None:
    alone = rates["one"].medians()
    counts = (1, streams, PROMPT)
    print(f"link: {link.rate * 8e-9:.2f} Gb/s, round trip {link.round_trip * 1e6:.0f} us\n")
    print(f"| divided by | one stream, tokens/s | computed | ratio | {streams} streams | computed | ratio | prompt tokens/s | computed | ratio |")
    print("|---|" + "--:|" * 9)
    for way in WAYS:
        found = rates[way].medians()
        expected = alone if way == "one" else computed(way, model, link, alone, streams)
        cells = [f"{count / got:,.1f} | {count / want:,.1f} | {want / got:.2f}" for count, got, want in zip(counts, found, expected)]
        name = "nothing: one process, one thread" if way == "one" else way
        print(f"| {name} | " + " | ".join(cells) + " |")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("model", type=Path)
    parser.add_argument("--rate", default="1gbit", help="of each interface, as tc takes it")
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--streams", type=int, default=8)
    flags = parser.parse_args()
    octavo = Path(os.environ.get("OCTAVO_BUILD", REPO / "build" / "release")) / "src" / "cli" / "octavo"
    model = Model.read(flags.model)
    rates = {way: Rates() for way in WAYS}
    with tempfile.TemporaryDirectory() as folder, Namespaces(2, flags.rate) as place:
        link = measure_link(place)
        for number in range(flags.rounds):
            for way in WAYS:
                print(f"round {number + 1} of {flags.rounds}: {way}", file=sys.stderr)
                setup = Setup(flags=FLAGS, worker_flags=("--threads", 1), timeout=10, place=place,
                              divides="tensor" if way == "matrices" else "pipeline")
                with Cluster(octavo, flags.model, 1 if way == "one" else 2, Path(folder), setup) as cluster:
                    measure(cluster, flags.streams, rates[way])
    print_table(flags.streams, model, link, rates)


if __name__ == "__main__":
    main()

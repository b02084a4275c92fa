#!/usr/bin/env python3
"""Kills or stops a random rank of a cluster at a random moment while answers stream.

    tests/battery/pipeline_kills.py [--count 100] [--tensor] [--ranks 2,3,4] [--seed 1]

Every time, each open request must get an error that names the rank within 10 s, all processes must exit with a status other than 0 within
10 s, and no port may stay bound. A stopped rank 0 cannot answer: its workers must exit, and the test kills it as a supervisor would.
With --tensor, matrices are divided instead of layers, over at most 3 ranks. Runs SmolLM2. Prints one JSON line."""

import argparse
import json
import os
import random
import signal
import sys
import tempfile
from pathlib import Path

REPO = Path(__file__).parents[2]
for folder in ("tests/support_py", "tools"):
    sys.path.insert(0, str(REPO / folder))

import smollm2_path  # noqa: E402
from cluster_kit import Cluster, Setup, disturb  # noqa: E402

FLAGS = ("--max-model-len", 1024, "--kv-memory", "128MiB", "--threads", 1)


def run(octavo: Path, model: Path, count: int, sizes: list[int], seed: int, divides: str) -> dict:
    rng = random.Random(seed)
    figures = {"count": count, "killed": 0, "stopped": 0, "failed": 0, "slowest_s": 0.0}
    with tempfile.TemporaryDirectory() as folder:
        for number in range(count):
            ranks = rng.choice(sizes)
            rank = rng.randrange(ranks)
            sent = rng.choice([signal.SIGKILL, signal.SIGSTOP])
            delay, streams = rng.uniform(0, 1.5), rng.randrange(1, 7)
            setup = Setup(flags=FLAGS, divides=divides, worker_flags=("--threads", 1), timeout=2)
            with Cluster(octavo, model, ranks, Path(folder), setup) as cluster:
                outcome = disturb(cluster, rank, sent, streams, delay)
                logs = cluster.logs()
            figures["killed" if sent == signal.SIGKILL else "stopped"] += 1
            figures["slowest_s"] = round(max(figures["slowest_s"], outcome.seconds), 2)
            if not outcome.ok:
                figures["failed"] += 1
                print(json.dumps({"number": number, "ranks": ranks, "rank": rank, "signal": sent.name, "delay": delay, "streams": streams,
                                  "problems": outcome.problems}), logs, sep="\n", file=sys.stderr)
    return figures


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--count", type=int, default=100)
    parser.add_argument("--tensor", action="store_true", help="divide matrices instead of layers")
    parser.add_argument("--ranks", help="sizes of the clusters (default: 2,3,4; with --tensor, 2,3, as SmolLM2 has 3 KV heads)")
    parser.add_argument("--seed", type=int, default=1)
    flags = parser.parse_args()
    octavo = Path(os.environ.get("OCTAVO_BUILD", REPO / "build" / "release")) / "src" / "cli" / "octavo"
    sizes = [int(size) for size in (flags.ranks or ("2,3" if flags.tensor else "2,3,4")).split(",")]
    divides = "tensor" if flags.tensor else "pipeline"
    figures = run(octavo, smollm2_path.find(), flags.count, sizes, flags.seed, divides)
    print(json.dumps({"test": "pipeline_kills", "divides": divides} | figures))
    sys.exit(figures["failed"] > 0)


if __name__ == "__main__":
    main()

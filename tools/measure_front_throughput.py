#!/usr/bin/env python3
"""Measures what the front costs in throughput: the headline mix against a server of one model, and against a front that serves
the same model, in turns.

usage: measure_front_throughput.py OCTAVO MODEL OTHER_MODEL [--requests 100] [--rounds 4] [--serve-flag=--threads=2]

OTHER_MODEL makes the second server a front; it is never loaded. Both servers keep running, the one that is not measured is idle.
Prints one JSON line per round, with output tokens per second, how much fewer came through the front and the processor time of the front
process (Linux only), which is steadier than the throughput; and a last line with the median."""

import argparse
import json
import statistics
import subprocess
import sys
from pathlib import Path

REPO = Path(__file__).parents[1]
sys.path[:0] = [str(REPO / "tests" / "e2e"), str(REPO / "tests" / "support_py")]

import running_server  # noqa: E402
from processes import processor_seconds  # noqa: E402


def tokens_per_second(octavo: Path, url: str, requests: int, seed: int) -> float:
    mix = ["--dataset-name", "lengths", "--dataset-path", str(REPO / "bench" / "headline_mix.json"), "--num-prompts", str(requests),
           "--request-rate", "10", "--max-concurrency", "32", "--seed", str(seed)]  # a new seed: nothing is cached
    command = [str(octavo), "bench", "serve", "--base-url", url, *mix, "--json"]
    return json.loads(subprocess.run(command, stdout=subprocess.PIPE, check=True).stdout)["output_throughput"]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("octavo", type=Path)
    parser.add_argument("model", type=Path)
    parser.add_argument("other_model", type=Path)
    parser.add_argument("--requests", type=int, default=100)
    parser.add_argument("--rounds", type=int, default=4)
    parser.add_argument("--serve-flag", action="append", default=[])
    options = parser.parse_args()
    flags = ["--max-model-len", "2048", "--kv-memory", "4GiB", "--no-access-log", *options.serve_flag]
    with running_server.running(options.octavo, options.model, *flags) as direct, \
            running_server.running(options.octavo, [options.model, options.other_model], *flags) as front:
        costs = []
        for number in range(options.rounds + 1):
            began = processor_seconds(front.process.pid)
            alone, through = (tokens_per_second(options.octavo, server.url, options.requests, number) for server in (direct, front))
            front_seconds = processor_seconds(front.process.pid) - began
            if number == 0:  # the front loads the model
                continue
            costs.append(1 - through / alone)
            print(json.dumps({"round": number, "direct_tok_s": round(alone, 1), "front_tok_s": round(through, 1),
                              "cost_percent": round(100 * costs[-1], 2),
                              "front_processor_s": round(front_seconds, 2)}), flush=True)
    print(json.dumps({"median_cost_percent": round(100 * statistics.median(costs), 2)}))


if __name__ == "__main__":
    main()

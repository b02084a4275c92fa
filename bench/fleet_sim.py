#!/usr/bin/env python3
"""Simulates many replicas behind a router: Dynamo's mocker in virtual time, with step costs that were measured on this machine.

    octavo bench model MODEL --costs costs.npz
    bench/fleet_sim.py costs.npz [--replicas 1000] [--trace chats] [--loads 0.2,0.4] [--seconds 120] [--svg curves.svg] [--json]

For each load (requests per second and replica) the same trace is routed round robin and by Dynamo's KV router. Prints throughput, the
share of prompt tokens found in prefix caches, and the time to the first token. All caches are empty at the start. Throughput is that of
the whole run, until the last answer.

Traces: chats (several turns, shared system prompts; the load is reached when conversations overlap, so --seconds should be several times
as long as one) and documents (single requests as in Mooncake's traces); or a file in Mooncake's format with --trace-file, whose arrival
times are used as they are. Without a file of costs, --rates takes the rates that `octavo bench model` prints."""

import argparse
import json
import os
import sys
import tempfile
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

from fleetkit import curves, rates, traces
from fleetkit.simulation import POLICIES, Replica, simulate

COLUMNS = ("policy", "load/s", "requests/s", "output tok/s", "hit rate", "TTFT p50", "TTFT p99")


def numbers(text: str) -> list[float]:
    return [float(part) for part in text.split(",")]


def arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("costs", type=Path, nargs="?", help="a file of `octavo bench model --costs`")
    parser.add_argument("--rates", help="instead of that file, tokens per second: of a prefill of 512 tokens, and of decode steps by batch "
                                        "size, for example 1189,1:21.5,8:147,32:336")
    parser.add_argument("--replicas", type=int, default=1000)
    parser.add_argument("--blocks", type=int, default=2048, help="KV cache of a replica in blocks of 32 tokens (default: %(default)s)")
    parser.add_argument("--trace", choices=traces.KINDS, default="chats")
    parser.add_argument("--trace-file", type=Path, help="a Mooncake trace with blocks of 64 tokens, instead of --trace")
    parser.add_argument("--loads", type=numbers, default=[0.3, 0.6, 0.9, 1.2], help="requests per second and replica, a list like 0.2,0.4")
    parser.add_argument("--seconds", type=float, default=120, help="how long new requests or conversations arrive (default: %(default)s)")
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--svg", type=Path, help="draw hit rate and p99 TTFT against load")
    parser.add_argument("--json", action="store_true", help="print JSON instead of a table")
    options = parser.parse_args()
    if (options.costs is None) == (options.rates is None):
        parser.error("give either a file of costs or --rates")
    if options.svg and options.trace_file:
        parser.error("--svg needs several loads, and --trace-file has one")
    return options


def run(options: argparse.Namespace, folder: Path) -> list[dict]:
    costs = options.costs or rates.write_costs(options.rates, folder / "costs.npz")
    if options.trace_file:
        made = [(None, options.trace_file)]
    else:
        kind = traces.KINDS[options.trace]()
        made = [(load * options.replicas, traces.write(kind.requests(load * options.replicas, options.seconds, options.seed),
                                                       folder / f"{load}.jsonl")) for load in options.loads]
    jobs = [(load, trace, policy) for load, trace in made for policy in POLICIES]
    with ThreadPoolExecutor(os.cpu_count()) as pool:  # each simulation is a process with one thread
        results = pool.map(lambda job: simulate(costs, job[1], job[2], options.replicas, Replica(options.blocks)), jobs)
        return [{"policy": policy, "load": load, "replicas": options.replicas} | result
                for (load, _, policy), result in zip(jobs, results)]


def table(rows: list[dict]) -> str:
    lines = ["".join(f"{name:>14}" for name in COLUMNS)]
    for row in rows:
        load = "-" if row["load"] is None else f"{row['load']:,.1f}"
        cells = (POLICIES[row["policy"]], load, f"{row['requests_per_second']:,.1f}", f"{row['output_tokens_per_second']:,.0f}",
                 f"{row['hit_rate']:.1%}", f"{row['ttft_p50']:.2f} s", f"{row['ttft_p99']:.2f} s")
        lines.append("".join(f"{cell:>14}" for cell in cells))
    return "\n".join(lines)


def plot(rows: list[dict]) -> str:
    def lines(field: str, scale: float = 1) -> dict[str, list[tuple[float, float]]]:
        return {name: [(row["load"], scale * row[field]) for row in rows if row["policy"] == policy] for policy, name in POLICIES.items()}

    count = rows[0]["replicas"]
    return curves.draw([curves.Panel(f"Prompt tokens found in prefix caches (%), {count:,} replicas", lines("hit_rate", 100)),
                        curves.Panel("Time to first token, 99th percentile (s)", lines("ttft_p99"), logarithmic=True)],
                       "requests per second offered")


def main() -> None:
    options = arguments()
    with tempfile.TemporaryDirectory() as folder:
        try:
            rows = run(options, Path(folder))
        except (RuntimeError, ValueError) as error:
            sys.exit(f"fleet_sim: {error}")
    print(json.dumps(rows, indent=2) if options.json else table(rows))
    if options.svg:
        options.svg.write_text(plot(rows))


if __name__ == "__main__":
    main()

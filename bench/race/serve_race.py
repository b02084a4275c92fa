#!/usr/bin/env python3
"""Benchmarks servers over HTTP with `octavo bench serve`: a mix of requests at 10 per second, at most 32 open.

    bench/race/serve_race.py DATASET                        Octavo and llama.cpp's server with SmolLM2, alternating
    bench/race/serve_race.py DATASET --octavo-only qwen3-0.6b-bf16 qwen3-0.6b-mlx-4bit
    bench/race/serve_race.py DATASET --overhead smollm2     output tok/s over HTTP, compared with `octavo bench throughput`

Each run starts a new server, so no prompt is cached. The script first installs the engines and models into build/, as
bench/race/peers.py does. Client and server share this machine's cores. Prints a Markdown table; --json FILE saves all figures."""

import argparse
import contextlib
import json
import statistics
import subprocess
import time
import urllib.request
from pathlib import Path

from peerkit.engines import run
from peerkit.environment import REPO, Environment, smollm2, usable_cores

PORT = 18450
SLOTS = 32
FIGURES = {"output tok/s": "output_throughput", "total tok/s": "total_token_throughput", "mean TTFT ms": "mean_ttft_ms",
           "p99 TTFT ms": "p99_ttft_ms", "mean TPOT ms": "mean_tpot_ms", "mean ITL ms": "mean_itl_ms",
           "p99 ITL ms": "p99_itl_ms", "duration s": "duration"}


class Race:
    def __init__(self, args):
        self.args = args
        self.environment = Environment(REPO / "build/peers-venv", REPO / "build/peers-models")
        self.longest = max(r["prompt_tokens"] + r["output_tokens"] for r in json.loads(args.dataset.read_text())["requests"])

    def model(self, name: str) -> Path:
        return smollm2() if name == "smollm2" else self.environment.model(name)

    def command(self, server: str, model: Path) -> list:
        if server == "octavo":
            return [self.args.octavo, "serve", model, "--port", str(PORT), "--max-num-seqs", str(SLOTS), "--no-access-log"]
        return [self.environment.llama_bin / "llama-server", "-m", model, "--port", str(PORT), "-np", str(SLOTS), "-c",
                str(SLOTS * (self.longest + 64)), "-t", str(usable_cores())]

    @contextlib.contextmanager
    def serving(self, server: str, model: Path):
        process = subprocess.Popen(self.command(server, model), stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        try:
            wait_until_ready(process)
            yield
        finally:
            process.terminate()
            process.wait()

    def load(self, server: str, name: str, rate: str, seed: int) -> dict:
        with self.serving(server, self.model(name)):
            out = run([self.args.octavo, "bench", "serve", "--base-url", f"http://127.0.0.1:{PORT}", "--dataset-name", "lengths",
                       "--dataset-path", self.args.dataset, "--request-rate", rate, "--max-concurrency", str(SLOTS),
                       "--seed", str(seed), "--timeout", "3600", "--json"])
        figures = json.loads(out)
        if figures["failed"]:
            raise SystemExit(f"{server}: {figures['failed']} requests failed")
        return figures

    def throughput(self, name: str) -> float:
        out = run([self.args.octavo, "bench", "throughput", self.model(name), "--dataset", self.args.dataset, "--max-num-seqs",
                   str(SLOTS), "--json"])
        return json.loads(out)["output_tokens_per_second"]


def wait_until_ready(process: subprocess.Popen) -> None:
    for _ in range(1200):
        if process.poll() is not None:
            raise SystemExit(f"{process.args[0]} exited during startup")
        try:
            urllib.request.urlopen(f"http://127.0.0.1:{PORT}/health", timeout=1)
            return
        except OSError:
            time.sleep(0.1)
    raise SystemExit(f"{process.args[0]} is not ready after two minutes")


def print_table(columns: dict[str, list[dict]]) -> None:
    """Medians over the rounds."""
    print(f"\n| | {' | '.join(columns)} |\n|---|{'---:|' * len(columns)}")
    for label, key in FIGURES.items():
        print(f"| {label} | {' | '.join(f'{statistics.median(run[key] for run in runs):.1f}' for runs in columns.values())} |")


def headline(race: Race, contestants: list[tuple[str, str]]) -> dict[str, list[dict]]:
    columns: dict[str, list[dict]] = {f"{server} {name}": [] for server, name in contestants}
    for number in range(race.args.rounds):
        for server, name in contestants:
            figures = race.load(server, name, race.args.request_rate, number)
            columns[f"{server} {name}"].append(figures)
            print(f"round {number + 1}, {server} {name}: {figures['output_throughput']:.1f} output tok/s, "
                  f"mean TTFT {figures['mean_ttft_ms']:.0f} ms", flush=True)
    print_table(columns)
    return columns


def overhead(race: Race, name: str) -> dict:
    shares = []
    for number in range(race.args.rounds):
        alone = race.throughput(name)
        served = race.load("octavo", name, "inf", number)["output_throughput"]
        shares.append(served / alone)
        print(f"round {number + 1}, {name}: {alone:.1f} output tok/s without HTTP, {served:.1f} over HTTP: {shares[-1]:.1%}", flush=True)
    print(f"{name}: {statistics.median(shares):.1%} over HTTP (median of {race.args.rounds})")
    return {"model": name, "shares": shares}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("dataset", type=Path, help="JSON file with the request lengths, as for bench/race/mix.py")
    parser.add_argument("--octavo-only", nargs="+", metavar="MODEL", help="run only Octavo, with these models: smollm2 or one of build/peers-models")
    parser.add_argument("--overhead", nargs="+", metavar="MODEL", help="compare HTTP with `octavo bench throughput` for these models")
    parser.add_argument("--rounds", type=int, default=1, help="default: 1")
    parser.add_argument("--request-rate", default="10", help="requests per second; default: 10")
    parser.add_argument("--json", type=Path, help="write all figures to this file")
    parser.add_argument("--octavo", type=Path, default=REPO / "build/release/src/cli/octavo", help="path of the octavo program")
    race = Race(parser.parse_args())
    if race.args.overhead:
        result = [overhead(race, name) for name in race.args.overhead]
    elif race.args.octavo_only:
        result = headline(race, [("octavo", name) for name in race.args.octavo_only])
    else:
        race.environment.install()
        result = headline(race, [("octavo", "smollm2"), ("llama-server", "smollm2")])
    if race.args.json:
        race.args.json.write_text(json.dumps(result))


if __name__ == "__main__":
    main()

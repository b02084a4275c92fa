#!/usr/bin/env python3
"""Measures what LoRA adapters cost in decode: the speed of concurrent answers of the base model, and of as many answers that
are spread over adapters, in turns on one server.

usage: measure_lora_cost.py OCTAVO MODEL [--rows 32] [--adapters 4] [--rank 16] [--tokens 48] [--rounds 9] [--serve-flag=--threads=2]

The adapters are random, of all attention and MLP matrices. Prints one JSON line per round, with tokens per second and how much
longer a step took with adapters, and a last line with the median."""

import argparse
import json
import statistics
import sys
import tempfile
import time
import urllib.request
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

REPO = Path(__file__).parents[1]
sys.path[:0] = [str(REPO / "tools"), str(REPO / "tests" / "e2e")]

import running_server  # noqa: E402
from modelkit import adapters  # noqa: E402


def complete(url: str, model: str | None, number: int, tokens: int) -> None:
    body = {"prompt": [1000 + 17 * number + i for i in range(4)], "max_tokens": tokens, "temperature": 0, "ignore_eos": True}
    request = urllib.request.Request(url + "/v1/completions", json.dumps(body | ({"model": model} if model else {})).encode(),
                                     {"Content-Type": "application/json"})
    with urllib.request.urlopen(request, timeout=600) as answer:
        assert json.load(answer)["usage"]["completion_tokens"] == tokens


def tokens_per_second(url: str, names: list[str | None], options: argparse.Namespace) -> float:
    began = time.monotonic()
    with ThreadPoolExecutor(options.rows) as pool:
        list(pool.map(lambda i: complete(url, names[i % len(names)], i, options.tokens), range(options.rows)))
    return options.rows * options.tokens / (time.monotonic() - began)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("octavo", type=Path)
    parser.add_argument("model", type=Path)
    parser.add_argument("--rows", type=int, default=32)
    parser.add_argument("--adapters", type=int, default=4)
    parser.add_argument("--rank", type=int, default=16)
    parser.add_argument("--tokens", type=int, default=48)
    parser.add_argument("--rounds", type=int, default=9)
    parser.add_argument("--serve-flag", action="append", default=[])
    options = parser.parse_args()
    names = [f"adapter{i}" for i in range(options.adapters)]
    with tempfile.TemporaryDirectory() as folder:
        modules = [f"{name}={adapters.make(Path(folder) / name, options.model, adapters.Adapter(rank=options.rank, seed=seed))}"
                   for seed, name in enumerate(names)]
        flags = ["--enable-lora", "--max-loras", str(options.adapters), "--max-lora-rank", str(options.rank), "--lora-modules",
                 *modules, "--max-model-len", "512", "--max-num-seqs", str(options.rows), *options.serve_flag]
        with running_server.running(options.octavo, options.model, *flags) as server:
            for kinds in ([None], names):  # both once before the first round
                tokens_per_second(server.url, kinds, options)
            costs = []
            for number in range(options.rounds):
                base = tokens_per_second(server.url, [None], options)
                adapted = tokens_per_second(server.url, names, options)
                costs.append(base / adapted - 1)
                print(json.dumps({"round": number, "base_tok_s": round(base, 1), "adapted_tok_s": round(adapted, 1),
                                  "cost_percent": round(100 * costs[-1], 1)}), flush=True)
    print(json.dumps({"median_cost_percent": round(100 * statistics.median(costs), 1)}))


if __name__ == "__main__":
    main()

#!/usr/bin/env python3
"""Compares Octavo's continuous batching with another engine's on a mix of request lengths, alternating between the two.
All requests are submitted at once.

    bench/race/mix.py DATASET --race openvino            Qwen3-0.6B shape in bf16, compared with OpenVINO GenAI
    bench/race/mix.py DATASET --race llama-server        SmolLM2 (the GGUF of tools/bootstrap.sh), compared with llama.cpp's server
    bench/race/mix.py DATASET --race llama-server --requests 40 --rounds 3

DATASET: {"requests": [{"prompt_tokens": n, "output_tokens": m}, ...]}. Every request generates exactly m tokens. The script
first installs the engines and models into build/, as bench/race/peers.py does. Octavo runs without HTTP; llama.cpp's server is
called over HTTP on this machine (the client uses a few percent of a core)."""

import argparse
import json
import statistics
import tempfile
from pathlib import Path

from peerkit.engines import last_json, run
from peerkit.environment import REPO, Environment, smollm2, usable_cores

HERE = Path(__file__).resolve().parent


def octavo(args, model: Path, requests: list[dict]) -> float:
    with tempfile.NamedTemporaryFile("w", suffix=".json") as dataset:
        json.dump({"requests": requests}, dataset)
        dataset.flush()
        out = run([args.octavo, "bench", "throughput", model, "--dataset", dataset.name, "--max-num-seqs",
                   str(args.max_num_seqs), "--json"])
    return json.loads(out)["output_tokens_per_second"]


def peer(args, environment: Environment, script: str, model: Path, requests: list[dict]) -> float:
    task = {"model": str(model), "requests": requests, "max_num_seqs": args.max_num_seqs, "threads": usable_cores(),
            "max_num_batched_tokens": 512, "program": str(environment.llama_bin / "llama-server")}
    return last_json(run([environment.python, HERE / "peerkit" / script, json.dumps(task)]))["output_tokens_per_second"]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("dataset", type=Path, help="JSON file with the request lengths (see above)")
    parser.add_argument("--race", choices=["openvino", "llama-server"], required=True, help="engine to compare with")
    parser.add_argument("--requests", type=int, default=0, help="use only the first N requests; 0: all (default)", metavar="N")
    parser.add_argument("--rounds", type=int, default=1, help="default: 1")
    parser.add_argument("--max-num-seqs", type=int, default=32, help="requests in a batch; default: 32")
    parser.add_argument("--octavo", type=Path, default=REPO / "build/release/src/cli/octavo", help="path of the octavo program")
    args = parser.parse_args()
    requests = json.loads(args.dataset.read_text())["requests"]
    requests = requests[:args.requests] if args.requests else requests
    environment = Environment(REPO / "build/peers-venv", REPO / "build/peers-models")
    environment.install()
    if args.race == "openvino":
        ours, theirs, script = environment.model("qwen3-0.6b-bf16"), environment.model("qwen3-0.6b-f16.gguf"), "mix_openvino.py"
    else:
        ours = theirs = smollm2()
        script = "mix_llama_server.py"
    rates: dict[str, list[float]] = {"octavo": [], args.race: []}
    for number in range(args.rounds):
        rates["octavo"].append(octavo(args, ours, requests))
        rates[args.race].append(peer(args, environment, script, theirs, requests))
        print(f"round {number + 1}: " + ", ".join(f"{name} {got[-1]:.1f} output tok/s" for name, got in rates.items()), flush=True)
    ratios = [a / b for a, b in zip(rates["octavo"], rates[args.race])]
    print(f"octavo / {args.race}: {statistics.median(ratios):.2f}x (median of {args.rounds})")


if __name__ == "__main__":
    main()

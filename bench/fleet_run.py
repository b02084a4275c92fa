#!/usr/bin/env python3
"""Compares the simulation of bench/fleet_sim.py with real servers: the same conversations go to four `octavo serve` processes on this
machine, round robin and with Dynamo's selection service, and to as many simulated replicas.

    bench/fleet_run.py [--model MODEL] [--replicas 4] [--threads 1] [--sessions 40] [--cores-each 0.45] [--json]

Each process gets a fixed share of this machine's cores (a cgroup, as root), so that it does not become faster while others are idle, as
a machine of its own would not. They still share caches and memory bandwidth, so the step costs are measured by as many processes at
the same time: before the runs, between them and after them. A run is simulated with the mean of the costs measured just before and just after it. All conversations begin within a
few seconds, so the servers are busy until the last ones end. Prints both results, their differences, and whether the answers
of both policies are the same."""

import argparse
import json
import os
import subprocess
import sys
import tempfile
from pathlib import Path

import numpy as np
from fleetkit import cpu_quota, real_fleet, traces
from fleetkit.simulation import POLICIES, Replica, simulate

REPO = Path(__file__).parents[1]
sys.path.insert(0, str(REPO / "tools"))

import smollm2_path  # noqa: E402

VOCABULARY = 10_000  # of prompts; every model has as many tokens
SHOWN = ("requests_per_second", "output_tokens_per_second", "hit_rate", "ttft_p50", "ttft_p99")


def arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--model", help="default: SmolLM2-135M")
    parser.add_argument("--octavo", type=Path, default=REPO / "build" / "release" / "src" / "cli" / "octavo")
    parser.add_argument("--replicas", type=int, default=4)
    parser.add_argument("--threads", type=int, default=1, help="per process")
    parser.add_argument("--sessions", type=int, default=40, help="conversations of four turns")
    parser.add_argument("--kv-memory", default="200MiB", help="per server (default: %(default)s)")
    parser.add_argument("--cores-each", type=float, help="of each process; 0: all share all cores (default: 0.9 of the cores, divided)")
    parser.add_argument("--json", action="store_true", help="print JSON instead of a table")
    options = parser.parse_args()
    if options.cores_each is None:
        options.cores_each = 0.9 * (os.cpu_count() or 1) / options.replicas
    return options


def measure(options: argparse.Namespace, programs: list[Path], out: Path) -> Path:
    """The mean costs of as many processes as there are replicas, all at once."""
    files = [out.with_name(f"{out.stem}-{number}.npz") for number in range(options.replicas)]
    most = max(2, options.sessions // options.replicas)  # sequences of a step, about
    command = ["bench", "model", options.model, "--batch-size", ",".join(map(str, sorted({1, max(1, most // 2), most}))),
               "--context", "256", "--output-len", "8", "--prefill-len", "0", "--repeats", "1"]
    runs = [subprocess.Popen([program, *command, "--costs", file], stdout=subprocess.DEVNULL,
                             env=os.environ | {"OCTAVO_THREADS": str(options.threads)}) for program, file in zip(programs, files)]
    if any([run.wait() != 0 for run in runs]):
        raise RuntimeError("octavo bench model failed: see the error above")
    return mean(files, out)


def mean(files: list[Path], out: Path) -> Path:
    loaded = [np.load(file) for file in files]
    np.savez(out, **{name: np.mean([each[name] for each in loaded], axis=0) for name in loaded[0].files})
    return out


def run(options: argparse.Namespace, folder: Path) -> dict:
    if options.cores_each == 0:
        return compare(options, [options.octavo] * options.replicas, folder)
    with cpu_quota.programs(options.octavo, options.replicas, options.cores_each, folder) as programs:
        return compare(options, programs, folder)


def compare(options: argparse.Namespace, programs: list[Path], folder: Path) -> dict:
    options.model = options.model or smollm2_path.find()
    if not options.model:
        raise RuntimeError("no SmolLM2: run tools/bootstrap.sh, or name a model with --model")
    chats = traces.Chats(turns=4, system_prompts=6, system_blocks=4, user_blocks=2, answer_tokens=32, pause=0.5)
    records = chats.requests(per_second=chats.turns * options.sessions / 5, seconds=60, seed=1)
    records = records[:chats.turns * options.sessions]
    trace = traces.write(records, folder / "trace.jsonl")
    flags = ["--kv-memory", options.kv_memory, "--max-model-len", 2048]
    results, costs, texts = {}, [measure(options, programs, folder / "costs0.npz")], {}
    for number, policy in enumerate(POLICIES):
        with real_fleet.servers(programs, options.model, options.threads, flags) as (urls, pages):
            if policy == "round_robin":
                answers, seconds = real_fleet.replay(records, real_fleet.RoundRobin(urls), VOCABULARY)
            else:
                with real_fleet.selection(urls, Replica.block_size, folder / "selection.log") as service:
                    answers, seconds = real_fleet.replay(records, service, VOCABULARY)
        costs.append(measure(options, programs, folder / f"costs{number + 1}.npz"))
        results[policy] = {"real": real_fleet.figures(answers, seconds)}
        texts[policy] = [answer.text for answer in answers]
        used = mean(costs[-2:], folder / f"{policy}.npz")
        results[policy]["simulated"] = simulate(used, trace, policy, options.replicas, Replica(pages))
    spread = [float(np.load(file)["prefill_ttft_ms"][-1]) for file in costs]
    return {"policies": results, "pages": pages, "prefill_512_ms_of_each_measurement": spread,
            "answers_equal": texts["round_robin"] == texts["kv_router"]}


def table(result: dict) -> str:
    lines = [f"{'':14}{'':26}{'real':>10}{'simulated':>12}{'difference':>12}"]
    for policy, both in result["policies"].items():
        for field in SHOWN:
            real, simulated = both["real"][field], both["simulated"][field]
            lines.append(f"{POLICIES[policy]:14}{field:26}{real:10.3f}{simulated:12.3f}{simulated / real - 1:12.1%}")
    spread = ", ".join(f"{value:.0f}" for value in result["prefill_512_ms_of_each_measurement"])
    return "\n".join([*lines, f"512 prompt tokens in each measurement of the costs: {spread} ms",
                      f"Answers of both policies are {'the same' if result['answers_equal'] else 'DIFFERENT'}."])


def main() -> None:
    options = arguments()
    with tempfile.TemporaryDirectory() as folder:
        try:
            result = run(options, Path(folder))
        except RuntimeError as error:
            sys.exit(f"fleet_run: {error}")
    print(json.dumps(result, indent=2) if options.json else table(result))
    sys.exit(0 if result["answers_equal"] else 1)


if __name__ == "__main__":
    main()
